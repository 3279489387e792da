"""Triton's private names for launches in the interpreter: note one as it is made, make one again.

Holds for Triton 3.6 to 3.9; tests/grader/test_kernels_alone.py tests it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from grader.watch import TUNING


@dataclass(frozen=True)
class SeenLaunch:
    """One launch as the learner's code made it: every argument by its name, defaults and constexprs included."""

    name: str
    grid: tuple[int, ...]
    arguments: dict[str, Any]


def watch(note: Callable[[SeenLaunch], None], during: Callable[[], AbstractContextManager[None]]) -> None:
    """Call `note` before every launch that is no trial of an autotuner; the launch happens within `during()`.

    Put on after `watch_interpreter`. The interpreter makes tensors of its own while it launches.
    """
    from triton.runtime import interpreter

    original = interpreter.GridExecutor.__call__

    def run(executor: Any, *args: Any, **kwargs: Any) -> Any:
        if not TUNING.active:
            note(_seen(executor, args, kwargs))
        with during():
            return original(executor, *args, **kwargs)

    interpreter.GridExecutor.__call__ = run


def _seen(executor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SeenLaunch:
    taken = inspect.getfullargspec(executor.fn)
    names = {*taken.args, *taken.kwonlyargs}
    bound = inspect.getcallargs(executor.fn, *args, **{k: v for k, v in kwargs.items() if k in names})
    grid = executor.grid(bound) if callable(executor.grid) else executor.grid
    plain = {name: getattr(value, "value", value) if _is_constexpr(value) else value for name, value in bound.items()}
    return SeenLaunch(executor.fn.__name__, tuple(int(n) for n in grid), plain)


def _is_constexpr(value: Any) -> bool:
    import triton.language as tl

    return isinstance(value, tl.constexpr)


def is_kernel(value: Any) -> bool:
    from triton.runtime.interpreter import InterpretedFunction

    return isinstance(value, InterpretedFunction)


def launch(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> None:
    kernel[grid](**arguments)


def is_descriptor(value: Any) -> bool:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return isinstance(value, TensorDescriptor)


def descriptor(base: Any, shape: list[int], strides: list[int], block_shape: list[int], padding: str) -> Any:
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(base, shape, strides, block_shape, padding)


def named(value: Any) -> tuple[str, str] | None:
    """A dtype or a kernel, which may be an argument too, by its kind and name; None for anything else."""
    import triton.language as tl

    if is_kernel(value):
        return "kernel", value.fn.__name__
    if isinstance(value, tl.dtype) and not value.is_ptr() and not value.is_block():
        return "dtype", value.name
    return None


def dtype_of(name: str) -> Any:
    """Raises ValueError for a name that is no dtype of Triton's."""
    import triton.language as tl

    return tl.dtype(name)
