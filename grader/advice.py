"""One sentence on what would move a timing result up, from what is known of the kernel: the largest lever first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

WASTE = 1.25  # of the least traffic, from which reading less is the first thing to do
FEW_WARPS = 0.25  # occupancy below which too few loads may be under way
CLOSE = 1.1  # of the reference solution's time


def advice(
    timing: Mapping[str, Any], compiled: Iterable[Mapping[str, Any]] | None, traffic: Mapping[str, Any] | None
) -> str | None:
    """None for a result that is fast already, and for one that has no rank.

    `timing`, `compiled` and `traffic` are sections of a verdict.
    """
    if timing.get("rank") not in ("fair", "slow"):
        return None
    rows = list(compiled or ())
    by_memory = timing.get("limit") == "memory"
    return (
        _spills(rows)
        or (by_memory and _waste(traffic))
        or _launch(timing)
        or (_vectors(rows) if by_memory else _tensor_cores(rows))
        or _occupancy(rows, by_memory)
        or _solution(timing)
    )


def _spills(rows: list[Mapping[str, Any]]) -> str | None:
    spilled = max((row.get("spill_bytes") or 0 for row in rows), default=0)
    if not spilled:
        return None
    return f"To move up: {spilled} bytes of registers are spilled to memory; use a smaller tile or more warps."


def _waste(traffic: Mapping[str, Any] | None) -> str | None:
    ratio = (traffic or {}).get("ratio")
    if not ratio or ratio < WASTE:
        return None
    return f"To move up: it moves {ratio:.2f} times the least bytes; load each element once and keep it."


def _launch(timing: Mapping[str, Any]) -> str | None:
    if not timing.get("launch_bound"):
        return None
    return "To move up: launching takes about as long as the work; do less in Python, or more in one launch."


def _vectors(rows: list[Mapping[str, Any]]) -> str | None:
    counts = [row["vector_loads"] for row in rows if row.get("vector_loads") is not None]
    if not counts or max(counts):
        return None
    return (
        "To move up: no load takes 16 bytes a thread; neighbouring lanes must read neighbouring elements, from an "
        "address and a stride that Triton knows to be multiples of 16."
    )


def _tensor_cores(rows: list[Mapping[str, Any]]) -> str | None:
    counts = [row["tensor_core_ops"] for row in rows if row.get("tensor_core_ops") is not None]
    if not counts or max(counts):
        return None
    return "To move up: no tensor-core instruction was compiled; multiply tiles with tl.dot, with sides of at least 16."


def _occupancy(rows: list[Mapping[str, Any]], by_memory: bool) -> str | None:
    """Matmuls hide their loads by stages, not by many warps."""
    shares = [row["occupancy"] for row in rows if row.get("occupancy") is not None]
    if not by_memory or not shares or max(shares) >= FEW_WARPS:
        return None
    return (
        f"To move up: only {100 * max(shares):.0f} % of a multiprocessor's warps are there at a time; fewer registers "
        "or less shared memory a program lets more loads be under way."
    )


def _solution(timing: Mapping[str, Any]) -> str | None:
    mine, theirs = timing.get("median_us"), timing.get("solution_us")
    if not mine or not theirs or mine < CLOSE * theirs:
        return "To move up: it is as fast as the reference solution; tile sizes, warps and stages are left to try."
    return (
        f"To move up: the reference solution takes {theirs / mine:.2f} of your time with the same arithmetic; compare "
        "its tile sizes, warps and stages with yours."
    )
