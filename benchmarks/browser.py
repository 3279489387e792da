"""A browser on `triton-prep serve`: opens the course, takes a quiz, grades vector_add, draws docs/serve.png.

Run:  python -m benchmarks.browser [--chromium /usr/bin/chromium] [--picture docs/serve.png]
Needs Chromium and `pip install playwright`. Prints seconds from the link to the first picture, from g to the kept
verdict, and what is left of the tab's processes and their memory once it is closed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader import catalog
from tests.web.served import Served, serving, wait_for, without_tour
from tutor.course.loader import load
from tutor.course.model import Quiz
from tutor.progress import Progress

REPOSITORY = Path(__file__).resolve().parent.parent
SIZE = {"width": 1180, "height": 760}
SLUG = "vector_add"


def passed(workspace: Path, item_id: str) -> bool:
    file = workspace / ".triton-prep" / "progress.sqlite3"
    if not file.exists():
        return False
    progress = Progress.open(file)
    try:
        return progress.state(item_id).passed
    finally:
        progress.close()


def jump(page: Any, words: str) -> None:
    """Through the palette, as a learner would; what follows waits for what is kept, not for pixels."""
    page.keyboard.press("Control+p")
    page.wait_for_timeout(500)
    page.keyboard.type(words, delay=20)
    page.wait_for_timeout(1500)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_timeout(1000)


def until(page: Any, condition: Callable[[], bool], what: str) -> None:
    wait_for(lambda: condition() or page.wait_for_timeout(50), what)


def visit(page: Any, served: Served, workspace: Path, picture: Path | None) -> dict[str, object]:
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    begun = time.perf_counter()
    page.goto(served.link)
    page.wait_for_selector("body.-first-byte", timeout=60_000)
    opened = time.perf_counter() - begun
    until(page, lambda: (workspace / ".triton-prep").is_dir() and len(served.below()) > 0, "the app starts")
    course = load()
    quiz = next(item for item in course.items() if isinstance(item, Quiz) and not item.several)
    exercise = course.exercise_item(SLUG)
    assert exercise is not None
    until(page, lambda: (workspace / "02-first-kernel" / f"{SLUG}.py").exists(), "the stubs are written")
    shutil.copy(catalog.find(SLUG).solution, workspace / "02-first-kernel" / f"{SLUG}.py")
    jump(page, quiz.id)
    page.keyboard.press(str(1 + next(index for index, option in enumerate(quiz.options) if option.correct)))
    until(page, lambda: passed(workspace, quiz.id), "the quiz is answered")
    jump(page, exercise.id)
    begun = time.perf_counter()
    page.keyboard.press("g")
    until(page, lambda: passed(workspace, exercise.id), "the verdict is kept")
    graded = time.perf_counter() - begun
    page.wait_for_timeout(1000)
    if picture is not None:
        page.screenshot(path=str(picture))
    tab = served.below()
    page.close()
    wait_for(lambda: not served.below(), "the tab's processes end")
    return {
        "open_s": round(opened, 2), "grade_s": round(graded, 2), "quiz": quiz.id, "exercise": exercise.id,
        "processes_of_the_tab": len(tab), "left_when_closed": len(served.below()),
        "requests_elsewhere": sorted({url for url in requests if not url.startswith((served.address, "data:"))}),
    }  # fmt: skip


def browse(chromium: str, picture: Path | None, environment: dict[str, str]) -> dict[str, object]:
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        workspace = Path(folder)
        without_tour(workspace)
        with serving({**environment, "TRITON_PREP_WORKSPACE": folder}) as served:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            try:
                return visit(browser.new_page(viewport=SIZE), served, workspace, picture)
            finally:
                browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium") or "/usr/bin/chromium")
    parser.add_argument("--picture", type=Path, default=REPOSITORY / "docs" / "serve.png")
    options = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    print(json.dumps(browse(options.chromium, options.picture, environment)))


if __name__ == "__main__":
    main()
