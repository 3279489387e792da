"""Help: the keys of the screen below, and how the course is meant to be used."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tutor.widgets.content import DIM_STYLE, Content, plain
from tutor.widgets.desk import key_of
from tutor.widgets.hanging import Column, Hanging
from tutor.widgets.keys import KeyLine, key_shown
from tutor.widgets.prose import Reading

GENERAL = """\
Home lists the modules; {select} opens one, and Continue is always the next thing to do. {next} and {previous} go from \
item to item, also across modules. Everything can be clicked, the keys in the footer too.

An exercise is a real file: {edit} opens it in your editor or the one built in, {grade} grades it. With watch on \
({watch}), every save of your editor grades. The grader runs it in a process of its own, so a crash or an endless \
loop there cannot hurt this app.

Every answer is saved at once, and comes back for review, first after days, then after weeks: {review} on Home."""
NAMED_KEYS = {
    "select": ("list.select", "enter"),
    "next": ("item.next", "n"),
    "previous": ("item.previous", "p"),
    "edit": ("exercise.edit", "e"),
    "grade": ("exercise.grade", "g"),
    "watch": ("exercise.watch", "w"),
    "review": ("home.review", "r"),
}

MOVING = ("↑↓", "hjkl")  # a footer that has these says itself how one moves


class HelpScreen(ModalScreen[None]):
    BINDINGS = [
        Binding("t", "tour", "Tour", tooltip="One minute over the main screens", id="help.tour"),
        Binding("escape,q,f1,question_mark", "dismiss", "Close", key_display="Esc", id="help.dismiss"),
    ]

    def __init__(self, below: Screen[object]) -> None:
        super().__init__()
        shown: dict[str, str] = {}
        for active in below.active_bindings.values():
            binding = active.binding
            if active.enabled and binding.description and binding.show and binding.action != "command_palette":
                shown.setdefault(_words(binding), key_shown(below, binding))
        self.keys = [(key, words) for words, key in shown.items()]
        self.typing = below.focused is not None and below.focused.check_consume_key("j", "j")

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            with Reading():
                yield Static(self._text())
        yield KeyLine()

    def _text(self) -> Column:
        taken = {key for key, _ in self.keys}
        down, up = key_of(self, "list.cursor-down", "j"), key_of(self, "list.cursor-up", "k")
        more = (
            (f"{down} {up} ↑ ↓", "move"),
            ("PgUp PgDn", "scroll the text above the answers"),
            ("Tab", "next part of the screen"),
            (key_of(self, "app.glossary", "G"), "the glossary: what a word means, and where it is taught"),
            (key_of(self, "app.command-palette", "ctrl+p"), "every command, the notices so far, and any item"),
            (key_of(self, "app.quit", "ctrl+q"), "quit"),
        )
        moves = taken & {*MOVING, down, up, "↑", "↓"}
        first = 4 if self.typing else 1 if moves else 0  # where one types, a letter is a letter, and Tab indents
        left = [row for row in more[first:] if row is more[0] or not taken & {*row[0].split()}]
        rows = (*self.keys, *left)
        width = max(plain(key).cell_length for key, _ in rows) + 2
        listed = [Hanging(plain(key.ljust(width), "bold"), plain(words)) for key, words in rows]
        head, gap = plain("Keys here", "bold"), plain("")
        return Column([head, *listed, gap, self._general(), gap, self._where()])

    def _general(self) -> Content:
        return plain(GENERAL.format(**{name: key_of(self, *key) for name, key in NAMED_KEYS.items()}))

    def action_tour(self) -> None:
        self.dismiss()
        self.app.call_later(self.app.run_action, "tour")

    def _where(self) -> Content:
        from tutor.widgets.desk import desk

        return plain(f"Your files: {desk(self.app).workspace.folder}", DIM_STYLE)


def _words(binding: Binding) -> str:
    """What the footer says, and what it has no room for."""
    more = f": {binding.tooltip[0].lower()}{binding.tooltip[1:]}" if binding.tooltip else ""
    return f"{binding.description}{more}"
