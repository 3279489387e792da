"""Draw the README's picture: the app on an exercise, with the verdict of a real grade. `python docs/picture.py`"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BUG = "m03.bug.fill"  # its code is what the learner is shown to have written: padding of 0 before a maximum
COLUMNS, ROWS = 112, 32  # from 110 columns on, task, code and result stand side by side


async def draw(workspace: Path, out: Path) -> None:
    from tutor.answers import bug_source
    from tutor.course.loader import load
    from tutor.course.model import Bug
    from tutor.grading import Grader
    from tutor.progress import Progress
    from tutor.screens.terminal import TritonPrepApp
    from tutor.widgets.desk import Desk
    from tutor.workspace import Workspace

    course, folder, grader = load(), Workspace.open(workspace), Grader()
    bug = course.item(BUG)
    item = course.exercise_item(bug.exercise) if isinstance(bug, Bug) else None
    if not isinstance(bug, Bug) or item is None:
        raise SystemExit(f"{BUG} is no bug item with an exercise: name another one here")
    folder.file(bug.exercise).write_text(bug_source(bug), encoding="utf-8")
    progress = Progress.open(None)
    await grader.start()
    app = TritonPrepApp(Desk(course, progress, folder, grader), warm_grader=False)
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await app.action_open_item(item.id)
        await pilot.pause(0.5)
        await pilot.press("g")
        while not progress.state(item.id).attempts:
            await pilot.pause(0.1)
        await pilot.pause(0.5)
        out.write_text(app.export_screenshot(title="triton-prep"), encoding="utf-8")
    await grader.close()


def main() -> None:
    os.environ["TERM"], os.environ["COLORTERM"] = "xterm-256color", "truecolor"
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(draw(Path(folder), ROOT / "docs" / "exercise.svg"))


if __name__ == "__main__":
    main()
