"""One choice out of a few, in a dialog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from tutor.widgets.content import DIM_STYLE, plain, stack
from tutor.widgets.hanging import hanging_line
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList

Value = TypeVar("Value")


@dataclass(frozen=True)
class Choice(Generic[Value]):
    """`why_not` says why it cannot be chosen now; empty when it can."""

    words: str
    value: Value
    why_not: str = ""


class ChoiceScreen(ModalScreen[Value | None], Generic[Value]):
    BINDINGS = [Binding("escape,q", "dismiss", "Close", key_display="Esc", id="choice.close")]

    def __init__(self, question: str, choices: Sequence[Choice[Value]], chosen: int = 0) -> None:
        super().__init__()
        self.question, self.chosen = question, chosen
        self.choices = [choice for choice in choices if not choice.why_not]
        self.closed = [choice for choice in choices if choice.why_not]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain(self.question, "bold"))
            yield AnswerList([hanging_line(choice.words) for choice in self.choices], classes="choice-list")
            if self.closed:
                yield Static(stack([plain(f"Not now: {c.words} ({c.why_not})", DIM_STYLE) for c in self.closed]))
        yield KeyLine()

    def on_mount(self) -> None:
        choices = self.query_one(AnswerList)
        choices.highlighted = self.chosen if self.chosen < len(self.choices) else 0
        choices.focus()

    @on(OptionList.OptionSelected)
    def _picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.dismiss(self.choices[event.option_index].value)
