"""The operation `cases`: what an exercise's cases are called, in order, without running anything of the submission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grader.grade import Submission
from grader.judge import Judge


def answer(
    judge: Judge,
    submission: Submission,
    request: dict[str, Any],
    emit: Callable[[dict[str, Any]], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    return {"cases": [case.name for case in judge.problem(submission.exercise).cases]}
