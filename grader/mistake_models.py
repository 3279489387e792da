"""Which named mistake explains the outputs: models of the exercise's mistakes against every case that was run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from grader.case_runner import Outcome, placed
from grader.compare import compare, expect
from grader.expectation import Values
from grader.problem import Mistake, Problem
from grader.verdict import Failure

LARGE = 2**18  # elements: passed cases beyond say nothing that a smaller one does not


def model_of(mistake: Mistake, values: Values) -> tuple[torch.Tensor, ...] | Callable[[Any], bool] | None:
    """What the mistaken kernel returns, a test of what it returns, or None where the mistake cannot show."""
    modelled: Any = mistake.model(*[placed(a) if isinstance(a, torch.Tensor) else a for a in values.args])
    if modelled is None or callable(modelled):
        return modelled
    return tuple(modelled) if isinstance(modelled, (tuple, list)) else (modelled,)


def gives(problem: Problem, mistake: Mistake, values: Values, outcome: Outcome) -> bool | None:
    """Whether the mistake's model gives this output, within the dtype's error; None where the model cannot tell."""
    try:
        modelled = model_of(mistake, values)
        if modelled is None or not outcome.outputs:
            return None
        if callable(modelled):
            # a test that fails may only mean that this case shows too little
            return modelled(outcome.outputs if len(outcome.outputs) > 1 else outcome.outputs[0]) or None
        return _all_equal(problem, modelled, outcome, values)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return None  # a model may not apply to this case's shapes


def denies(mistake: Mistake, values: Values) -> bool:
    """Whether a case that passed could not have passed with this mistake."""
    if values.size > LARGE:
        return False
    try:
        modelled = model_of(mistake, values)
        if modelled is None or callable(modelled):
            return False
        pairs = zip(modelled, values.expected, strict=False)
        return any(m.shape == e.native.shape and not compare(m.to(e.native.dtype), e).right for m, e in pairs)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False


@dataclass(frozen=True)
class Weighed:
    """A mistake beside the cases that were run: how many outputs it explains, how many speak against it."""

    mistake: Mistake
    first: bool | None  # the failure that is explained
    explains: int
    against: int


def best_mistake(problem: Problem, failure: Failure, tried: Sequence[Failure]) -> Mistake | None:
    """The mistake that explains the failure and most other cases.

    One that leaves the failure open (its case is too small to tell) counts only if nothing speaks against it.
    """
    weighed = [w for mistake in problem.mistakes if (w := _weigh(problem, mistake, failure, tried)) is not None]
    sure = [w for w in weighed if w.first and w.explains >= w.against]
    open_ = [w for w in weighed if not w.first and w.explains and not w.against]
    best = max(sure or open_, key=lambda w: w.explains - w.against, default=None)  # of equals the first
    return best.mistake if best else None


def _weigh(problem: Problem, mistake: Mistake, failure: Failure, tried: Sequence[Failure]) -> Weighed | None:
    """None where the mistake would have given another output than the failure's."""
    first = gives(problem, mistake, failure.values, failure.outcome)
    if first is False:
        return None
    explains, against = int(first is True), 0
    for other in tried:
        if other.outcome.status == "passed":
            against += denies(mistake, other.values)
        elif other.outcome.outputs:
            said = gives(problem, mistake, other.values, other.outcome)
            explains, against = explains + (said is True), against + (said is False)
    return Weighed(mistake, first, explains, against)


def _all_equal(problem: Problem, modelled: tuple[torch.Tensor, ...], outcome: Outcome, values: Values) -> bool:
    for model, out, expected in zip(modelled, outcome.outputs, values.expected, strict=False):
        if model.shape != out.shape:
            return False
        native = model.to(out.dtype)
        if out.dtype.is_floating_point:
            # the model is one rounding of the mistake, the kernel another: allow the case's own bound and some
            near = expect(native, model.to(torch.float64), problem.tolerance, None)
            bound = torch.maximum(near.bound, 2 * expected.bound)
            bound = bound + 4 * torch.finfo(out.dtype).eps * model.to(torch.float64).abs()
            bound = torch.where(torch.isfinite(model), bound, torch.zeros_like(bound))
            same = (out.to(torch.float64) - model.to(torch.float64)).abs() <= bound
            same |= native == out
            same |= model.isnan() & out.isnan()
        else:
            same = native == out
        # a model speaks of what was written; a mistake may leave the rest untouched
        if not bool(same.all()):
            return False
    return True
