"""What is tried beside the plain call of a case: the same again, other fillers, no kernels, operators.

Each check runs the learner's function once more in the grade's own runner, and changes an outcome or the verdict.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from grader.case_runner import CaseRunner, Outcome
from grader.compare import compare
from grader.expectation import Values
from grader.failures import Refused, RunnerGone
from grader.grade import Grade
from grader.problem import Case

if TYPE_CHECKING:
    from grader.judge import Judge

WITH_FAKE_TENSORS = ("test_faketensor", "test_aot_dispatch_dynamic")  # of opcheck's
WITHOUT_MEMORY = (
    "an operator is traced with tensors that have no memory, and a kernel of its was launched on them: inside a "
    "triton_op launch wrap_triton(kernel)[grid](…), which is recorded in place of run"
)


def call(runner: CaseRunner, values: Values, **how: Any) -> Outcome:
    """One call, where the runner's end is an outcome too."""
    try:
        return runner.run(values, **how)
    except RunnerGone as gone:
        return Outcome(gone.status, str(gone), cause=gone.status)


def with_owner(runner: CaseRunner, values: Values, outcome: Outcome) -> Outcome:
    """In the interpreter, which program stored the first wrong element."""
    bad = outcome.comparison.first_bad_index if outcome.comparison else None
    returned = len(values.expected) - len(runner.problem.mutates)
    if outcome.status != "wrong_answer" or bad is None or outcome.output >= returned:
        return outcome
    if runner.process.warm.mode != "interpreter" or outcome.cause is not None:
        return outcome
    try:
        again = runner.run(values, trace="stores")
        if again.status == "wrong_answer" and again.output == outcome.output:
            return replace(outcome, program_id=runner.owner(outcome.output, bad))
    except RunnerGone:
        pass
    return outcome


def once_more(
    judge: Judge, grade: Grade, runner: CaseRunner, case: Case, values: Values, first: Outcome
) -> tuple[Outcome, Values]:
    """On a GPU the same bits from the same values; on either backend, right on new values in the same buffers.

    Returns the outcome that counts, and the values it belongs to.
    """
    if grade.backend == "cuda":
        second = call(runner, values)
        if second.status != "passed":
            message = f"right at first, then wrong on the same input: {second.message}"
            return replace(second, message=message, cause="wrong_on_second_call"), values
        pairs = zip(first.outputs, second.outputs, strict=True)
        if not all(same_bits(a, b) for a, b in pairs):
            message = "two runs on the same input differ: programs race, or float atomics add in another order"
            return replace(second, status="nondeterministic", cause="differs_between_runs", message=message), values
    new = grade.values(case, 1)
    fresh = call(runner, new)
    if fresh.status == "passed":
        return first, values
    if alone(judge, grade, new) == "passed":  # right in a process that has not called it before: state is at fault
        message = f"right at first, then wrong on new values in the same buffers: {fresh.message}"
        return replace(fresh, message=message, cause="wrong_on_second_call"), new
    return fresh, new


def wrong_later(outcome: Outcome) -> Outcome:
    """The outcome of a call that had been right when it was made first."""
    message = f"right at first, then wrong when called once more: {outcome.message}"
    return replace(outcome, message=message, cause="wrong_on_second_call")


def alone(judge: Judge, grade: Grade, values: Values) -> str:
    """The status of one call in a runner of its own."""
    try:
        with judge.runner(grade, grade.backend, [values]) as runner:
            return call(runner, values).status
    except (Refused, RunnerGone):
        return "crashed"


def other_filler(runner: CaseRunner, values: Values, first: Outcome) -> Outcome:
    """NaN in a masked-off lane may go unseen, as tl.max ignores it: try another undefined value."""
    second = call(runner, values, filler="huge")
    return replace(second, cause="load_without_other") if second.status == "wrong_answer" else first


def filler_matters(runner: CaseRunner, grade: Grade) -> bool:
    failure = grade.verdict.failure
    if failure is not None and failure.outcome.cause == "load_without_other":
        return True
    if failure is None or failure.outcome.status not in ("wrong_answer", "not_written") or runner.process.ended:
        return False
    # both now: the failing call may have been the first, and the first may differ (autotuning, a cache)
    poisoned = call(runner, failure.values)
    if not poisoned.undefined:
        return False  # what differs from call to call is something else, such as memory that nobody has written
    zeros = call(runner, failure.values, filler="zero")
    if poisoned.status != "passed" and zeros.status == "passed":
        return True
    pairs = zip(zeros.outputs, poisoned.outputs, strict=False)
    return any(not same_bits(a, b) for a, b in pairs)


def must_matter(grade: Grade, runner: CaseRunner, passed: tuple[Case, Values]) -> None:
    """Run again with the learner's kernels replaced by no-ops: the answer must be gone."""
    values = passed[1]
    outcome = call(runner, values, noop=True)
    right = [
        position
        for position, (out, expected) in enumerate(zip(outcome.outputs, values.expected, strict=False))
        if out.numel() and position not in grade.problem.by_torch and compare(out, expected).right
    ]
    if right:
        what = "the answer" if len(values.expected) == 1 else f"output {right[0]}"
        grade.verdict.fail(
            "not_triton",
            f"{what} is right without the kernels: something else computes it (PyTorch, or a copy of an input)",
            "kernel_does_not_matter",
        )


def opcheck(grade: Grade, runner: CaseRunner, values: Values) -> None:
    try:
        results = runner.opcheck(values)
    except RunnerGone as gone:
        grade.verdict.fail(gone.status, f"during torch.library.opcheck: {gone}", gone.status)
        return
    for test, problem in results.items():
        if problem is not None and grade.verdict.status == "passed":
            cause = f"opcheck_{test.removeprefix('test_')}"
            # of a fake tensor, which stands for one in torch.compile; in torch 2.11 its address is 0
            if "Cannot access data pointer" in problem or (test in WITH_FAKE_TENSORS and "illegal memory" in problem):
                cause, problem = "wrap_triton_forgotten", f"{WITHOUT_MEMORY} ({problem})"
            grade.verdict.fail("wrong_answer", f"torch.library.opcheck, {test}: {problem}", cause)
    if grade.backend != "cuda":
        grade.verdict.notes.append("opcheck's fake-tensor and AOT tests need a GPU")


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
