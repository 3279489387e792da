"""What the other warm processes tell beside the values: the offline compile, and exact bounds beside a GPU run."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader import checks, offline
from grader.case_runner import error_outcome
from grader.failures import Cancelled, Refused, RunnerGone
from grader.grade import Grade
from grader.problem import Case
from grader.program_order import Passed, depends_on_order
from grader.runner_process import RunnerProcess

if TYPE_CHECKING:
    from grader.judge import Judge

BOUNDS_SECONDS, BOUNDS_CALL_LIMIT = 10.0, 5.0  # of the whole check, and of one call


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
    grade.verdict.compile = rows
    for row in rows:
        reason = offline.too_large(target, row["shared_bytes"])
        if reason is not None:
            grade.verdict.notes.append(f"{row['kernel']} {reason}")


def bounds(judge: Judge, grade: Grade) -> None:
    """On a GPU a read past the end may hit valid memory: the interpreter's exact check looks at the small cases."""
    cases = [case for case in grade.problem.cases if not case.needs_gpu]
    until = time.monotonic() + BOUNDS_SECONDS
    undefined = 0
    passed: list[Passed] = []
    try:
        with judge.runner(grade, "interpreter", [grade.values(case) for case in cases]) as runner:
            runner.limit = BOUNDS_CALL_LIMIT
            for case in cases:
                if time.monotonic() > until:
                    return
                values = grade.values(case)
                outcome = checks.call(runner, values)
                grade.verdict.add_traffic(outcome, values, grade.problem)
                if outcome.status == "passed" and values.size:
                    passed.append(Passed(case, values.size, replace(outcome, outputs=())))
                if outcome.status == "out_of_bounds":
                    grade.verdict.out_of_bounds = (case, values, outcome)
                    return
                if outcome.status in ("wrong_answer", "not_written"):
                    again = checks.call(runner, values)  # the first call of a kernel may differ from later ones
                    wrong = again.status != "passed" and again.undefined > 0
                    if wrong and checks.call(runner, values, filler="zero").status == "passed":
                        grade.verdict.filler_failure = (case, values, outcome)
                        return
                elif outcome.status == "passed" and outcome.undefined and undefined < 2:
                    undefined += 1
                    outcome = checks.other_filler(runner, values, outcome)
                    if outcome.status != "passed":
                        grade.verdict.filler_failure = (case, values, outcome)
                        return
                if outcome.status not in ("passed", "compile_error", "runtime_error"):
                    return  # the GPU's run fails here too, or earlier: what comes later is not the first failure
            grade.verdict.unordered = depends_on_order(grade, runner, passed)
    except (Refused, RunnerGone, Cancelled):
        return


def device_target() -> str:
    major, minor = torch.cuda.get_device_capability()
    return f"sm_{major}{minor}"
