"""Is an output right? Error against a float64 reference, in units of the dtype and of PyTorch's own error."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.problem import Tolerance

TORCH_MULTIPLE = 3.0  # a kernel may be this much worse than PyTorch's own largest error


@dataclass(frozen=True)
class Expected:
    """One output: PyTorch's at the call's dtype, the truth in float64, and how far an element may lie from it."""

    native: torch.Tensor
    truth: torch.Tensor
    bound: torch.Tensor  # float64, of the truth's shape; zero where equality is asked

    @property
    def exact(self) -> bool:
        return not bool(self.bound.any())


@dataclass(frozen=True)
class Comparison:
    right: bool
    max_error: float
    tolerance: float  # at the worst element
    wrong: torch.Tensor  # bool, which elements are out of bounds
    first_bad_index: tuple[int, ...] | None


def expect(native: torch.Tensor, truth: torch.Tensor, tolerance: Tolerance, scale: torch.Tensor | None) -> Expected:
    """Bound for each element: see Tolerance. `native` has the dtype the learner must return."""
    truth = truth.to(torch.float64)
    if tolerance.exact or not native.dtype.is_floating_point:
        return Expected(native, truth, torch.zeros_like(truth))
    info = torch.finfo(native.dtype)
    bound = tolerance.ulps * info.eps * truth.abs() + info.smallest_normal * info.eps
    if scale is not None:
        bound = bound + tolerance.terms * torch.finfo(tolerance.accumulate).eps * scale.to(torch.float64).abs()
    error = (native.to(torch.float64) - truth).abs()
    finite = error[torch.isfinite(error)]
    if finite.numel():
        bound = torch.maximum(bound, TORCH_MULTIPLE * finite.max())
    bound = torch.where(torch.isfinite(truth), bound, torch.zeros_like(bound))  # an infinity is met exactly
    return Expected(native, truth, bound.expand_as(truth))


def compare(out: torch.Tensor, expected: Expected) -> Comparison:
    """Shapes and dtypes must already agree. NaN equals NaN; an infinity must have the truth's sign."""
    truth = expected.truth
    if expected.exact:
        native = expected.native
        equal = out == native
        if out.dtype.is_floating_point:
            equal |= out.isnan() & native.isnan()
        error = (out.to(torch.float64) - native.to(torch.float64)).abs()
    else:
        value = out.to(torch.float64)
        largest = torch.finfo(out.dtype).max
        overflows = truth.abs() > largest * (1 - torch.finfo(out.dtype).eps)
        error = (value - truth).abs()
        equal = error <= expected.bound
        equal |= truth.isnan() & value.isnan()
        equal |= (truth == value) | (overflows & (value.abs() >= largest) & (value.sign() == truth.sign()))
    wrong = ~equal
    finite = torch.where(torch.isfinite(error) & ~(equal & ~torch.isfinite(error)), error, torch.zeros_like(error))
    if not bool(wrong.any()):
        worst = int(finite.argmax()) if finite.numel() else 0
        return Comparison(
            True,
            float(finite.flatten()[worst]) if finite.numel() else 0.0,
            float(expected.bound.flatten()[worst]) if finite.numel() else 0.0,
            wrong,
            None,
        )
    first = tuple(int(i) for i in wrong.nonzero()[0])
    shown = torch.where(wrong, error, torch.full_like(error, -1.0))
    shown = torch.where(torch.isnan(shown), torch.full_like(shown, float("inf")), shown)
    worst = int(shown.argmax())
    return Comparison(False, float(shown.flatten()[worst]), float(expected.bound.flatten()[worst]), wrong, first)
