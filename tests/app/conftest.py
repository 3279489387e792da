"""The app on a sample course, with a workspace of its own and a stand-in grader."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.app.driver import Session
from tests.app.sample_course import COURSE
from tutor.grading import Grader
from tutor.progress import Progress
from tutor.widgets.desk import Desk
from tutor.workspace import Workspace

FAKE_GRADER = Path(__file__).resolve().parent.parent / "fake_grader.py"


@pytest.fixture
def new_desk(tmp_path: Path) -> Iterator[Callable[[], Desk]]:
    """Each call is one more start of the app on the same workspace."""
    graders: list[Grader] = []
    progresses: list[Progress] = []

    def make() -> Desk:
        workspace = Workspace.open(tmp_path / "workspace")
        progress = Progress.open(workspace.progress_file, aliases=COURSE.aliases)
        grader = Grader([sys.executable, str(FAKE_GRADER)])
        graders.append(grader)
        progresses.append(progress)
        return Desk(COURSE, progress, workspace, grader)

    yield make
    for grader in graders:
        grader.kill()
    for progress in progresses:
        progress.close()


@pytest.fixture
def session(new_desk: Callable[[], Desk]) -> Callable[..., Session]:
    def make(**options: object) -> Session:
        return Session(new_desk(), **options)  # type: ignore[arg-type]

    return make
