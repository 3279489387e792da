"""What every item's pane shares: its item, and the messages it sends to the item screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.visual import Visual
from textual.widget import Widget
from textual.widgets import Static

from tutor.course.model import Item
from tutor.widgets.content import RIGHT, RIGHT_STYLE, WRONG, WRONG_STYLE, inline, plain
from tutor.widgets.hanging import Hanging


@dataclass
class Answered(Message):
    """An item was answered: recorded at once."""

    item: Item
    correct: bool
    score: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class PageShown(Message):
    """A page of a lesson or a step of a walkthrough is on the screen (0-based)."""

    item: Item
    position: int
    finished: bool


@dataclass
class HintTaken(Message):
    item: Item
    level: int


@dataclass
class GaveUp(Message):
    """The learner asked for the answer before finding it."""

    item: Item


class ItemPane(Vertical):
    """One item on the screen. It tells what happened by messages, and reaches the world through `desk(self)`."""

    def __init__(self, item: Item, position: int = 0) -> None:
        super().__init__()
        self.item = item
        self.position = position

    def answer_focus(self) -> Widget | None:
        """The widget that takes the answer: it gets the focus when the pane is shown."""
        return next(iter(self.query(".answer").results(Widget)), None)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do here but to go on."""
        return False

    def page_text(self) -> str:
        """What is to be read here, as text: the glossary looks for its terms in it."""
        from tutor.course.text import item_text

        return item_text(self.item)

    def turn(self, direction: int) -> bool:
        """Go one page on or back inside the item; False when there is none and the next item is meant."""
        return False

    def name_keys(self) -> None:
        """Keys have been changed: what is shown and names one says its new name."""

    def hints(self) -> tuple[str, ...]:
        return ()


class Verdict(VerticalScroll, can_focus=False):
    """The strip that says how it went, in a word and a sign; what is longer than the strip scrolls."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id, classes="verdict")
        self._said = Static(Content(""))
        self.display = False

    def compose(self) -> ComposeResult:
        yield self._said

    def say(self, text: Visual | str, tone: str = "plain") -> None:
        """`tone`: good, bad or plain."""
        sign = {"good": plain(f"{RIGHT} ", RIGHT_STYLE), "bad": plain(f"{WRONG} ", WRONG_STYLE)}.get(tone, plain(""))
        body = inline(text) if isinstance(text, str) else text
        self.set_class(tone == "good", "-good")
        self.set_class(tone == "bad", "-bad")
        self._said.update(Hanging(sign, body) if sign.plain else body)
        self.display = True
        self.scroll_home(animate=False)

    @property
    def plain(self) -> str:
        """What it says, as text."""
        return str(getattr(self._said.content, "plain", ""))
