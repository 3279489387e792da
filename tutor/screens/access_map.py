"""The access map: which program loads and stores which element, from a run of the learner's own kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical, VerticalScroll
from textual.screen import ModalScreen, Screen
from textual.widgets import OptionList, Static

from grader.access_map.model import AccessMap
from tutor.access import words
from tutor.access.cells import Choice, Steps
from tutor.access.drawing import report
from tutor.grading import Answer, Failed, Progressed
from tutor.widgets.access_grid import AccessGrid
from tutor.widgets.content import DIM_STYLE, WRONG_STYLE, Content, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.hanging import hanging_lines
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList


class AccessMapScreen(Screen[None]):
    CSS_PATH = "access_map.tcss"
    BINDINGS = [
        Binding("right", "program(1)", "Program", key_display="←→", id="map.next-program"),
        Binding("left", "program(-1)", "Program back", show=False, id="map.previous-program"),
        Binding("down", "site(1)", "Access", key_display="↑↓", id="map.next-access"),
        Binding("up", "site(-1)", "Access before", show=False, id="map.previous-access"),
        Binding("tab", "tensor(1)", "Tensor", key_display="Tab", id="map.next-tensor"),
        Binding("shift+tab", "tensor(-1)", "Tensor before", show=False, id="map.previous-tensor"),
        Binding(
            "full_stop",
            "visit(1)",
            "Loop",
            key_display=",.",
            tooltip="One loop iteration on",
            id="map.next-iteration",
        ),
        Binding("comma", "visit(-1)", "Loop back", show=False, id="map.previous-iteration"),
        Binding("c", "case", "Case", tooltip="Run another case", id="map.case"),
        Binding("r", "again", "Again", tooltip="Run the file as it is now", id="map.again"),
        Binding("a", "everything", "All", tooltip="All programs, all accesses", id="map.everything"),
        Binding("h", "cell(0,-1)", "Cell left", show=False, id="map.cell-left"),
        Binding("j", "cell(1,0)", "Cell down", show=False, id="map.cell-down"),
        Binding("k", "cell(-1,0)", "Cell up", show=False, id="map.cell-up"),
        Binding(
            "l",
            "cell(0,1)",
            "Cell",
            key_display="hjkl",
            tooltip="Pick a cell and say who touches it",
            id="map.cell-right",
        ),
        Binding("y", "copy", "Copy", tooltip="Copy the map as text", id="map.copy"),
        Binding("pagedown", "scroll_facts(1)", "Facts down", show=False, id="map.facts-down"),
        Binding("pageup", "scroll_facts(-1)", "Facts up", show=False, id="map.facts-up"),
        Binding("escape,q,m", "back", "Back", key_display="Esc", id="map.back"),
    ]

    def __init__(self, slug: str, file: Path, *, case: str = "", demo: bool = False) -> None:
        """`demo`: a lesson's kernel, whose code is not shown."""
        super().__init__()
        self.slug, self.file, self.case, self.demo = slug, file, case, demo
        self.whose = "the kernel of this page" if demo else file.name
        self.shown: AccessMap | None = None
        self.choice = Choice()

    def compose(self) -> ComposeResult:
        yield Static(plain(""), id="where")
        with Container(id="map"):
            with Vertical(id="map-picture"):
                yield Static(plain(""), id="map-tensor")
                yield AccessGrid(id="map-grid")
                yield Static(plain(""), id="map-site")
            with VerticalScroll(id="map-facts", can_focus=False):
                yield Static(plain(""), id="map-words")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(AccessGrid).focus()
        self.action_again()

    # asking the grader

    def action_again(self) -> None:
        self._say_where()
        ready = desk(self).grader.ready is not None
        self._say("Running the kernel …" if ready else "Starting the grader: a few seconds the first time …")
        self._ask()

    @work(group="map", exclusive=True, exit_on_error=False)
    async def _ask(self) -> None:
        fields: dict[str, Any] = {"demo": self.demo}
        if self.case:
            fields["case"] = self.case
        async for event in desk(self).grader.ask("access_map", self.slug, self.file, **fields):
            if isinstance(event, Progressed) and self.shown is None:
                self._say(f"Running {event.words} …")
            elif isinstance(event, Failed):
                again = "" if event.kind == "usage" else f"\n\n{key_of(self, 'map.again', 'r')} tries again."
                self._fail(f"{event.message}{again}")
            elif isinstance(event, Answer):
                try:
                    self._arrived(msgspec.convert(event.data, AccessMap))
                except msgspec.ValidationError as error:
                    self._fail(f"The grader's map cannot be read: {error}. Is it of another version?")

    def _fail(self, text: str) -> None:
        self.shown = None
        self.query_one(AccessGrid).clear()
        for name in ("#map-tensor", "#map-site"):
            self.query_one(name, Static).update(plain(""))
        self._say(text, WRONG_STYLE)
        self.refresh_bindings()

    def _arrived(self, shown: AccessMap) -> None:
        same = self.shown is not None and len(shown.tensors) == len(self.shown.tensors)
        tensor = self.choice.tensor if same else _first_tensor(shown)
        self.shown, self.choice = shown, Choice(tensor=tensor)
        self._say_where()
        self._refresh()

    def _say_where(self) -> None:
        case = self.shown.case if self.shown is not None else self.case
        named = f"   case {case}" if case else ""
        where = Content.assemble(plain("Map ", "bold"), plain(f"{self.slug}{named}   {self.whose}", DIM_STYLE))
        self.query_one("#where", Static).update(where)

    # what is looked at

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("program", "site", "tensor", "visit", "everything", "cell", "copy"):
            if self.shown is None or not self.shown.tensors:
                return False
            if action == "visit":
                return Steps(self.shown, self.choice).visits > 1
            if action == "tensor":
                return len(self.shown.tensors) > 1
        if action == "case":  # a lesson's kernel does not look at its arguments
            return not self.demo and self.shown is not None and len(self.shown.cases) > 1
        return True

    def _steps(self) -> Steps:
        assert self.shown is not None  # check_action sees to it
        return Steps(self.shown, self.choice)

    def _choose(self, choice: Choice) -> None:
        if choice != self.choice:
            self.choice = choice
            self._refresh()

    def action_program(self, direction: int) -> None:
        self._choose(self._steps().program(direction))

    def action_visit(self, direction: int) -> None:
        self._choose(self._steps().visit(direction))

    def action_site(self, direction: int) -> None:
        self._choose(self._steps().site(direction))

    def action_tensor(self, direction: int) -> None:
        self._choose(self._steps().tensor(direction))

    def action_everything(self) -> None:
        self.query_one(AccessGrid).unpick()
        self._choose(Choice(tensor=self.choice.tensor))

    def action_cell(self, rows: int, columns: int) -> None:
        self.query_one(AccessGrid).step(rows, columns)

    def action_scroll_facts(self, direction: int) -> None:
        facts = self.query_one("#map-facts", VerticalScroll)
        (facts.scroll_page_down if direction > 0 else facts.scroll_page_up)(animate=False)

    def action_copy(self) -> None:
        assert self.shown is not None
        self.app.copy(report(self.shown, program=self.choice.program), "Map")  # type: ignore[attr-defined]

    def action_back(self) -> None:
        if self.query_one(AccessGrid).picked is not None:
            self.query_one(AccessGrid).unpick()
        else:
            self.workers.cancel_node(self)
            self.dismiss()

    def action_case(self) -> None:
        assert self.shown is not None
        self.app.push_screen(CaseScreen(self.shown.cases, self.shown.case), self._case_chosen)

    def _case_chosen(self, case: str | None) -> None:
        if case is not None:
            self.case, self.shown = case, None
            self.query_one(AccessGrid).clear()
            self.action_again()

    # showing

    def _refresh(self) -> None:
        shown = self.shown
        if shown is None:
            return
        if shown.tensors:
            self.query_one("#map-tensor", Static).update(self._tensor_text(shown))
            self.query_one("#map-site", Static).update(self._site_text(shown))
        self.query_one(AccessGrid).show(shown, self.choice)
        self._say_facts()
        self.refresh_bindings()

    def _tensor_text(self, shown: AccessMap) -> Content:
        place = f"{self.choice.tensor + 1}/{len(shown.tensors)} "
        return Content.assemble(plain(place, DIM_STYLE), plain(words.tensor_line(shown, self.choice.tensor), "bold"))

    def _site_text(self, shown: AccessMap) -> Content:
        sites = self._steps().sites
        who = "all programs" if self.choice.program is None else f"program {self.choice.program}"
        if self.choice.visit is not None:
            who += f", iteration {self.choice.visit}"
        if self.choice.site is None:
            lines = ", ".join(str(n) for n in dict.fromkeys(shown.sites[i].line for i in sites))
            return plain(f"{who}: every access ({len(sites)}: line {lines})" if sites else f"{who}: no access")
        site = shown.sites[self.choice.site]
        place = f"{who}: {sites.index(self.choice.site) + 1}/{len(sites)} {words.site_line(shown, site)}"
        return stack([plain(place), plain(site.source, DIM_STYLE)]) if site.source else plain(place)

    @on(AccessGrid.Drawn)
    @on(AccessGrid.Picked)
    def _say_facts(self) -> None:
        shown = self.shown
        if shown is None:
            return
        lines: list[tuple[str, str]] = [(line, WRONG_STYLE) for line in words.state_lines(shown)]
        if not shown.tensors:
            lines.append(("No kernel touched a tensor: nothing was launched, or it ended before.", ""))
        else:
            chosen = []
            if self.choice.program is not None:
                chosen.append((words.program_line(shown, self.choice), "bold"))
            lines = [*self._cell_lines(shown), *chosen, *lines, *self._chosen_lines(shown)]
        lines.append((words.moved_line(shown), ""))
        call = words.call_line(shown)
        lines.append((f"{call[0].upper()}{call[1:]}.", DIM_STYLE))
        if shown.tensors:
            dim = [words.signs_line(self.choice) + ".", words.label_line(shown), words.LANES]
            lines += [(text, DIM_STYLE) for text in dim if text]
        self.query_one("#map-words", Static).update(stack([plain(text, style) for text, style in lines]))

    def _cell_lines(self, shown: AccessMap) -> list[tuple[str, str]]:
        grid = self.query_one(AccessGrid)
        if grid.cell is None or grid.touched is None or grid.drawn is None:
            return []
        first = "First element of the cell: " if grid.drawn.across * grid.drawn.down > 1 else ""
        head, *rest = words.cell_lines(shown, self.choice, grid.touched, grid.cell.first)
        return [(f"{first}{head}", "bold"), *((line, "bold") for line in rest)]

    def _chosen_lines(self, shown: AccessMap) -> list[tuple[str, str]]:
        lines: list[str] = []
        if self.choice.site is not None:
            lines += words.site_facts(shown, shown.sites[self.choice.site])
        else:
            lines += words.tensor_facts(shown, self.choice.tensor)
            sites = self._steps().sites
            if len(sites) == 1:
                lines += words.site_facts(shown, shown.sites[sites[0]])
        drawn = self.query_one(AccessGrid).drawn
        if drawn is not None and drawn.across * drawn.down > 1:
            lines.append(words.scale_line(drawn))
        return [(line, WRONG_STYLE if line.startswith(("!", "×")) else "") for line in lines]

    def _say(self, text: str, style: str = "") -> None:
        shown = plain(text, style) if style else hanging_lines(text)
        self.query_one("#map-words", Static).update(shown)


def _first_tensor(shown: AccessMap) -> int:
    """The one with a fault, else the first that is stored to."""
    for index, tensor in enumerate(shown.tensors):
        bad = any(site.outside or site.between for site in shown.sites if site.tensor == index)
        if bad or tensor.facts.overlap or tensor.facts.unstored_at is not None:
            return index
    return next((i for i, tensor in enumerate(shown.tensors) if tensor.facts.stored), 0)


class CaseScreen(ModalScreen[str | None]):
    BINDINGS = [Binding("escape,q", "dismiss", "Close", key_display="Esc", id="map-cases.dismiss")]

    def __init__(self, cases: tuple[str, ...], current: str) -> None:
        super().__init__()
        self.cases, self.current = cases, current

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain("Run which case?", "bold"))
            yield AnswerList([plain(case) for case in self.cases], id="map-cases")
        yield KeyLine()

    def on_mount(self) -> None:
        cases = self.query_one("#map-cases", AnswerList)
        cases.highlighted = self.cases.index(self.current) if self.current in self.cases else 0
        cases.focus()

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self.cases[event.option_index])
