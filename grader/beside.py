"""What the other warm processes tell beside the values: the offline compile, and exact bounds beside a GPU run."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from grader import checks, compiled_otherwise, evidence, offline, stand_in_cuda
from grader.case_runner import CaseRunner, Outcome, error_outcome
from grader.expectation import Values
from grader.failures import Cancelled, Refused, RunnerGone
from grader.grade import Grade
from grader.problem import Case
from grader.program_order import Passed, depends_on_order
from grader.runner_process import RunnerProcess
from grader.verdict import Failure

if TYPE_CHECKING:
    from grader.judge import Judge

BOUNDS_SECONDS, BOUNDS_CALL_LIMIT = 10.0, 5.0  # of the whole check, and of one call
FILLED = 2  # calls that pass with undefined lanes and are tried with another filler


def compile_offline(judge: Judge, grade: Grade) -> None:
    """Compile one case of each dtype for the target; what the compiler refuses is a compile error."""
    cases: dict[tuple[str, ...], tuple[tuple[bool, int], Case]] = {}
    for case in grade.problem.cases:
        if not case.offline:
            continue
        values = grade.values(case)
        tensors = [a for a in values.args if isinstance(a, torch.Tensor)]
        dtypes = tuple(str(t.dtype) for t in tensors)
        # sizes that are multiples of 16 show whether loads vectorise
        rank = (all(n % 16 == 0 for t in tensors for n in t.shape), values.size)
        if values.size and (dtypes not in cases or rank > cases[dtypes][0]):
            cases[dtypes] = (rank, case)
    if "offline" not in judge.warm or not cases:
        return
    target = grade.options.target
    try:
        with judge.runner(grade, "offline", [grade.values(case) for _, case in cases.values()]) as runner:
            for _, case in cases.values():
                outcome = checks.call(runner, grade.values(case), noop=True)
                if outcome.status in ("compile_error", "runtime_error"):
                    grade.verdict.refused = (case, outcome)
                    return
                if outcome.status in ("crashed", "timeout"):
                    grade.verdict.notes.append(f"the offline compile for {target} did not end well: {outcome.message}")
                    return
            compiled_rows(grade, runner.process, target)
    except Refused as refused:
        # most files that cannot be imported are the run's to report; one that only the compiler refuses is not
        if refused.reply.get("status") == "compile_error":
            case = next(iter(cases.values()))[1]
            grade.verdict.refused = (case, error_outcome(refused.reply))
    except (RunnerGone, Cancelled):
        return


def compiled_rows(grade: Grade, process: RunnerProcess, target: str) -> None:
    try:
        reply = process.ask({"op": "compiled"}, 30)
    except RunnerGone:
        return
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda row: offline.compile_row(row, process.scratch, target), reply.get("kernels", [])))
    grade.verdict.compile, grade.verdict.loops = rows, compiled_otherwise.loops_of(reply.get("kernels", []))
    for row in rows:
        reason = offline.too_large(target, row["shared_bytes"])
        if reason is not None:
            grade.verdict.notes.append(f"{row['kernel']} {reason}")


def bounds(judge: Judge, grade: Grade) -> None:
    """On a GPU a read past the end may hit valid memory: the interpreter's exact check looks at the small cases.

    A file that insists on a GPU gets one made up for it.
    """
    try:
        try:
            _bounds(judge, grade)
        except (Refused, Insists):
            _bounds(judge, grade, stand_in_cuda=stand_in_cuda.properties())
    except (Refused, RunnerGone, Cancelled):
        return


class Insists(Exception):
    """A call fails in the interpreter: it may want a GPU."""


def _bounds(judge: Judge, grade: Grade, **how: Any) -> None:
    """Raises Refused, RunnerGone, Cancelled; without a stand-in for the GPU, Insists."""
    cases = [case for case in grade.problem.cases if not case.needs_gpu]
    until = time.monotonic() + BOUNDS_SECONDS
    undefined = 0
    passed: list[Passed] = []
    with judge.runner(grade, "interpreter", [grade.values(case) for case in cases], **how) as runner:
        runner.limit = BOUNDS_CALL_LIMIT
        for case in cases:
            if time.monotonic() > until:
                return
            values = grade.values(case)
            outcome = checks.call(runner, values)
            if outcome.status == "runtime_error" and values.size and not how:
                raise Insists
            grade.verdict.add_traffic(outcome, values, grade.problem)
            if outcome.status == "passed" and values.size:
                passed.append(Passed(case, values.size, replace(outcome, outputs=())))
            if outcome.status == "out_of_bounds":
                _beyond(grade, runner, Failure(case, values, outcome), passed)
                return
            undefined += outcome.status == "passed" and outcome.undefined > 0
            found = _filler(runner, values, outcome, undefined <= FILLED)
            if found is not None:
                grade.verdict.filler_failure = (case, values, found)
                return
            if outcome.status not in ("passed", "compile_error", "runtime_error"):
                return  # the GPU's run fails here too, or earlier: what comes later is not the first failure
        grade.verdict.unordered = depends_on_order(grade, runner, passed)


def _filler(runner: CaseRunner, values: Values, outcome: Outcome, try_another: bool) -> Outcome | None:
    """The outcome that shows that masked-off lanes without `other` reach the result, or None."""
    if outcome.status in ("wrong_answer", "not_written"):
        again = checks.call(runner, values)  # the first call of a kernel may differ from later ones
        wrong = again.status != "passed" and again.undefined > 0
        return outcome if wrong and checks.call(runner, values, filler="zero").status == "passed" else None
    if outcome.status == "passed" and outcome.undefined and try_another:
        other = checks.other_filler(runner, values, outcome)
        return other if other.status != "passed" else None
    return None


def _beyond(grade: Grade, runner: CaseRunner, failure: Failure, passed: list[Passed]) -> None:
    """What the other cases give in the interpreter tells which mistake leads out of bounds."""
    verdict = grade.verdict
    verdict.out_of_bounds = (failure.case, failure.values, failure.outcome)
    found = evidence.look(grade, runner, failure, {p.case.name for p in passed})
    verdict.tried_beside, verdict.smallest_beside = found.tried, found.smallest


def device_target() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"
