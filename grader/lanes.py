"""Blocks of the interpreter as NumPy arrays: which lanes lie outside, what they hold, which program comes when."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from grader.watch import Extent


def outside(addresses: Any, size: int, extent: Extent) -> Any:
    return (addresses < np.uint64(extent.low)) | (addresses + np.uint64(size) > np.uint64(extent.high))


def place_of(index: Any, grid: Any) -> int:
    """The place of a program in its grid, x slowest, as the interpreter loops."""
    return int((index[0] * grid[1] + index[1]) * grid[2] + index[2])


def order_of(name: str, programs: int) -> Any:
    """The programs of a launch in another order; None for the interpreter's own."""
    if name == "reversed":
        return np.arange(programs)[::-1]
    if name == "shuffled":
        return np.random.default_rng(programs).permutation(programs)
    return None


def bits(values: Any, access: SimpleNamespace) -> Any:
    """The active lanes' bits, widened to 64."""
    if values is None:
        return np.zeros(access.count, dtype=np.uint64)
    active = np.ascontiguousarray(np.broadcast_to(values, access.addresses.shape)[access.active])
    return active.view(f"u{active.dtype.itemsize}").astype(np.uint64)


def filled(shape: tuple[int, ...], dtype: np.dtype, kind: str) -> np.ndarray:
    """`poison`: a NaN other than the outputs'. `huge`: the largest value, for what ignores NaN, as a maximum does."""
    if kind == "huge" and dtype.kind in "fiu":
        return np.full(shape, np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max, dtype=dtype)
    if dtype.kind == "f":
        return np.full(shape, np.nan, dtype=dtype)
    if dtype == np.uint16:  # bfloat16 to the interpreter
        return np.full(shape, 0x7FC0, dtype=dtype)
    raw = np.full(int(np.prod(shape)) * dtype.itemsize, 0x7F, dtype=np.uint8)
    return raw.view(dtype).reshape(shape)
