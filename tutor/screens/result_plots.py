"""A result in pictures: the cases as a grid, times as bars, a roofline, and a sweep over sizes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import ContentSwitcher, ProgressBar, Static

from tutor.figures import MODEL, measured_bars, measured_roofline, modelled_bars, modelled_roofline
from tutor.grading import Answer, Failed, Progressed
from tutor.verdict_text import case_facts, status_words
from tutor.widgets.case_grid import CaseGrid
from tutor.widgets.content import DIM_STYLE, Content, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.log_plot import LogPlot
from tutor.widgets.timing_text import bars_text, left_words, roofline_text, sweep_text

VIEWS = {"cases": "Cases", "times": "Times", "roofline": "Roofline", "sizes": "Sizes"}
NOT_GRADED = "Not graded since the app was opened: {grade} in the exercise grades the file, and its cases stand here."


class ResultPlotsScreen(Screen[None]):
    CSS_PATH = "result_plots.tcss"
    BINDINGS = [
        Binding("tab", "turn(1)", "View", key_display="Tab", id="plots.next-view"),
        Binding("shift+tab", "turn(-1)", "View before", show=False, id="plots.previous-view"),
        *(
            Binding(str(number), f"view('{name}')", words, show=False, id=f"plots.view-{name}")
            for number, (name, words) in enumerate(VIEWS.items(), 1)
        ),
        Binding("S", "sweep", "Sweep sizes", id="plots.sweep"),
        Binding("f7", "cancel", "Cancel", key_display="F7", id="plots.cancel"),
        Binding("escape,q,b", "back", "Back", key_display="Esc", id="plots.back"),
    ]

    def __init__(
        self,
        slug: str,
        file: Path,
        solution: Path,
        verdict: Mapping[str, Any] | None,
        timings: tuple[Mapping[str, Any], ...] = (),
    ) -> None:
        """`verdict` is the last one of this session, `timings` the measured ones of attempts, the newest first."""
        super().__init__()
        self.slug, self.file, self.solution = slug, file, solution
        self.verdict = verdict or {}
        self.timings = timings
        self.models: dict[str, Mapping[str, Any]] = {}
        self.view = "cases"
        self.sweeping = False

    @property
    def timing(self) -> Mapping[str, Any] | None:
        """Measured: of the last verdict, else of the last attempt that was timed."""
        found = self.verdict.get("timing") if self.verdict else next(iter(self.timings), None)
        return found or None

    @property
    def _sweep_key(self) -> str:
        return key_of(self, "plots.sweep", "S")

    def compose(self) -> ComposeResult:
        yield Static(plain(""), id="where")
        yield Static(plain(""), id="tabs")
        with ContentSwitcher(initial="cases", id="plots"):
            with VerticalScroll(id="cases", can_focus=False):
                yield CaseGrid(self.verdict.get("cases") or (), id="case-grid")
                yield Static(plain(""), id="case-facts")
            with VerticalScroll(id="times"):
                yield Static(plain(""), id="times-text")
            with Vertical(id="roofline"):
                yield LogPlot(id="roofline-plot")
                yield Static(plain(""), id="roofline-words")
            with VerticalScroll(id="sizes"):
                yield ProgressBar(id="sweep-bar", show_eta=False)
                yield Static(plain(f"{self._sweep_key} runs every size of this exercise.", DIM_STYLE), id="sizes-text")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#sweep-bar").display = False
        self._case_chosen()
        self.action_view("cases" if self.verdict.get("cases") else "times")
        if self.timing is not None:
            self._draw()
        else:
            self._say_times("Asking the model …")
            self._model()

    # views

    def action_view(self, name: str) -> None:
        self.view = name
        self.query_one("#plots", ContentSwitcher).current = name
        shown = [
            plain(f" {number} {words} ", "bold reverse" if known == name else DIM_STYLE)
            for number, (known, words) in enumerate(VIEWS.items(), 1)
        ]
        self.query_one("#tabs", Static).update(Content(" ").join(shown))
        where = Content.assemble(plain("Result ", "bold"), plain(f"{self.slug}   {self._of()}", DIM_STYLE))
        self.query_one("#where", Static).update(where)
        if name == "cases":
            self.query_one("#case-grid").focus()
        elif name != "roofline":
            self.query_one(f"#{name}").focus()
        self.refresh_bindings()

    def _of(self) -> str:
        if self.verdict:
            return f"{status_words(str(self.verdict.get('status', '')))}, on {self.verdict.get('device')}"
        return "the last timed attempt" if self.timing is not None else "not graded since the app was opened"

    def action_turn(self, step: int) -> None:
        names = list(VIEWS)
        self.action_view(names[(names.index(self.view) + step) % len(names)])

    @on(CaseGrid.Picked)
    def _case_chosen(self) -> None:
        grid = self.query_one(CaseGrid)
        if not grid.cases:
            words = NOT_GRADED.format(grade=key_of(self, "exercise.grade", "g"))
            self.query_one("#case-facts", Static).update(plain(words, DIM_STYLE))
            return
        case = grid.cases[grid.chosen]
        status = str(case.get("status", ""))
        every = key_of(self, "exercise.grade-all", "a")
        words = f"not run: an earlier case failed; {every} in the exercise runs all" if status == "not_run" else ""
        parts = [plain(f"{case.get('name', '')}: {words or status_words(status)}", "bold")]
        diagnosis = self.verdict.get("diagnosis") or {}
        if status not in ("passed", "skipped", "not_run") and diagnosis.get("message"):
            parts += [plain(line) for line in str(diagnosis["message"]).splitlines()]  # the map of wrong tiles, if any
            parts += [plain(line) for line in case_facts(case, str(diagnosis["message"]))]
        else:
            parts += [plain(line) for line in case_facts(case)]
        if case.get("seconds") is not None:
            backend = self.verdict.get("backend") or "grader"
            parts.append(
                plain(
                    f"The call took {case['seconds']:.3g} s in the {backend}; that says nothing of its speed.",
                    DIM_STYLE,
                )
            )
        self.query_one("#case-facts", Static).update(stack(parts))

    # times and roofline

    @work(group="model", exclusive=True, exit_on_error=False)
    async def _model(self) -> None:
        """The model's row of the learner's file, and of the course's own solution."""
        for name, file in (("mine", self.file), ("solution", self.solution)):
            async for event in desk(self).grader.ask("estimate", self.slug, file):
                if isinstance(event, Answer):
                    self.models[name] = event.data["rows"][0]
                elif isinstance(event, Failed):
                    self.models[name] = {"reason": event.message}
        self._draw()

    def _draw(self) -> None:
        mine, solution = self.models.get("mine"), self.models.get("solution")
        if self.timing is not None:
            bars, roofline = measured_bars(self.timing), measured_roofline(self.timing, self.timings[1:])
        else:
            bars, roofline = modelled_bars(mine, solution), modelled_roofline(mine, solution)
        text = bars_text(bars, self.timing, mine, solution, self._bar_width(72 if self.timing is not None else 54))
        self.query_one("#times-text", Static).update(text)
        plot = self.query_one(LogPlot)
        plot.display = roofline is not None
        if roofline is not None:
            plot.show_roofline(roofline)
        self.query_one("#roofline-words", Static).update(roofline_text(roofline))

    def _bar_width(self, words: int) -> int:
        return 0 if self.size.width < 64 else max(8, self.size.width - words)

    def _say_times(self, text: str) -> None:
        for name in ("#times-text", "#roofline-words"):
            self.query_one(name, Static).update(plain(text, DIM_STYLE))
        self.query_one(LogPlot).display = False

    # the sweep

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("sweep", "cancel"):
            return self.sweeping == (action == "cancel")
        return True

    def action_sweep(self) -> None:
        self.sweeping = True
        self.query_one("#sweep-bar").display = True
        self.query_one(ProgressBar).update(total=None)
        self.query_one("#sizes-text", Static).update(plain("Starting …", DIM_STYLE))
        self.action_view("sizes")
        self._sweep()

    def action_cancel(self) -> None:
        self.workers.cancel_group(self, "sweep")
        self._swept(plain(f"Cancelled. {self._sweep_key} starts again.", DIM_STYLE))

    def _swept(self, text: Content) -> None:
        self.sweeping = False
        self.query_one("#sweep-bar").display = False
        self.query_one("#sizes-text", Static).update(text)
        self.refresh_bindings()

    @work(group="sweep", exclusive=True, exit_on_error=False)
    async def _sweep(self) -> None:
        started = time.monotonic()
        async for event in desk(self).grader.ask("sweep", self.slug, self.file):
            if isinstance(event, Progressed):
                self.query_one(ProgressBar).update(total=event.total, progress=event.done)
                left = left_words(time.monotonic() - started, event.done, event.total)
                text = f"{event.done} of {event.total}: {event.words}. {left}"
                self.query_one("#sizes-text", Static).update(plain(text, DIM_STYLE))
            elif isinstance(event, Failed):
                self._swept(plain("Cancelled." if event.kind == "cancelled" else event.message, "$text-error"))
            elif isinstance(event, Answer):
                self._swept(sweep_text(event.data, min(40, self._bar_width(54 if event.data.get("model") else 72))))

    def action_back(self) -> None:
        self.workers.cancel_node(self)
        self.dismiss()


__all__ = ["MODEL", "ResultPlotsScreen"]
