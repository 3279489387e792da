"""Pictures of every view on the real course, at 80×24 and 140×40, dark and light, into docs/screens/.

Run:  python docs/screens.py [NAME …]
The views are those of tests/app/views.py that need no kernel, and docs/kernel_views.py, which are graded, compiled and
run for real: how long the compiler view and the access map took to open is printed. Needs Chromium, playwright and
pillow, which turn textual's SVG into a PNG of few colours, a tenth of its size.
"""

from __future__ import annotations

import asyncio
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from kernel_views import KERNEL_VIEWS, OPENED, KernelView, Way, timed  # noqa: E402

from tests.app.driver import Session  # noqa: E402
from tests.app.test_drill import begin  # noqa: E402
from tests.app.views import SIZES, way_to  # noqa: E402
from tests.app.ways import NOON  # noqa: E402
from tutor.screens.home import HomeScreen  # noqa: E402

THEMES = {"dark": "textual-dark", "light": "prep-light"}
COLOURS = 32
FOLDER = ROOT / "docs" / "screens"
DAY = 86400.0
FROM_TESTS = (
    "home", "outline", "lesson", "quiz-answered", "bug-wrong-line", "match", "walkthrough", "predict-answered",
    "open-answered", "glossary", "help", "settings", "keys", "palette", "tour-exercise",
)  # fmt: skip


def history(s: Session) -> None:
    """Three weeks of somebody's answers, one in five of them wrong."""
    from tutor.course.course import kind_of

    progress = s.desk.progress
    items = [item for item in s.desk.course.items() if kind_of(item) in ("quiz", "bug", "match")][:60]
    now = progress.clock
    for number, item in enumerate(items):
        progress.clock = lambda number=number: NOON - DAY * (21 - number // 3)  # type: ignore[misc]
        right = number % 5 != 4
        progress.record_answer(item.id, kind_of(item), correct=right, score=float(right), seconds=40 + number)
    progress.clock = now


async def home_due(s: Session) -> None:
    history(s)
    s.app.screen.refresh_standing()  # type: ignore[attr-defined]
    await s.pilot.pause()


async def stats(s: Session) -> None:
    history(s)
    await s.app.run_action("stats")
    await s.until_shown("Days in a row")


async def review(s: Session) -> None:
    history(s)
    await s.keys("r")
    await s.until_shown("Review 1/")


async def drill_task(s: Session) -> None:
    from tutor.drill.plan import find_plan, load_plans

    plan = find_plan(load_plans(), "bug-blitz")
    assert plan is not None
    await begin(s, plan=plan)
    await s.keys("n")


async def drill_report(s: Session) -> None:
    from tutor.drill.plan import find_plan, load_plans
    from tutor.screens.drill_report import DrillReportScreen

    plan = find_plan(load_plans(), "phone-screen")
    assert plan is not None
    screen = await begin(s, plan=plan)
    await s.keys("n")
    for number, task in enumerate(screen.sitting.tasks()):
        screen.sitting.hand_in(task, {}, score=float(number != 2))
    screen.sitting.finish()
    await screen._enter()
    await s.until(lambda: isinstance(s.app.screen, DrillReportScreen))


PLAIN_VIEWS: dict[str, Way] = {
    **{name: way_to(name) for name in FROM_TESTS},
    "home-due": home_due,
    "stats": stats,
    "review": review,
    "drill-task": drill_task,
    "drill-report": drill_report,
}


def session(folder: str, size: tuple[int, int]) -> Session:
    from tutor.course.loader import load
    from tutor.grading import Grader
    from tutor.progress import Progress
    from tutor.widgets.desk import Desk
    from tutor.workspace import Workspace

    workspace = Workspace.open(Path(folder) / "triton-prep")
    s = Session(Desk(load(), Progress.open(None, clock=lambda: NOON), workspace, Grader()), size=size)
    s.app.animation_level = "none"
    return s


async def shots(s: Session, name: str, size: tuple[int, int]) -> dict[str, str]:
    """The screen as SVG in each theme, by the picture's name."""
    drawn = {}
    for words, theme in THEMES.items():
        s.app.theme = theme
        await s.pilot.pause(0.3)
        drawn[f"{name}-{size[0]}x{size[1]}-{words}.png"] = s.app.export_screenshot(title=f"triton-prep: {name}")
    s.app.theme = THEMES["dark"]
    return drawn


async def draw_plain(name: str, way: Way, size: tuple[int, int]) -> dict[str, str]:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        async with session(folder, size) as s:
            await way(s)
            return await shots(s, name, size)


async def draw_kernels(views: Mapping[str, KernelView], size: tuple[int, int]) -> dict[str, str]:
    """All with one grader, which is warm."""
    drawn: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        async with session(folder, size) as s:
            await s.desk.grader.start()
            opened = [name for name in OPENED if name in views]
            if opened:
                said = await timed(s, opened[0], views[opened[0]])
                print(f"{size[0]}x{size[1]}  {said}; the grader had just started", flush=True)
                await go_home(s)
            for name, view in views.items():
                said = await timed(s, name, view)
                if name in OPENED:
                    print(f"{size[0]}x{size[1]}  {said}", flush=True)
                drawn |= await shots(s, name, size)
                await go_home(s)
    return drawn


async def go_home(s: Session) -> None:
    while not isinstance(s.app.screen, HomeScreen):
        s.app.pop_screen()
        await s.pilot.pause()


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


def write(drawn: Mapping[str, str]) -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for file, svg in drawn.items():
            (FOLDER / file).write_bytes(png(browser, svg))
        browser.close()


def main() -> None:
    for name in ("VISUAL", "EDITOR", "NO_COLOR", "SSH_CONNECTION"):
        os.environ.pop(name, None)
    wanted = sys.argv[1:] or [*PLAIN_VIEWS, *KERNEL_VIEWS]
    kernels = {name: view for name, view in KERNEL_VIEWS.items() if name in wanted}
    for size in SIZES:
        drawn: dict[str, str] = {}
        for name in wanted:
            if name in PLAIN_VIEWS:
                drawn |= asyncio.run(draw_plain(name, PLAIN_VIEWS[name], size))
        if kernels:
            drawn |= asyncio.run(draw_kernels(kernels, size))
        write(drawn)
    total = sum(file.stat().st_size for file in FOLDER.iterdir())
    print(f"docs/screens holds {total / 2**20:.1f} MB")


if __name__ == "__main__":
    main()
