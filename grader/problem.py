"""What an exercise's `problem.py` states: the task, its reference, its cases, its mistakes.

A problem file defines one module-level name, `PROBLEM`. The judge imports it; the learner's process never does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

Args = Sequence[Any]
Outputs = Any  # a tensor, or a tuple of tensors


class Draw:
    """A seeded source of inputs on one device; the only source of randomness a case may use."""

    def __init__(self, seed: int, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.generator = torch.Generator(device=self.device)
        self.generator.manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> torch.Tensor:
        """Gaussian values, mean 0, standard deviation `scale`."""
        values = torch.randn(shape, generator=self.generator, device=self.device, dtype=torch.float32)
        return (values * scale).to(dtype)

    def uniform(
        self, *shape: int, low: float = 0.0, high: float = 1.0, dtype: torch.dtype = torch.float32
    ) -> torch.Tensor:
        values = torch.rand(shape, generator=self.generator, device=self.device, dtype=torch.float32)
        return (values * (high - low) + low).to(dtype)

    def integers(self, *shape: int, low: int, high: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Whole numbers in [low, high), in any dtype."""
        values = torch.randint(low, high, shape, generator=self.generator, device=self.device)
        return values.to(dtype)

    def full(self, *shape: int, value: float, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.full(shape, value, device=self.device, dtype=dtype)


@dataclass(frozen=True)
class Case:
    """One call of the learner's function.

    `make(draw)` returns the positional arguments: tensors (any strides: transposed, sliced, expanded; the judge keeps
    them) and plain numbers, strings, booleans, None. It must return the same shapes and scalars for every seed.
    """

    name: str
    make: Callable[[Draw], Args]
    needs_gpu: str | None = None  # why the interpreter cannot judge this case; None when it can
    offline: bool = True  # compile this case's launches for --target when there is no GPU


@dataclass(frozen=True)
class Work:
    """The least a call must do: bytes through device memory (each input read once, each output written once), FLOPs."""

    bytes: int
    flops: int


@dataclass(frozen=True)
class Timing:
    """The inputs to time with, drawn on the GPU, large enough to leave the L2 cache (60 MB on an H200)."""

    name: str
    make: Callable[[Draw], Args]
    limit: Literal["memory", "compute"] = "memory"
    fair: float = 0.6  # share of the limit from which a kernel is "fair"
    fast: float = 0.85  # share of the limit from which it is "fast"


@dataclass(frozen=True)
class Mistake:
    """A named mistake and what the output would be if it had been made.

    `model` takes the same arguments as the reference, at the call's own dtypes, and
    returns what the mistaken kernel returns. Return None for a case in which the mistake cannot show, or a callable
    `matches(out) -> bool` where the mistaken output is not one fixed value.
    `line` optionally picks the learner's line: a regular expression searched in the source, first match.
    """

    cause: str  # snake_case, shared by all exercises: "wrong_fill_for_max"
    message: str  # in the learner's terms, one or two sentences
    concept: str  # "masking", "strides", "numerics", …
    see: str  # id of the course item that teaches it
    model: Callable[..., Outputs | Callable[[Outputs], bool] | None]
    line: str | None = None


@dataclass(frozen=True)
class Tolerance:
    """How far an output may lie from the float64 reference, element by element:

        |out - ref|  <=  ulps * eps(out.dtype) * |ref|  +  terms * eps(accumulate) * scale(*args)

    `scale` gives the magnitude the rounding of the accumulation grows with (for a sum: the sum of |terms|), in float64,
    of the output's shape or broadcastable to it. Where three times PyTorch's own error is larger, that holds.
    `exact` asks for equality with PyTorch at the call's own dtype, bit for bit (NaN equals NaN).
    Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 3.1.
    """

    exact: bool = False
    ulps: float = 2.0
    terms: float = 4.0
    accumulate: torch.dtype = torch.float32
    scale: Callable[..., torch.Tensor] | None = None


@dataclass(frozen=True)
class Problem:
    """One exercise. `slug` is the folder's name, `entry` the function of the learner's file that is called.

    `call` says how the runner calls it:
      forward   out = entry(*args)
      gradient  the last argument is the incoming gradient; the float tensors named in `differentiable` require grad;
                returns (out, grad of each). The reference is the forward only: autograd takes its float64 gradients
      operator  as gradient, and `torch.library.opcheck` runs on `entry` (without a GPU: schema and registration only)
      compiled  torch.compile(entry, fullgraph=True) on a GPU; called as it is without one, and the verdict says so
    """

    slug: str
    title: str
    entry: str
    parameters: tuple[str, ...]  # the entry's parameter names, in order
    reference: Callable[
        ..., Outputs
    ]  # PyTorch, any dtype; given float64 inputs for the truth, the call's dtypes for eager
    cases: tuple[Case, ...]
    work: Callable[..., Work]  # of the call's arguments
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, str, str]  # a nudge, the idea, the line
    call: Literal["forward", "gradient", "operator", "compiled"] = "forward"
    differentiable: tuple[str, ...] = ()
    contiguous: bool = False  # the task asks that what is returned (of several: the first) be contiguous
    by_torch: tuple[int, ...] = ()  # outputs that PyTorch may compute: the others must come from the kernels
    torch_ops: tuple[str, ...] = ()  # operations that the task leaves to PyTorch: "aten.relu.default"
    mutates: tuple[
        str, ...
    ] = ()  # parameters the task says to change in place; compared like outputs after the returned ones
    copies: tuple[str, ...] = ()  # parameters whose value is the answer: returning them fails only for want of a kernel
    out_dtype: Callable[..., torch.dtype | tuple[torch.dtype, ...]] | None = (
        None  # None: as the reference's at the call's dtypes
    )
    tolerance: Tolerance = field(default_factory=Tolerance)
    autotuned: bool = False  # the task asks for an autotuned kernel
    timing: Timing | None = None
    sizes: tuple[Timing, ...] = ()  # more inputs to time with, for a sweep; `timing` is the one that ranks
    fixed: Mapping[str, str] = field(default_factory=dict)  # names the file must define beside the entry, with why
    eager: Callable[..., Outputs] | None = None  # PyTorch's best eager call, the baseline; None: the reference
    eager_is_random: bool = False  # it draws numbers of its own: its time can be compared, its results cannot

    @property
    def truth_when_timed(self) -> Callable[..., Outputs]:
        """What the outputs of a timing run are compared with."""
        return self.reference if self.eager is None or self.eager_is_random else self.eager

    @property
    def timings(self) -> tuple[Timing, ...]:
        """Every size that can be timed, the one that ranks first."""
        return ((self.timing,) if self.timing is not None else ()) + self.sizes
