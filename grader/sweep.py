"""One exercise over its sizes: timed on the GPU beside PyTorch and the reference solution, or modelled without one.

Answers the operations "sweep" and "bench". Fields of the request: `model` (true: model, also where there is a GPU;
false: measure, and fail without one; absent: what there is), `compiled` (false: without torch.compile), `device`, and
`seed`. Measured and modelled rows never stand in one answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from grader.expectation import seed_of
from grader.failures import Cancelled, Refused, RunnerGone, Unavailable
from grader.grade import Emit, Grade, Options, Submission, versions
from grader.judge import Judge
from grader.measure import NONSENSE, request_of, timed_apart
from grader.modelled import device_of, modelled
from grader.problem import Problem, Timing
from grader.ranking import ranked
from grader.verdict import Verdict

NO_GPU = "timing needs a GPU, and PyTorch sees none here: --model gives the modelled table"


def answer(
    judge: Judge, submission: Submission, request: dict[str, Any], emit: Emit, cancelled: Callable[[], bool]
) -> dict[str, Any]:
    """`{"exercise", "sha256", "model", "device", "versions", "rows"}`, a row a size. Raises Unavailable, Cancelled."""
    problem = judge.problem(submission.exercise)
    here = "cuda" in judge.warm
    wanted = request.get("model")
    if wanted is False and not here:
        raise Unavailable(NO_GPU)
    if not problem.timings:
        raise Unavailable(f"{problem.slug} has no size that is timed")
    digest = hashlib.sha256(submission.source).hexdigest()
    head = {"exercise": problem.slug, "sha256": digest, "versions": versions()}
    if wanted or not here:
        device = device_of(request)
        rows = modelled(judge, submission, problem, problem.timings, device, emit, cancelled)
        return {**head, "model": True, "device": device.name, "rows": rows}
    rows = _measured(judge, submission, problem, request, emit, cancelled)
    return {**head, "model": False, "device": judge.device_name, "rows": rows}


def _measured(
    judge: Judge,
    submission: Submission,
    problem: Problem,
    request: dict[str, Any],
    emit: Emit,
    cancelled: Callable[[], bool],
) -> list[dict[str, Any]]:
    options = Options(backend="cuda", time=request.get("compiled") is not False, seed=int(request.get("seed") or 0))
    verdict = Verdict(problem.slug, problem.title, submission.file, "", options.seed, "cuda", judge.device_name, {})
    grade = Grade(submission, problem, options, "cuda", lambda event: None, cancelled, verdict, judge.drawings)
    rows = []
    for number, timing in enumerate(problem.timings):
        if cancelled():
            raise Cancelled
        emit({"event": "progress", "done": number, "total": len(problem.timings), "words": timing.name})
        rows.append(_row(judge, grade, number, timing))
    emit({"event": "progress", "done": len(rows), "total": len(rows), "words": "done"})
    return rows


def _row(judge: Judge, grade: Grade, number: int, timing: Timing) -> dict[str, Any]:
    """A size as in a verdict's `timing`, or `reason`: why there is no time."""
    seed = seed_of(grade.options.seed, grade.problem, grade.problem.cases[0], 7 + number)
    request = {**request_of(grade, seed), "size": number}
    unknown = {"case": timing.name, "limit_kind": timing.limit}
    try:
        reply = timed_apart(judge, grade, request)
    except (Refused, RunnerGone) as error:
        return {**unknown, "reason": str(error)}
    if reply.get("event") != "timed" or reply.get("wrong"):
        return {**unknown, "reason": str(reply.get("wrong") or reply.get("message"))}
    try:
        notes = [str(note) for note in reply.get("notes", [])]
        return {**ranked(reply), "limit_kind": timing.limit, "model": False, "notes": notes}
    except NONSENSE as error:
        return {**unknown, "reason": f"the process answered nonsense ({type(error).__name__})"}
