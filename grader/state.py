"""Does a call depend on the calls before it, or on what else is current in its process? Right every time, or named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader import checks
from grader.case_runner import CaseRunner, Outcome
from grader.causes import general
from grader.expectation import Values
from grader.failures import Refused, RunnerGone
from grader.grade import Grade
from grader.problem import Case
from grader.program_order import Finding, Passed

if TYPE_CHECKING:
    from grader.judge import Judge

WRONG_DEVICE = (
    "Right, as long as the device of the tensors is the current one. With the tensors on cuda:1 while cuda:0 is "
    "current, the call fails ({status}): {error}. PyTorch's own operations run where their tensors lie; Triton "
    "launches on the current device. Put allocation and launch inside `with torch.cuda.device({tensor}.device):`, or "
    "inside `with torch.cuda.device_of({tensor}):`, which does nothing for a tensor on the CPU."
)
MAY_BE_STATE = ("wrong_answer", "not_written", "wrong_shape", "wrong_dtype", "runtime_error", "out_of_bounds")


def blamed_on_earlier_calls(
    judge: Judge, grade: Grade, before: Case | None, values: Values, outcome: Outcome
) -> Outcome:
    """An outcome that failed after other cases: where the same call is right in a new process, state is at fault."""
    if before is None or outcome.cause == "wrong_on_second_call" or outcome.status not in MAY_BE_STATE:
        return outcome
    if checks.alone(judge, grade, values) != "passed":
        return outcome
    return _after(outcome, values, grade.values(before))


def other_sizes(grade: Grade, runner: CaseRunner, passed: Sequence[Passed]) -> Finding | None:
    """The cases came smallest first. Now small after large, and the dtypes in the reverse order."""
    last = passed[-1]
    for again in _sequence(grade, passed):
        if not again.light:
            continue
        values = grade.values(again.case)
        outcome = checks.call(runner, values)
        if outcome.status != "passed":
            return again.case, values, _after(outcome, values, grade.values(last.case))
        last = again
    return None


def _sequence(grade: Grade, passed: Sequence[Passed]) -> list[Passed]:
    """The smallest case of each combination of dtypes, the combination that came first at the end."""
    by_dtypes: dict[tuple[torch.dtype, ...], Passed] = {}
    for p in passed:
        dtypes = _dtypes(grade.values(p.case))
        if dtypes not in by_dtypes or p.size < by_dtypes[dtypes].size:
            by_dtypes[dtypes] = p
    return list(by_dtypes.values())[::-1]


def _after(outcome: Outcome, values: Values, earlier: Values) -> Outcome:
    other = "dtype" if _dtypes(values) != _dtypes(earlier) else "size"
    message = (
        f"Right in a new process, wrong after a call with another {other}: {outcome.message}. Something is kept "
        f"between calls: a buffer, a cache, a tuned choice."
    )
    return replace(outcome, message=message, cause=f"wrong_after_another_{other}")


def _dtypes(values: Values) -> tuple[torch.dtype, ...]:
    return tuple(a.dtype for a in values.args if isinstance(a, torch.Tensor))


def another_stream(grade: Grade, runner: CaseRunner, passed: Sequence[Passed]) -> Finding | None:
    """On CUDA: on a side stream, with the default stream busy. A launch that goes elsewhere is not done in time."""
    case = min(passed, key=lambda p: p.size).case
    values = grade.values(case)
    outcome = checks.call(runner, values, elsewhere="stream")
    if outcome.status == "passed":
        return None
    again = checks.call(runner, values)
    if again.status != "passed":  # on the default stream too, by now
        return case, values, checks.wrong_later(again)
    message = (
        f"Right on the default stream, wrong while another stream is the current one: {outcome.message}. Launch on the "
        "current stream, and wait for no other."
    )
    return case, values, replace(outcome, status="wrong_answer", cause="ignores_current_stream", message=message)


def another_device(judge: Judge, grade: Grade, passed: Sequence[Passed]) -> None:
    """With two GPUs: a remark where the call fails with its tensors on the second one while the first is current.

    In a process of its own, which an illegal access may end, and only if the call is right there with the second GPU
    current: what fails is then due to nothing else. A remark and no failure: Triton launches on the current device, and
    nobody but the caller or the launcher sets it.
    """
    if torch.cuda.device_count() < 2:
        return
    case = passed[0].case
    values = grade.values(case)
    try:
        with judge.runner(grade, "cuda", [values]) as runner:
            there = checks.call(runner, values, elsewhere="second GPU")
            if there.status == "passed":
                outcome = checks.call(runner, values, elsewhere="device")
    except (Refused, RunnerGone) as error:
        there = Outcome("crashed", str(error))
    if there.status != "passed":
        grade.verdict.notes.append(f"not tried with another device current: on cuda:1 the call fails: {_said(there)}")
    elif outcome.status != "passed":
        tensor = next(
            n for n, a in zip(grade.problem.parameters, values.args, strict=False) if isinstance(a, torch.Tensor)
        )
        message = WRONG_DEVICE.format(status=outcome.status.replace("_", " "), error=_said(outcome), tensor=tensor)
        grade.verdict.remark = case, general("wrong_device_current", message, outcome.line)


def _said(outcome: Outcome) -> str:
    """In Triton's own words: that a pointer may be one of the CPU's, which they take it for, is not so here."""
    lines = outcome.whole.strip().splitlines() if outcome.cause == "tensor_on_the_cpu" else []
    return (lines[-1] if lines else str(outcome.message)).rstrip(".")
