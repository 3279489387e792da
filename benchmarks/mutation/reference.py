"""What a call must give, and how far an output is from it: the problem's reference in float64, in units of its bound.

Written for the truth alone, beside the grader's own comparison: the two must not share a mistake.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Expected:
    native: torch.Tensor
    truth: torch.Tensor
    bound: torch.Tensor | None  # None: equality with `native` is asked


@dataclass(frozen=True)
class Call:
    name: str
    args: tuple[Any, ...]
    expected: tuple[Expected, ...]

    @property
    def large(self) -> bool:
        """Run once only, for time's sake."""
        return self.expected[0].native.numel() > 100_000

    @property
    def half_known(self) -> bool:
        """The interpreter computes bfloat16 arithmetic wrongly or not at all: what shows only there is no proof."""
        return any(isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 for a in self.args)

    @property
    def blame(self) -> str:
        """What is true of a file that is wrong here and at no call before; large and half-known calls come last."""
        return "undecided" if self.half_known else "only large" if self.large else "different"


def perform(problem: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    """One call as the problem's `call` says: the outputs, with the gradients behind them."""
    if problem.call not in ("gradient", "operator"):
        out = function(*args)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)
    *inputs, incoming = args
    leaves = [a.detach().requires_grad_() for a in inputs]
    out = function(*leaves)
    return (out.detach(), *torch.autograd.grad(out, leaves, incoming))


def expect(problem: Any, args: tuple[Any, ...]) -> tuple[Expected, ...]:
    doubles = tuple(a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args)
    natives, truths = perform(problem, problem.reference, args), perform(problem, problem.reference, doubles)
    if problem.out_dtype is not None:
        natives = tuple(n.to(problem.out_dtype(*args)) for n in natives)
    tolerance = problem.tolerance
    scales = tolerance.scale(*doubles) if tolerance.scale else None
    scales = scales if isinstance(scales, tuple) else (scales,) * len(natives)
    found = []
    for native, truth, scale in zip(natives, truths, scales, strict=True):
        bound = None
        if not tolerance.exact and native.is_floating_point():
            info = torch.finfo(native.dtype)
            bound = tolerance.ulps * info.eps * truth.abs() + info.smallest_normal * info.eps
            if scale is not None:
                bound = bound + tolerance.terms * torch.finfo(tolerance.accumulate).eps * scale.double()
            error = (native.double() - truth).abs()
            error = error[error.isfinite()]
            bound = torch.maximum(bound, 3 * error.max()) if error.numel() else bound
        found.append(Expected(native, truth.double(), bound))
    return tuple(found)


def distance(out: torch.Tensor, expected: Expected) -> float:
    """The largest error in units of the bound: at most 1 is equal, infinity where equality was asked or NaN differs."""
    if out.numel() == 0:
        return 0.0
    native, value = expected.native, out.double()
    same = (out == native) | (out.isnan() & native.isnan() if out.is_floating_point() else out == native)
    if expected.bound is None:
        return 0.0 if bool(same.all()) else float("inf")
    largest = torch.finfo(out.dtype).max
    truth = expected.truth
    same |= (truth == value) | (truth.isnan() & value.isnan())
    beyond = truth.abs() > largest * (1 - torch.finfo(out.dtype).eps)
    same |= beyond & (value.abs() >= largest) & (value.sign() == truth.sign())
    ratio = (value - truth).abs() / expected.bound
    ratio = torch.where(truth.isfinite(), ratio, torch.full_like(ratio, float("inf")))
    ratio = torch.nan_to_num(torch.where(same, torch.zeros_like(ratio), ratio), nan=float("inf"), posinf=float("inf"))
    return float(ratio.max())
