"""What was said in the corner of the screen, to be read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tutor.widgets.content import DIM_STYLE, plain
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading

if TYPE_CHECKING:
    from tutor.screens.base_app import Said


class NoticesScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,q", "dismiss", "Close", key_display="Esc", id="notices.dismiss")]

    def __init__(self, said: Iterable[Said]) -> None:
        super().__init__()
        self.rows = [Hanging(plain(f"{one.at:%H:%M}  ", DIM_STYLE), plain(one.text)) for one in said]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            yield Static(plain("Notices so far, the newest first" if self.rows else "No notices so far", "bold"))
            with Reading():
                yield Static(Column(list(reversed(self.rows))))
        yield KeyLine()
