"""A backward that passed once: called for one input alone, and twice on one graph, it must still be right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from grader import checks
from grader.case_runner import CaseRunner, Outcome
from grader.grade import Grade
from grader.program_order import Finding, Passed


def once_more(grade: Grade, runner: CaseRunner, passed: Sequence[Passed]) -> Finding | None:
    """The smallest case with several programs, or the smallest: for each input alone, then twice for all."""
    several = [p for p in passed if p.outcome.programs > 1] or passed
    case = min(several, key=lambda p: p.size).case
    values = grade.values(case)
    names = grade.problem.differentiable
    for position, name in enumerate(names if len(names) > 1 else ()):
        # the answer and this input's gradient are all that comes back
        alone = replace(values, expected=(values.expected[0], values.expected[1 + position]))
        outcome = checks.call(runner, alone, gradients_of=(name,))
        if outcome.status != "passed":
            message = f"with only {name} requiring a gradient (ctx.needs_input_grad): {outcome.message}"
            return case, alone, _named(outcome, "wrong_for_one_input_alone", message)
    outcome = checks.call(runner, values, backwards=2)
    if outcome.status != "passed":
        message = f"right in the first backward of a graph, then wrong in the second: {outcome.message}"
        return case, values, _named(outcome, "wrong_on_second_backward", message)
    return None


def _named(outcome: Outcome, cause: str, message: str) -> Outcome:
    return replace(outcome, cause=cause, message=message)
