"""A plot with powers of ten along its axes: the widget of textual-plot, whose own scales are linear."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import Any

from textual_plot import HiResMode, PlotWidget
from textual_plot.axis_formatter import AxisFormatter

from tutor.figures import Roofline, decades

SUPERSCRIPT = {-3: "0.001", -2: "0.01", -1: "0.1", 0: "1", 1: "10", 2: "100", 3: "1k", 4: "10k", 5: "100k", 6: "1M"}
# of the palette in every terminal, and told apart by their letters without colour
STYLES = {"Y": "bold green", "S": "bold blue", "e": "magenta", "roof": "red"}
STEPS = 60  # of a roof


class PowersOfTen(AxisFormatter):
    def get_ticks(self, min_: float, max_: float, max_ticks: int = 8) -> list[float]:
        marks = decades(10**min_, 10**max_)
        step = max(1, -(-len(marks) // max_ticks))
        return [float(n) for n in marks[::step]]

    def get_labels_for_ticks(self, ticks: Sequence[float]) -> list[str]:
        return [SUPERSCRIPT.get(round(n), f"1e{round(n)}") for n in ticks]


class LogPlot(PlotWidget, can_focus=False):
    """Points are letters, lines are half blocks: glyphs that every terminal font has.

    It takes no focus: its keys would pan and zoom.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_pan_and_zoom=False, **more)

    def on_mount(self) -> None:
        self.margin_top, self.margin_left = 1, 7
        self.set_x_formatter(PowersOfTen())
        self.set_y_formatter(PowersOfTen())

    def show_roofline(self, shown: Roofline) -> None:
        self.clear()
        low, high = shown.width()
        xs = [log10(low) + (log10(high) - log10(low)) * step / STEPS for step in range(STEPS + 1)]
        ys = [log10(shown.height(10**x)) for x in xs]
        lowest = min([*ys, *(log10(max(point.gflops, 1e-9)) for point in shown.points)])
        self.set_xlimits(xs[0], xs[-1])
        self.set_ylimits(lowest - 0.3, max(ys) + 0.3)
        self.set_xlabel("FLOP per byte (least traffic)")
        self.plot(xs, ys, line_style=STYLES["roof"], hires_mode=HiResMode.HALFBLOCK)
        for point in shown.points:  # the last ones are drawn over the first
            x, y = [log10(point.intensity)], [log10(max(point.gflops, 1e-9))]
            self.scatter(x, y, marker=point.sign, marker_style=STYLES.get(point.sign, ""))
