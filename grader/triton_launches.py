"""Triton's private names for verified grading: note a launch where the learner's code runs, launch it again elsewhere.

A kernel is carried as TTIR, the text of Triton's first intermediate language. Compiled from there it takes the runtime
arguments only: constexprs, and integers equal to 1, are folded into the text, and so is each pointer's divisibility.
Holds for Triton 3.6 to 3.9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a launch may say about its compilation. Not here: whatever names a file (ir_override, extern_libs) or is handed
# to ptxas as it stands (ptx_options), and what the target decides.
OPTIONS = (
    "num_warps num_ctas num_stages maxnreg enable_fp_fusion enable_reflect_ftz sanitize_overflow debug "
    "launch_cooperative_grid launch_pdl sched4reg clc min_shared_mem"
).split()
SCALARS = "i1 i8 i16 i32 i64 u1 u8 u16 u32 u64 fp16 bf16 fp32 fp64".split()
_FLOATS = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}
_ENTRY = re.compile(r"^\s*tt\.func public @([A-Za-z_][\w.$]*)\(", re.MULTILINE)
_PUBLIC = re.compile(r"tt\.func\s+public")


class NotReplayable(Exception):
    """A launch that its TTIR, grid and arguments do not describe; the text says why, for the learner."""


@dataclass(frozen=True)
class SeenLaunch:
    """One launch as the learner's code made it. `values` are the runtime arguments, of `types`, in order."""

    name: str
    ttir: str
    options: dict[str, int | bool]
    grid: tuple[int, int, int]
    types: tuple[str, ...]  # "*fp32" for pointers, else one of SCALARS
    values: tuple[Any, ...]


def watch_for_recording(note: Callable[[SeenLaunch], None], refuse: Callable[[str], None]) -> None:
    """Call `note` after every launch of this process, `refuse` for one that cannot be replayed.

    Put on after the hooks of `watch_launches` and `use_own_benchmark`.
    """
    from triton.runtime.jit import JITFunction

    original = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = original(self, *args, grid=grid, warmup=warmup, **kwargs)
        if not warmup:
            try:
                note(_seen(self, kernel, grid, args, kwargs))
            except NotReplayable as reason:
                refuse(str(reason))
        return kernel

    JITFunction.run = run


def watch_tuning(tuning: Callable[[], Any]) -> None:
    """Enter the context `tuning()` while an autotuner tries a configuration, its hooks included."""
    from triton.runtime.autotuner import Autotuner

    original = Autotuner._bench

    def bench(self: Any, *args: Any, **kwargs: Any) -> Any:
        with tuning():
            return original(self, *args, **kwargs)

    Autotuner._bench = bench


def _seen(function: Any, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenLaunch:
    """Raises NotReplayable."""
    name = getattr(function, "__name__", "a kernel")
    ttir = getattr(kernel, "asm", {}).get("ttir")
    if ttir is None:
        raise NotReplayable(f"{name} has no TTIR: it was not compiled from Triton's own language")
    bound = function.signature.bind(*args, **{n: v for n, v in kwargs.items() if n in function.arg_names})
    bound.apply_defaults()
    given = bound.arguments
    types: list[str] = []
    values: list[Any] = []
    for parameter, kind in kernel.src.signature.items():
        _flatten(kind, given[parameter], types, values)
    if any(t.startswith("tensordesc") or t == "nvTmaDesc" for t in types):
        raise NotReplayable(
            f"{name} takes a TensorDescriptor made on the host: replaying its TTIR needs more than that"
        )
    unknown = next((t for t in types if not t.startswith("*") and t not in SCALARS), None)
    if unknown is not None:
        raise NotReplayable(f"{name} takes an argument of type {unknown}")
    metadata = kernel.metadata._asdict()
    for option in ("ptx_options", "ir_override"):
        if metadata.get(option):
            raise NotReplayable(f"{name} is compiled with {option}")
    if len(metadata.get("extern_libs") or ()) > 1:
        raise NotReplayable(f"{name} is linked with a library of its own")
    sizes = grid(dict(given)) if callable(grid) else grid
    return SeenLaunch(
        metadata["name"],
        ttir,
        {o: metadata[o] for o in OPTIONS if metadata.get(o) is not None},
        tuple(int(n) for n in (*sizes, 1, 1)[:3]),  # type: ignore[arg-type]
        tuple(types),
        tuple(values),
    )


def _flatten(kind: Any, value: Any, types: list[str], values: list[Any]) -> None:
    if isinstance(kind, tuple):  # a tuple argument becomes one parameter for each of its elements
        for inner, element in zip(kind, value, strict=True):
            _flatten(inner, element, types, values)
    elif kind != "constexpr":
        types.append(kind)
        values.append(value)


def entry_of(ttir: str) -> str | None:
    """The name of the only kernel in this text; None when there is not exactly one plain name."""
    found = _ENTRY.findall(ttir)
    return found[0] if len(found) == 1 and len(_PUBLIC.findall(ttir)) == 1 else None


def compile_ttir(path: Path, options: dict[str, Any], target: str | None = None) -> Any:
    """A kernel compiled from a `.ttir` file, for the current device or for `target`. Raises as the compiler does."""
    from triton.compiler import compile

    from grader.triton_adapter import parse_target

    kernel = compile(str(path), target=parse_target(target) if target else None, options=options)
    # the IR's names of float types are not those that the launcher of every version knows
    kernel.src.signature = {n: _FLOATS.get(t, t) for n, t in kernel.src.signature.items()}
    return kernel


def parameters_of(kernel: Any) -> tuple[str, ...]:
    """The types of a compiled kernel's runtime parameters: "*" for any pointer, i32 for u32, fp32 and so on."""
    return tuple("*" if t.startswith(("*", "!")) else t for t in kernel.src.signature.values())


def launch(kernel: Any, grid: Sequence[int], arguments: Sequence[Any]) -> None:
    """Launch on the current stream. Pointers are given as addresses."""
    kernel[tuple(grid)](*arguments)


def give_scratch(allocate: Callable[[int, int, Any], Any]) -> None:
    """Device memory that kernels ask for at launch, as those that make tensor descriptors do."""
    import triton

    triton.set_allocator(allocate)
