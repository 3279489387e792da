"""Help: the keys of the screen below, and how the course is meant to be used."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tutor.widgets.content import DIM_STYLE, Content, columns, plain, stack
from tutor.widgets.desk import key_of
from tutor.widgets.keys import KeyLine, key_shown
from tutor.widgets.prose import Reading

GENERAL = """\
Home lists the modules; Enter opens one, and Continue is always the next thing to do. {next} and {previous} go from \
item to item, also across modules. Everything can be clicked, the keys in the footer too.

An exercise is a real file: {edit} opens it in your editor or the one built in, {grade} grades it. With watch on \
({watch}), every save of your editor grades. The grader runs it in a process of its own, so a crash or an endless \
loop there cannot hurt this app.

Every answer is saved at once, and comes back for review, first after days, then after weeks: {review} on Home."""
NAMED_KEYS = {
    "next": ("item.next", "n"),
    "previous": ("item.previous", "p"),
    "edit": ("exercise.edit", "e"),
    "grade": ("exercise.grade", "g"),
    "watch": ("exercise.watch", "w"),
    "review": ("home.review", "r"),
}

SAME_KEYS = {"j k ↑ ↓": ("↑↓", "hjkl")}  # as a footer writes them
MORE_KEYS = (
    ("j k ↑ ↓", "move"),
    ("PgUp PgDn", "scroll the text above the answers"),
    ("Tab", "next part of the screen"),
    ("G", "the glossary: what a word means, and where it is taught"),
    ("ctrl+p", "every command, and jump to an item"),
    ("ctrl+q", "quit"),
)


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
                shown.setdefault(binding.description, key_shown(below, binding))
        self.keys = [(key, words) for words, key in shown.items()]

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            with Reading():
                yield Static(self._text())
        yield KeyLine()

    def _text(self) -> Content:
        taken = {key for key, _ in self.keys}
        more = [row for row in MORE_KEYS if not taken & {*row[0].split(), *SAME_KEYS.get(row[0], ())}]
        rows = [(plain(key, "bold"), plain(words)) for key, words in (*self.keys, *more)]
        return stack([plain("Keys here", "bold"), columns(rows), plain(""), self._general(), plain(""), self._where()])

    def _general(self) -> Content:
        return plain(GENERAL.format(**{name: key_of(self, *key) for name, key in NAMED_KEYS.items()}))

    def action_tour(self) -> None:
        self.dismiss()
        self.app.call_later(self.app.run_action, "tour")

    def _where(self) -> Content:
        from tutor.widgets.desk import desk

        return plain(f"Your files: {desk(self.app).workspace.folder}", DIM_STYLE)
