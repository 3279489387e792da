"""Every view as text, at 80×24 and 140×40, as it is kept in tests/app/screens/.

After a change that is meant:  RENEW_SCREENS=1 python -m pytest tests/app/test_screen_dumps.py  and read the diff.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.app.conftest import FAKE_GRADER
from tests.app.driver import Session, drive
from tests.app.sample_course import COURSE
from tests.app.test_glossary import GLOSSARY
from tests.app.views import SIZES, VIEWS, After
from tests.app.ways import NOON
from tutor.course import glossary
from tutor.grading import Grader
from tutor.progress import Progress
from tutor.widgets.desk import Desk
from tutor.workspace import Workspace

KEPT = Path(__file__).parent / "screens"
TEXTUAL = "8.2.8"  # another one may draw a border or a scroll bar otherwise
PLACE = "workplac"  # as long as the random name that it stands for, so that lines wrap alike
STILL = 3  # looks in a row that must be the same


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a name that is as long every time, in an environment that shows nothing of this machine."""
    for name in ("VISUAL", "EDITOR", "NO_COLOR", "SSH_CONNECTION", "FAKE_GRADER_BACKEND"):
        monkeypatch.delenv(name, raising=False)
    made = Path(tempfile.mkdtemp(prefix="", dir="/tmp"))
    (made / "glossary.yaml").write_text(GLOSSARY, encoding="utf-8")
    monkeypatch.setattr(glossary, "glossary_file", lambda: made / "glossary.yaml")
    yield made
    shutil.rmtree(made)


def dump(s: Session, folder: Path) -> str:
    text = s.text().replace(folder.name, PLACE)
    text = re.sub(r"\d{4}-\d\d-\d\d", "YYYY-MM-DD", text)
    return re.sub(r"\b\d\d:\d\d(:\d\d)?\b", lambda found: re.sub(r"\d", "0", found[0]), text) + "\n"


async def still(s: Session, folder: Path) -> str:
    """The screen once it no longer changes."""
    looks = [dump(s, folder)]

    def same() -> bool:
        looks.append(dump(s, folder))
        return len(looks) > STILL and len(set(looks[-STILL:])) == 1

    await s.until(same)
    return looks[-1]


def chains() -> list[list[str]]:
    """The views by session: each, and those that are reached from it."""
    found: list[list[str]] = []
    for name, way in VIEWS.items():
        if isinstance(way, After):
            assert found[-1][-1] == way.view, f"{name} stands behind {way.view}"
            found[-1].append(name)
        else:
            found.append([name])
    return found


async def dump_all(folder: Path, size: tuple[int, int]) -> dict[str, str]:
    found = {}
    for number, names in enumerate(chains()):
        progress = Progress.open(None, clock=lambda: NOON)
        grader = Grader([sys.executable, str(FAKE_GRADER)])
        workspace = Workspace.open(folder / f"view-{number:03}")
        s = Session(Desk(COURSE, progress, workspace, grader), size=size)
        s.app.animation_level = "none"
        async with s:
            for name in names:
                way = VIEWS[name]
                await (way.way if isinstance(way, After) else way)(s)
                found[name] = await still(s, folder)
        progress.close()
    return found


@pytest.mark.skipif(version("textual") != TEXTUAL, reason=f"the screens are kept as textual {TEXTUAL} draws them")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
def test_every_view_is_drawn_as_it_is_kept(folder: Path, size: tuple[int, int]) -> None:
    found: dict[str, str] = {}

    async def story() -> None:
        found.update(await dump_all(folder, size))

    drive(story)
    assert not [name for name, text in found.items() if max(map(len, text.split("\n"))) > size[0]]
    if os.environ.get("RENEW_SCREENS"):
        KEPT.mkdir(exist_ok=True)
        for name, text in found.items():
            (KEPT / f"{name}-{size[0]}x{size[1]}.txt").write_text(text, encoding="utf-8")
        return
    changed = []
    tail = f"-{size[0]}x{size[1]}.txt"
    assert {file.name.removesuffix(tail) for file in KEPT.glob(f"*{tail}")} == set(found), (
        "a dump without its view, or less"
    )
    for name, text in found.items():
        file = KEPT / f"{name}-{size[0]}x{size[1]}.txt"
        kept = file.read_text(encoding="utf-8") if file.exists() else ""
        changed += difflib.unified_diff(kept.splitlines(), text.splitlines(), file.name, "now", lineterm="", n=0)
    assert not changed, "\n".join([*changed, "If this is meant: RENEW_SCREENS=1 and again."])
