"""The types: a question, the calls that are timed for it, and the place they run at."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"
MULTIPROCESSORS = 132  # of an H200: what a place without a device says, so that it compiles for the same sizes
FP8 = torch.float8_e4m3fn

Clock = Literal["cold", "after", "warm", "graph", "host", "do_bench", "do_bench_cudagraph", "process", "says"]


@dataclass(frozen=True)
class Place:
    """Where the calls run: `cuda`; `cpu`, Triton's interpreter on tiny inputs; `meta`, only shapes, to compile."""

    device: str
    programs: int = MULTIPROCESSORS

    def size(self, full: int, tiny: int) -> int:
        return tiny if self.device == "cpu" else full

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, device=self.device).to(dtype)

    def whole(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int32) -> torch.Tensor:
        """Uniform whole numbers, low inclusive, high exclusive."""
        return torch.randint(low, high, shape, device=self.device, dtype=dtype)

    def empty(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.empty(shape, device=self.device, dtype=dtype)

    def zeros(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.zeros(shape, device=self.device, dtype=dtype)


@dataclass(frozen=True)
class Call:
    """One variant on its inputs.

    `run` gives the output, `want` PyTorch's. `bytes` and `flops` of one run, for a rate. `before` prepares each timed
    run of the clock "after". `torch`: no kernel of Triton's, nothing to compile beforehand.
    The clocks: "cold", events, the L2 flushed before each run; "after", events, `before` run last and nothing flushed;
    "warm", events, run after run; "graph", 100 runs in a CUDA graph, a hundredth of its time; "host", a loop of 2,000
    runs that ends with one synchronisation, by the CPU's clock; "do_bench" and "do_bench_cudagraph", Triton's own;
    "process", `run` gives seconds that processes of its own took; "says", `run` gives words, and nothing is timed.
    """

    run: Callable[[], Any]
    want: Callable[[], Any]
    bytes: int = 0
    flops: int = 0
    clock: Clock = "cold"
    before: Callable[[], Any] | None = None
    tolerance: float | None = None  # relative error in the norm; None: by the dtype
    torch: bool = False
    seen: Callable[[Any], Any] | None = None  # what of the output is compared; None: all of it


Trial = dict[str, Call]


@dataclass(frozen=True)
class Question:
    """What is asked, and how it is answered.

    `settings` are the variants, by name; `make(place, **setting)` gives a variant's Call. Inputs that variants share
    are drawn by `inputs(place)` once, and handed to `make` as its second argument.
    """

    name: str
    module: str
    asks: str
    why: str
    settings: Mapping[str, Mapping[str, Any]]
    make: Callable[..., Call]
    inputs: Callable[[Place], Any] = lambda place: None
    unit: str = "µs"
    options: tuple[str, ...] = ()  # that a predict item could offer
    groups: int = 1  # of as many variants each, one after the other: compared with the first of their group
    dry_skip: str | None = None  # why the interpreter cannot run it
    last: bool = False  # asked after all others: it may hang

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(self.settings)

    def first(self, variant: str) -> str:
        """The variant that this one is compared with."""
        size = len(self.settings) // self.groups
        return self.variants[self.variants.index(variant) // size * size]


@cache
def solution(name: str) -> ModuleType:
    """The module of a reference solution, `02-first-kernel/vector_add`; loaded once, so are its kernels."""
    path = SOLUTIONS / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"solution_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
