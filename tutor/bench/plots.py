"""The plots of a bench page as SVG: ratio by size, a roofline. Read on white, and told apart without red and green."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import log10
from typing import Any

from tutor.bench.record import Record
from tutor.figures import MODEL, decades
from tutor.html_page import BLUE, GREEN, GREY, ORANGE, looks, svg

OTHERS = {"eager_us": "eager PyTorch", "compiled_us": "torch.compile", "solution_us": "reference solution"}
STEPS = 24  # of the roof
MORE = ("#CC79A7", "#D55E00", "#56B4E9", "#333333")  # of the same palette: Okabe and Ito, 2008


def plots(record: Record) -> Iterator[str]:
    """A plot for each exercise with several sizes, then the roofline of all."""
    by_exercise: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, row in record.rows():
        by_exercise[name].append(row)
    for name, rows in by_exercise.items():
        if len(rows) > 1:
            yield _share(name, rows) if record.model else _ratio(name, rows)
    roofline = _roofline(record)
    if roofline:
        yield roofline


def _ratio(name: str, rows: list[dict[str, Any]]) -> str:
    """How many times as fast as each other candidate, by size."""
    import pygal

    chart = pygal.Line(
        **looks([BLUE, ORANGE, GREEN], 360, bars=False), title=f"{name}: times as fast as …", dots_size=5
    )
    chart.x_labels = [row["case"] for row in rows]
    chart.x_label_rotation = 25
    highest = 1.0
    for key, words in OTHERS.items():
        ratios = [row[key] / row["median_us"] if row.get(key) else None for row in rows]
        if any(ratios):
            highest = max([highest, *(ratio for ratio in ratios if ratio)])
            chart.add(words, ratios)
    chart.value_formatter = lambda value: f"{value:.2f}"
    chart.range = (0, 1.2 * highest)
    return svg(chart)


def _share(name: str, rows: list[dict[str, Any]]) -> str:
    import pygal

    chart = pygal.Bar(**looks([GREY], 320), title=f"{name}: % of the limit ({MODEL})", range=(0, 100))
    chart.x_labels = [row["case"] for row in rows]
    chart.x_label_rotation = 25
    chart.add(MODEL, [row["percent_of_limit"] for row in rows])
    chart.value_formatter = lambda value: f"{value:.0f}"
    return svg(chart)


def _roofline(record: Record) -> str:
    """Every size that computes something: GFLOP/s by FLOP a byte of the least traffic, both on powers of ten."""
    import pygal

    points: dict[str, list[tuple[float, float]]] = defaultdict(list)
    bandwidth, peak = 0.0, 0.0
    for name, row in record.rows():
        limits = row.get("limit_measured") or {}
        bandwidth = max(bandwidth, float(row.get("roof_gb_per_s") or limits.get("copy_gb_per_s") or 0))
        peak = max(peak, float(row.get("roof_tflop_per_s") or limits.get("matmul_tflop_per_s") or 0))
        if point := _point(row):
            points[name].append(point)
    if not points or not bandwidth:
        return ""
    low = min(x for found in points.values() for x, _ in found) / 2
    high = max(max(x for found in points.values() for x, _ in found) * 2, 2000 * peak / bandwidth)
    origin = MODEL if record.model else "measured"
    chart = pygal.XY(
        **{**looks([GREY, BLUE, ORANGE, GREEN, *MORE], 480, bars=False), "print_values": False},
        title=f"Roofline ({origin}): GFLOP/s by FLOP per byte, least traffic",
        xrange=(log10(low), log10(high)),
    )
    # both axes hold exponents of ten: pygal's logarithmic scale is of one axis only
    steps = [low * (high / low) ** (i / STEPS) for i in range(STEPS + 1)]
    roof = [(x, min(bandwidth * x, 1000 * peak) if peak else bandwidth * x) for x in steps]
    values = [y for found in points.values() for _, y in found] + [y for _, y in roof]
    chart.x_labels, chart.y_labels = decades(low, high), decades(min(values) / 2, max(values) * 2)
    chart.range = (log10(min(values) / 2), log10(max(values) * 2))
    chart.x_value_formatter = chart.value_formatter = _power
    chart.add("roof", _logs(roof), show_dots=False)
    for name, found in points.items():
        chart.add(name, _logs(found), stroke=False)
    return svg(chart)


def _logs(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(log10(x), log10(y)) for x, y in points]


def _power(exponent: float) -> str:
    return f"{10**exponent:,.3g}" if exponent < 3 else f"{10**exponent:,.0f}"


def _point(row: dict[str, Any]) -> tuple[float, float] | None:
    if row.get("model"):
        return (row["flops"] / row["least_bytes"], row["flops"] / row["time_us"] / 1000) if row["flops"] else None
    if not (row["gb_per_s"] and row["tflop_per_s"]):
        return None
    return 1000 * row["tflop_per_s"] / row["gb_per_s"], 1000 * row["tflop_per_s"]
