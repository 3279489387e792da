"""The figures behind the result view and a bench report: bars of times, a roofline. Headless.

Everything of one picture is measured, or all of it is modelled. It is read from a verdict's `timing` section (measured)
or a row of the operation "estimate" (modelled).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, TypeGuard

CANDIDATES = (
    ("median_us", "yours"),
    ("eager_us", "eager PyTorch"),
    ("compiled_us", "torch.compile"),
    ("solution_us", "reference solution"),
)
MODEL = "model, not measured"


@dataclass(frozen=True)
class Bar:
    """A time in microseconds. `spread`: its 20th and 80th percentile, where they are known."""

    name: str
    us: float
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Point:
    """One call on the roofline. `intensity` in FLOP a byte of the least traffic, `gflops` in GFLOP/s."""

    name: str
    sign: str  # one letter, drawn in the plot
    intensity: float
    gflops: float


@dataclass(frozen=True)
class Roofline:
    """`tflops` is None where the peak was not measured: then only the memory roof is drawn."""

    gb_per_s: float
    tflops: float | None
    points: tuple[Point, ...]
    model: bool

    def height(self, intensity: float) -> float:
        """GFLOP/s that the roof allows."""
        memory = self.gb_per_s * intensity
        return min(memory, 1000 * self.tflops) if self.tflops else memory

    def width(self) -> tuple[float, float]:
        """Intensities to draw from and to: the points, and the ridge where there is one."""
        marks = [point.intensity for point in self.points]
        if self.tflops:
            marks.append(1000 * self.tflops / self.gb_per_s)
        return min(marks) / 4, max(marks) * 4


def measured_bars(timing: Mapping[str, Any]) -> tuple[Bar, ...]:
    spreads = {"median_us": (timing.get("p20_us"), timing.get("p80_us")), **(timing.get("spreads") or {})}
    bars = []
    for key, name in CANDIDATES:
        if timing.get(key):
            low, high = spreads.get(key) or (None, None)
            bars.append(Bar(name, float(timing[key]), (float(low), float(high)) if low and high else None))
    if timing.get("percent_of_limit") and timing.get("median_us"):
        bars.append(Bar("the hardware's limit", timing["median_us"] * timing["percent_of_limit"] / 100))
    return tuple(bars)


def modelled_bars(mine: Mapping[str, Any] | None, solution: Mapping[str, Any] | None) -> tuple[Bar, ...]:
    rows = [(name, row) for name, row in (("yours", mine), ("reference solution", solution)) if known(row)]
    if not rows:
        return ()
    limit = Bar("the hardware's limit", float(rows[0][1]["limit_us"]))
    return (*(Bar(name, float(row["time_us"])) for name, row in rows), limit)


def known(row: Mapping[str, Any] | None) -> TypeGuard[Mapping[str, Any]]:
    """Whether a modelled row holds an estimate; it says why not otherwise."""
    return row is not None and "time_us" in row


def measured_roofline(timing: Mapping[str, Any], earlier: Iterable[Mapping[str, Any]] = ()) -> Roofline | None:
    """`earlier`: the timing sections of earlier attempts, the newest first. None where nothing is computed."""
    limits = timing.get("limit_measured") or {}
    intensity = _intensity(timing)
    if intensity is None or not limits.get("copy_gb_per_s"):
        return None
    points = [Point("an earlier attempt", "e", intensity, _gflops(old)) for old in earlier if _intensity(old)]
    if timing.get("solution_us"):
        faster = timing["median_us"] / timing["solution_us"]
        points.append(Point("reference solution", "S", intensity, _gflops(timing) * faster))
    points.append(Point("yours", "Y", intensity, _gflops(timing)))
    return Roofline(float(limits["copy_gb_per_s"]), limits.get("matmul_tflop_per_s"), tuple(points), model=False)


def modelled_roofline(mine: Mapping[str, Any] | None, solution: Mapping[str, Any] | None) -> Roofline | None:
    points, roof = [], None
    for name, sign, row in (("reference solution", "S", solution), ("yours", "Y", mine)):
        if known(row) and row["flops"] and row["least_bytes"]:
            gflops = row["flops"] / row["time_us"] / 1000
            points.append(Point(name, sign, row["flops"] / row["least_bytes"], gflops))
            roof = row
    if roof is None:
        return None
    return Roofline(float(roof["roof_gb_per_s"]), float(roof["roof_tflop_per_s"]), tuple(points), model=True)


def _intensity(timing: Mapping[str, Any]) -> float | None:
    flops, moved = timing.get("tflop_per_s"), timing.get("gb_per_s")
    return 1000 * float(flops) / float(moved) if flops and moved else None


def _gflops(timing: Mapping[str, Any]) -> float:
    return 1000 * float(timing["tflop_per_s"])


def bar_rows(bars: Sequence[Bar], width: int) -> list[tuple[str, str, str]]:
    """Name, bar and words of each; the longest bar is `width` cells, none is shorter than one.

    Width 0: no bars and few words, for a small screen.
    """
    longest = max((bar.us for bar in bars), default=1.0)
    first = bars[0].us if bars else 1.0
    rows = []
    for number, bar in enumerate(bars):
        ratio = f"{first / bar.us:.2f}"
        if not width:
            rows.append((bar.name, "", micro(bar.us) + (f" {ratio}x" if number else "")))
            continue
        words = micro(bar.us) + (f"  {ratio} times as fast" if number else "")
        if bar.spread is not None:
            words += f"  ({micro(bar.spread[0])} to {micro(bar.spread[1])})"
        rows.append((bar.name, "━" * max(1, round(width * bar.us / longest)), words))
    return rows


def micro(us: float) -> str:
    return f"{us:.1f} µs" if us < 1000 else f"{us / 1000:.3f} ms"


def flop_rate(gflops: float) -> str:
    return f"{gflops / 1000:,.0f} TFLOP/s" if gflops >= 1e4 else f"{gflops:,.0f} GFLOP/s"


def decades(low: float, high: float) -> list[int]:
    """Exponents of the powers of ten between two values, both ends included where they lie on one."""
    first, last = log10(low), log10(high)
    return [n for n in range(int(first) - 1, int(last) + 2) if first - 1e-9 <= n <= last + 1e-9]
