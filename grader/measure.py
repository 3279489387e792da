"""The judge's side of timing: ask a fresh runner, then rank the kernel against the hardware's measured limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from grader.advice import advice
from grader.clocks import Clocks
from grader.expectation import seed_of
from grader.failures import Refused, RunnerGone
from grader.ranking import ranked

if TYPE_CHECKING:
    from grader.grade import Grade
    from grader.judge import Judge
    from grader.verdict import Verdict

LIMIT = 240.0  # seconds for one timing run, torch.compile's first compile included
# what reading an answer may raise: it comes from a process that runs the learner's code, and may be anything
NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

__all__ = ["LIMIT", "NONSENSE", "keep", "measure", "ranked", "request_of", "timed_apart"]


def request_of(grade: Grade, seed: int) -> dict[str, Any]:
    """What a runner is asked for a timing run."""
    return {
        "op": "time",
        "exercise": grade.problem.slug,
        "solution": str(grade.submission.exercise.solution),
        "seed": seed,
        "compiled": grade.options.time is True,  # its compile takes seconds: only when timing is asked for
    }


def timed_apart(judge: Judge, grade: Grade, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of a fresh runner, and the GPU's clock while it measured. Raises Refused and RunnerGone.

    It draws its own large inputs on the GPU, and times the solution beside the learner's kernel.
    """
    course = [str(grade.submission.exercise.problem.parents[2]), str(grade.submission.exercise.solution)]
    with judge.turns.alone(grade.cancelled):
        with judge.runner(grade, "cuda", [], readable=course) as runner, Clocks() as clocks:
            reply = runner.process.ask(request, LIMIT)
    last = reply.get("measuring_s")
    return {**reply, "sm_mhz": clocks.range(last) if isinstance(last, float) else None}


def keep(verdict: Verdict, reply: dict[str, Any]) -> None:
    """The verdict's timing section, with what would move it up."""
    timing = ranked(reply)
    verdict.timing = {**timing, "advice": advice(timing, verdict.compile, verdict.traffic)}


def measure(judge: Judge, grade: Grade) -> None:
    """Fill the verdict's `timing`, or say in its notes why there is none."""
    verdict, problem = grade.verdict, grade.problem
    assert problem.timing is not None
    started, waited = time.perf_counter(), judge.turns.waited
    grade.emit({"event": "stage", "name": "timing", "state": "started"})
    request = request_of(grade, seed_of(grade.options.seed, problem, problem.cases[0], 7))
    try:
        reply = timed_apart(judge, grade, request)
    except (Refused, RunnerGone) as error:
        verdict.notes.append(f"timing failed: {error}")
        return
    seconds = time.perf_counter() - started - (judge.turns.waited - waited)
    verdict.stages.append({"name": "timing", "seconds": round(seconds, 4)})
    grade.emit({"event": "stage", "name": "timing", "state": "done", "seconds": seconds})
    if reply.get("event") != "timed":
        verdict.fail(
            str(reply.get("status")),
            f"while timing {problem.timing.name}: {reply.get('message')}",
            reply.get("cause"),
            reply.get("line"),
        )
        return
    if reply.get("wrong"):
        verdict.fail("wrong_answer", f"{problem.timing.name}: {reply['wrong']}", "wrong_when_timed")
        return
    try:
        keep(verdict, reply)
    except NONSENSE as error:
        message = f"while timing {problem.timing.name}: the process answered nonsense ({type(error).__name__})"
        verdict.fail("crashed", message, "crashed")
        return
    if grade.options.time is not True:
        verdict.notes.append("torch.compile was not timed: --time does")
    verdict.notes += [str(note) for note in reply.get("notes", [])]
