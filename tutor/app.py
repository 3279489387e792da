"""The terminal app's way in. Nothing in this process imports torch or triton; the grader is a process of its own."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tutor.drill.opening import Wanted


def prepare_terminal(reduced_motion: bool) -> None:
    """textual reads these when it is imported; what the learner has set wins."""
    if os.environ.get("SSH_CONNECTION") or reduced_motion:
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
        os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")


def run(workspace: Path | None = None, *, drill: Wanted | str | None = None) -> int:
    """Opens the app on a workspace (default: `default_workspace()`). Returns the exit code.

    `drill` opens one at once: a new one, "resume" for the unfinished one, "choose" for the choice of plans.
    """
    from tutor.course.loader import CourseErrors, load
    from tutor.progress import Progress, minutes_of
    from tutor.workspace import Workspace, WorkspaceError, default_workspace

    gc.disable()  # a tenth of the start is collecting what is still needed; the app turns it on after the first paint
    place = workspace or default_workspace()
    try:
        course = load()
        # stubs that came with an update are written after the first paint
        folder = Workspace.open(place, create=not place.exists())
    except CourseErrors as error:
        print(error, file=sys.stderr)
        return 3
    except WorkspaceError as error:
        print(error, file=sys.stderr)
        return 2
    progress = Progress.open(folder.progress_file, aliases=course.aliases, minutes=minutes_of(course))
    prepare_terminal(progress.setting("motion") == "reduced")

    from tutor.grading import Grader
    from tutor.screens.terminal import TritonPrepApp
    from tutor.widgets.desk import Desk

    grader = Grader()
    atexit.register(grader.kill)
    app = TritonPrepApp(Desk(course, progress, folder, grader), (*folder.notices, *progress.notices))
    app.drill_wanted = drill
    app.offers_tour = folder.writable and not (progress.setting("tour") or progress.resume() or progress.states())
    try:
        code = app.run()
    finally:
        grader.kill()
        if unkept := progress.parting():
            print(unkept, file=sys.stderr)
        progress.close()
    return app.return_code or code or 0
