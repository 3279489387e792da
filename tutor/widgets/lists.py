"""Lists to answer with: one choice, or several ticks."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from textual import on
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.visual import Visual
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tutor.widgets.content import plain
from tutor.widgets.hanging import Hanging


class AnswerList(OptionList):
    """Options to choose one of, by Enter or by a click. Page keys scroll a question longer than its place."""

    BINDINGS = [
        Binding("k", "cursor_up", "Up", show=False, id="list.cursor-up"),
        Binding("j", "cursor_down", "Down", show=False, id="list.cursor-down"),
        Binding("enter", "select", "Choose", id="list.select"),
    ]

    def __init__(self, prompts: Iterable[Visual], *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(*[Option(prompt) for prompt in prompts], id=id, classes=classes, markup=False, compact=True)
        if self.option_count:
            self.highlighted = 0

    def action_page_down(self) -> None:
        with suppress(LookupError):  # rows that were just set are not laid out yet
            _page(self, 1) or super().action_page_down()

    def action_page_up(self) -> None:
        with suppress(LookupError):
            _page(self, -1) or super().action_page_up()


class TickList(OptionList):
    """Options to tick: Space or a click ticks, Enter hands the ticks in. The box reads without colour."""

    BINDINGS = [
        Binding("k", "cursor_up", "Up", show=False, id="ticks.cursor-up"),
        Binding("j", "cursor_down", "Down", show=False, id="ticks.cursor-down"),
        Binding("space", "select", "Tick", key_display="Space", id="ticks.select"),
        Binding("enter", "hand_in", "Answer", id="ticks.hand-in"),
    ]

    class HandedIn(Message):
        """The ticks are final."""

    def __init__(self, prompts: Iterable[Visual], *, id: str | None = None, classes: str | None = None) -> None:
        self._prompts = tuple(prompts)
        self.ticked: set[int] = set()
        rows = [Option(self._row(index)) for index in range(len(self._prompts))]
        super().__init__(*rows, id=id, classes=classes, markup=False, compact=True)
        self.highlighted = 0

    def _row(self, index: int) -> Visual:
        return Hanging(plain("[x] " if index in self.ticked else "[ ] ", "bold"), self._prompts[index])

    @on(OptionList.OptionSelected)
    def _toggle(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.ticked ^= {event.option_index}
        self.replace_option_prompt_at_index(event.option_index, self._row(event.option_index))

    def clear_ticks(self) -> None:
        self.ticked.clear()
        for index in range(len(self._prompts)):
            self.replace_option_prompt_at_index(index, self._row(index))

    def action_hand_in(self) -> None:
        self.post_message(self.HandedIn())

    def action_page_down(self) -> None:
        with suppress(LookupError):  # rows that were just set are not laid out yet
            _page(self, 1) or super().action_page_down()

    def action_page_up(self) -> None:
        with suppress(LookupError):
            _page(self, -1) or super().action_page_up()


def _page(options: OptionList, direction: int) -> bool:
    """Scroll the text above `options` by a page; False when all of it is in sight."""
    for text in options.screen.query("#model, #question").results(VerticalScroll):
        if text.display and text.max_scroll_y > 0:
            text.scroll_page_down(animate=False) if direction > 0 else text.scroll_page_up(animate=False)
            return True
    return False
