"""The terminal app's way in. Nothing in this process imports torch or triton; the grader is a process of its own."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path


def prepare_terminal(reduced_motion: bool) -> None:
    """textual reads these when it is imported; what the learner has set wins."""
    if os.environ.get("SSH_CONNECTION") or reduced_motion:
        os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
        os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")


def run(workspace: Path | None = None) -> int:
    """Opens the app on a workspace (default: `default_workspace()`). Returns the exit code."""
    from tutor.course.loader import CourseErrors, load
    from tutor.progress import Progress
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
    progress = Progress.open(folder.progress_file, aliases=course.aliases)
    prepare_terminal(progress.setting("motion") == "reduced")

    from tutor.grading import Grader
    from tutor.screens.terminal import TritonPrepApp
    from tutor.widgets.desk import Desk

    grader = Grader()
    atexit.register(grader.kill)
    app = TritonPrepApp(Desk(course, progress, folder, grader), (*folder.notices, *progress.notices))
    try:
        code = app.run()
    finally:
        grader.kill()
        progress.close()
    return app.return_code or code or 0
