"""Pictures of every view on the real course, at 80×24 and 140×40, dark and light, into docs/screens/.

Run:  python docs/screens.py [NAME …]
The views are those of tests/app/views.py; a new one there is drawn here too. Needs Chromium, playwright and pillow,
which turn textual's SVG into a PNG of 64 colours, a tenth of its size. The graded exercise is really graded.
"""

from __future__ import annotations

import asyncio
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

THEMES = {"dark": "textual-dark", "light": "prep-light"}
BUG = "m03.bug.fill"  # what the learner is shown to have written: padding of 0 before a maximum
COLOURS = 64


async def graded_bug(s: Any) -> None:
    from tutor.answers import bug_source
    from tutor.course.model import Bug

    bug = s.desk.course.item(BUG)
    assert isinstance(bug, Bug)
    exercise = s.desk.course.exercise_item(bug.exercise)
    assert exercise is not None
    s.desk.workspace.file(bug.exercise).write_text(bug_source(bug), encoding="utf-8")
    await s.open(exercise.id)
    await s.keys("g")
    await s.until(lambda: bool(s.desk.progress.state(exercise.id).attempts))
    await s.keys("f5")


async def draw(name: str, way: Any, size: tuple[int, int], theme: str) -> str:
    """One view as SVG."""
    from tests.app.driver import Session
    from tutor.course.loader import load
    from tutor.grading import Grader
    from tutor.progress import Progress
    from tutor.widgets.desk import Desk
    from tutor.workspace import Workspace

    with tempfile.TemporaryDirectory(prefix="prep-") as folder:
        s = Session(Desk(load(), Progress.open(None), Workspace.open(Path(folder)), Grader()), size=size)
        async with s:
            s.app.theme = theme
            await way(s)
            await s.pilot.pause(0.3)
            return s.app.export_screenshot(title=f"triton-prep: {name}")


def png(browser: Any, svg: str) -> bytes:
    from PIL import Image

    page = browser.new_page(viewport={"width": 1720, "height": 1080})
    page.set_content(f'<body style="margin:0">{svg}</body>')
    page.locator("svg").evaluate("svg => svg.style.width = (svg.viewBox.baseVal.width * 0.75) + 'px'")
    picture = Image.open(io.BytesIO(page.locator("svg").screenshot()))
    page.close()
    out = io.BytesIO()
    picture.convert("RGB").quantize(COLOURS).save(out, "PNG", optimize=True)
    return out.getvalue()


def main() -> None:
    from playwright.sync_api import sync_playwright

    from tests.app.views import SIZES, VIEWS

    views = {**VIEWS, "exercise-graded": graded_bug}
    wanted = sys.argv[1:] or list(views)
    drawn: dict[str, str] = {}
    for name in wanted:
        for columns, rows in SIZES:
            for words, theme in THEMES.items():
                file = f"{name}-{columns}x{rows}-{words}.png"
                drawn[file] = asyncio.run(draw(name, views[name], (columns, rows), theme))
    folder = ROOT / "docs" / "screens"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for file, svg in drawn.items():
            (folder / file).write_bytes(png(browser, svg))
        browser.close()
    total = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{len(drawn)} pictures drawn; docs/screens holds {total / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
