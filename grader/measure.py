"""The judge's side of timing: ask a fresh runner, then rank the kernel against the hardware's measured limit."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from grader.expectation import seed_of
from grader.failures import Refused, RunnerGone

if TYPE_CHECKING:
    from grader.grade import Grade
    from grader.judge import Judge

LIMIT = 240.0  # seconds for one timing run, torch.compile's first compile included
NOISY = 0.15  # spread (p80 - p20) over the median from which no rank is given


def measure(judge: Judge, grade: Grade) -> None:
    """Fill the verdict's `timing`, or say in its notes why there is none."""
    verdict, problem = grade.verdict, grade.problem
    assert problem.timing is not None
    started = time.perf_counter()
    grade.emit({"event": "stage", "name": "timing", "state": "started"})
    request = {
        "op": "time",
        "exercise": problem.slug,
        "solution": str(grade.submission.exercise.solution),
        "seed": seed_of(grade.options.seed, problem, problem.cases[0], 7),
        "compiled": grade.options.time is True,  # its compile takes seconds: only when timing is asked for
    }
    try:
        # it draws its own large inputs on the GPU, and times the solution beside the learner's kernel
        course = [str(grade.submission.exercise.problem.parents[2]), str(grade.submission.exercise.solution)]
        with judge.runner(grade, "cuda", [], readable=course) as runner:
            reply = runner.process.ask(request, LIMIT)
    except (Refused, RunnerGone) as error:
        verdict.notes.append(f"timing failed: {error}")
        return
    seconds = time.perf_counter() - started
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
    verdict.timing = ranked(reply)
    if grade.options.time is not True:
        verdict.notes.append("torch.compile was not timed: --time does")
    verdict.notes += [str(note) for note in reply.get("notes", [])]


def ranked(reply: dict[str, Any]) -> dict[str, Any]:
    """The verdict's timing section."""
    samples: dict[str, list[float]] = reply["samples"]
    median, p20, p80 = (round(float(v), 3) for v in samples["median_us"])
    nbytes, flops = reply["work"]
    gb_per_s = nbytes / median / 1000
    tflop_per_s = flops / median / 1e6
    copy = float(reply["limits"]["copy_gb_per_s"])
    peak = reply["limits"].get("matmul_tflop_per_s")
    share = tflop_per_s / float(peak) if reply["kind"] == "compute" and peak else gb_per_s / copy
    fair, fast = reply["thresholds"]
    rank = "fast" if share >= fast else "fair" if share >= fair else "slow"
    if (p80 - p20) / median > NOISY:
        rank = "too_noisy"
    rounded = {name: round(float(values[0]), 3) for name, values in samples.items() if name != "median_us"}
    return {
        "case": reply["case"],
        "median_us": median,
        "p20_us": p20,
        "p80_us": p80,
        "eager_us": rounded.get("eager_us"),
        "compiled_us": rounded.get("compiled_us"),
        "solution_us": rounded.get("solution_us"),
        "gb_per_s": round(gb_per_s, 1),
        "tflop_per_s": round(tflop_per_s, 3),
        "percent_of_limit": round(100 * share, 1),
        "limit": reply["kind"],
        "limit_measured": {k: round(float(v), 1) for k, v in reply["limits"].items()},
        "rank": rank,
        "in_l2": bool(reply["working_set"] < reply["l2_bytes"]),
    }
