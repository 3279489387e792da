"""Help: the keys of the screen below, and how the course is meant to be used."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tutor.widgets.content import DIM_STYLE, Content, columns, plain, stack
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading

GENERAL = """\
Home lists the modules; Enter opens one, and Continue is always the next thing to do. n and p go from item to item, \
also across modules. Everything can be clicked, the keys in the footer too.

An exercise is a real file: e opens it in your editor, g grades it. With watch on (w), every save grades. \
The grader runs it in a process of its own, so a crash or an endless loop there cannot hurt this app.

Every answer is saved at once, and comes back for review, first after days, then after weeks: r on Home."""

MORE_KEYS = (
    ("j k ↑ ↓", "move"),
    ("PgUp PgDn", "scroll the text above the answers"),
    ("Tab", "next part of the screen"),
    ("ctrl+p", "every command, and jump to an item"),
    ("ctrl+q", "quit"),
)


class HelpScreen(ModalScreen[None]):
    BINDINGS = [Binding("escape,q,f1,question_mark", "dismiss", "Close", key_display="Esc")]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        shown: dict[str, str] = {}
        for active in below.active_bindings.values():
            binding = active.binding
            if active.enabled and binding.description and binding.show:
                shown.setdefault(binding.description, below.app.get_key_display(binding))
        self.keys = [(key, words) for words, key in shown.items()]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            with Reading():
                yield Static(self._text())
        yield KeyLine()

    def _text(self) -> Content:
        rows = [(plain(key, "bold"), plain(words)) for key, words in (*self.keys, *MORE_KEYS)]
        return stack([plain("Keys here", "bold"), columns(rows), plain(""), plain(GENERAL), plain(""), self._where()])

    def _where(self) -> Content:
        from tutor.widgets.desk import desk

        return plain(f"Your files: {desk(self.app).workspace.folder}", DIM_STYLE)
