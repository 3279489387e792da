"""After a failure: a few more cases, so that mistakes that look alike in one case can be told apart."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, replace

import torch

from grader import checks
from grader.case_runner import CaseRunner
from grader.causes import OF_STATE
from grader.expectation import Values
from grader.grade import Grade
from grader.mistake_models import best_mistake
from grader.verdict import Failure, case_row

TELLING = ("wrong_answer", "not_written", "out_of_bounds")
BUDGET = 3.0  # seconds of further calls after a failure; on an idle machine they take a tenth of it
ENOUGH, MOST = 4, 10  # further failures whose output can be looked at: where one mistake is known, and where none is
LARGE = 2**18  # elements


@dataclass(frozen=True)
class Evidence:
    """What further cases gave, those that passed among them, and the smallest one that failed like the failure."""

    tried: list[Failure]
    smallest: Failure


def gather(grade: Grade, runner: CaseRunner) -> None:
    """Look further where that may tell more; the smallest failing case becomes the failure."""
    verdict = grade.verdict
    failure = verdict.failure
    if failure is None or failure.outcome.status not in TELLING or failure.outcome.cause in OF_STATE:
        return
    names = {row["name"] for row in verdict.cases if row["status"] == "passed"}
    found = look(grade, runner, failure, names)
    verdict.tried, verdict.smallest = found.tried, found.smallest
    # how many further cases were reached depends on the machine: only the one that is told of is shown
    least = found.smallest
    place = next(n for n, case in enumerate(grade.problem.cases) if case.name == least.case.name)
    verdict.cases[place] = case_row(least.case, least.outcome)


def look(grade: Grade, runner: CaseRunner, failure: Failure, passed: Collection[str]) -> Evidence:
    """Run further cases, smallest first, and keep what came back; `passed` names those that are known to pass.

    Cases that passed count as well: a mistake that would have shown in one of them has not been made.
    """
    until = time.monotonic() + BUDGET
    runner.limit = min(runner.limit, BUDGET)
    found, tried = 0, []
    here = runner.process.warm.mode
    judged = [(case, grade.values(case)) for case in grade.problem.cases if not (case.needs_gpu and here != "cuda")]
    for case, values in sorted(judged, key=lambda item: extent(item[1])):
        if case.name in passed:
            tried.append(Failure(case, values, replace(failure.outcome, status="passed", outputs=())))
        elif case is not failure.case and extent(values) <= LARGE:
            if time.monotonic() > until or runner.process.ended or grade.cancelled() or found >= MOST:
                continue
            if found >= ENOUGH and best_mistake(grade.problem, failure, tried) is not None:
                continue
            outcome = checks.call(runner, values)
            tried.append(Failure(case, values, outcome))
            found += bool(outcome.outputs) and outcome.status != "passed"
    return Evidence(tried, smallest(runner, failure, tried))


def smallest(runner: CaseRunner, failure: Failure, tried: list[Failure]) -> Failure:
    """The smallest case that failed in the same way, with the program that stored its first wrong element."""
    alike = [other for other in tried if other.outcome.status == failure.outcome.status]
    least = min([failure, *alike], key=lambda other: extent(other.values))  # of equals the first
    if least is failure or runner.process.ended:
        return least
    return replace(least, outcome=checks.with_owner(runner, least.values, least.outcome))


def extent(values: Values) -> int:
    """Elements of the arguments and the outputs."""
    outputs = sum(e.native.numel() for e in values.expected)
    return outputs + sum(a.numel() for a in values.args if isinstance(a, torch.Tensor))
