"""Walkthrough: code or a drawing, step by step, with the lines in question marked and a table of state."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.widgets import Static

from tutor.course.model import Step, Walkthrough
from tutor.widgets.content import DIM_STYLE, Content, columns, plain
from tutor.widgets.desk import key_of
from tutor.widgets.pane import ItemPane, PageShown
from tutor.widgets.prose import CodeView, Prose, Reading


class WalkthroughPane(ItemPane):
    BINDINGS = [
        Binding("right,space", "step(1)", "Next step", key_display="→", id="walkthrough.next-step"),
        Binding("left,backspace", "step(-1)", "Step back", key_display="←", id="walkthrough.step-back"),
        Binding("home", "start", "Start", show=False, id="walkthrough.start"),
    ]

    def __init__(self, item: Walkthrough, position: int = 0) -> None:
        # the introduction is step -1 of the course and position 0 here, so that a resumed walk starts where it was
        super().__init__(item, min(position, len(item.steps) - 1))
        self.walk = item

    def compose(self) -> ComposeResult:
        yield CodeView(self.walk.stage, self.walk.language, marked=self.step.lines, focusable=False, id="drawing")
        with Reading(id="steps", classes="answer"):
            yield Static(self._heading(), classes="page-title")
            yield Prose(self._text())
            yield Static(self._state(), id="state")

    def on_mount(self) -> None:
        self._tell()
        self.query_one("#drawing", CodeView).show(marked=self.step.lines)

    @property
    def step(self) -> Step:
        return self.walk.steps[self.position]

    def _heading(self) -> Content:
        place = plain(f"Step {self.position + 1} of {len(self.walk.steps)}", "bold")
        if not self.finished:
            return place
        return Content.assemble(place, plain(f"   the last: {key_of(self, 'item.next', 'n')} goes on", DIM_STYLE))

    def name_keys(self) -> None:
        self.query_one(".page-title", Static).update(self._heading())

    def _text(self) -> str:
        return f"{self.walk.intro}\n\n{self.step.text}" if self.position == 0 else self.step.text

    def _state(self) -> Content:
        """The table of this step; what changed since the step before carries a sign."""
        before = self.walk.steps[self.position - 1].state if self.position else {}
        rows: list[tuple[Content, Content, Content]] = []
        for name, value in self.step.state.items():
            changed = self.position > 0 and before.get(name) != value
            rows.append(
                (
                    plain("▸" if changed else " ", "bold $text-warning"),
                    plain(name, DIM_STYLE),
                    plain(value, "bold $text-warning" if changed else ""),
                )
            )
        return columns(rows, gap=1) if rows else Content("")

    def _tell(self) -> None:
        self.post_message(PageShown(self.item, self.position, self.position == len(self.walk.steps) - 1))

    @property
    def finished(self) -> bool:
        return self.position == len(self.walk.steps) - 1

    def turn(self, direction: int) -> bool:
        position = self.position + direction
        if not 0 <= position < len(self.walk.steps):
            return False
        self.position = position
        self.query_one("#drawing", CodeView).show(marked=self.step.lines)
        self.query_one(".page-title", Static).update(self._heading())
        self.query_one(Prose).update(self._text())
        self.query_one("#state", Static).update(self._state())
        self.query_one("#steps", Reading).scroll_home(animate=False)
        self._tell()
        self.refresh_bindings()
        return True

    def action_step(self, direction: int) -> None:
        self.turn(direction)

    def action_start(self) -> None:
        while self.turn(-1):
            pass
