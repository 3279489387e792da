"""The cases of a verdict as a grid: a sign and a word each, one of them chosen with the arrow keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textual import events
from textual.binding import Binding
from textual.message import Message
from textual.widget import Widget

from tutor.verdict_text import case_words
from tutor.widgets.content import DIM_STYLE, RIGHT_STYLE, WRONG_STYLE, Content, plain, stack

WIDEST = 34  # cells of one case
STYLES = {"passed": RIGHT_STYLE, "skipped": DIM_STYLE, "not_run": DIM_STYLE}


class CaseGrid(Widget, can_focus=True):
    BINDINGS = [
        Binding("right,l", "move(1, 0)", "Case", key_display="arrows", id="cases.right"),
        Binding("left,h", "move(-1, 0)", "Case left", show=False, id="cases.left"),
        Binding("down,j", "move(0, 1)", "Case down", show=False, id="cases.down"),
        Binding("up,k", "move(0, -1)", "Case up", show=False, id="cases.up"),
    ]
    DEFAULT_CSS = "CaseGrid { height: auto; width: 1fr; padding: 0 1; }"

    @dataclass
    class Picked(Message):
        index: int

    def __init__(self, cases: Sequence[Mapping[str, Any]], **more: Any) -> None:
        super().__init__(**more)
        self.cases = list(cases)
        failing = (i for i, case in enumerate(self.cases) if case.get("status") not in STYLES)
        self.chosen = next(failing, 0)

    @property
    def _wide(self) -> int:
        longest = max((len(_text(case)) for case in self.cases), default=10)
        return min(longest, WIDEST) + 3

    @property
    def across(self) -> int:
        return max(1, self.content_size.width // self._wide)

    def get_content_height(self, container: Any, viewport: Any, width: int) -> int:
        across = max(1, width // self._wide)
        return max(1, -(-len(self.cases) // across))

    def render(self) -> Content:
        if not self.cases:
            return plain("No case was run.", DIM_STYLE)
        cells = [self._cell(index) for index in range(len(self.cases))]
        rows = [cells[start : start + self.across] for start in range(0, len(cells), self.across)]
        return stack([Content("").join(row) for row in rows])

    def _cell(self, index: int) -> Content:
        case = self.cases[index]
        mark = "▶" if index == self.chosen else " "
        text = _text(case)
        text = text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
        style = STYLES.get(str(case.get("status")), WRONG_STYLE)
        cell = Content.assemble(plain(mark, "bold"), plain(text.ljust(self._wide - 1), style))
        return cell.stylize_before("bold") if index == self.chosen else cell

    def action_move(self, right: int, down: int) -> None:
        self.choose(self.chosen + right + down * self.across)

    def choose(self, index: int) -> None:
        if 0 <= index < len(self.cases) and index != self.chosen:
            self.chosen = index
            self.refresh()
            self.post_message(self.Picked(index))

    def on_click(self, event: events.Click) -> None:
        column, row = event.x - 1, event.y
        if 0 <= column // self._wide < self.across:
            self.choose(row * self.across + column // self._wide)


def _text(case: Mapping[str, Any]) -> str:
    sign, word = case_words(str(case.get("status", "")))
    return f"{sign} {word} {case.get('name', '')}"
