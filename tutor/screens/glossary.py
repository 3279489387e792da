"""The glossary: type to find a word, read what it means, Enter goes to the item that teaches it."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tutor.course.glossary import Term, matching, occurring
from tutor.widgets.content import DIM_STYLE, Content, inline, plain, stack
from tutor.widgets.desk import desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList


class GlossaryScreen(ModalScreen[str | None]):
    """Closes with the id of the item to look up, or with None."""

    CSS_PATH = "glossary.tcss"
    BINDINGS = [
        Binding("enter", "look_up_term", "Go to its item", priority=True, id="glossary.look-up-term"),
        Binding("down", "move(1)", "Down", show=False, priority=True, id="glossary.next"),
        Binding("up", "move(-1)", "Up", show=False, priority=True, id="glossary.previous"),
        Binding("pagedown", "page(1)", "Further down", show=False, priority=True, id="glossary.page-down"),
        Binding("pageup", "page(-1)", "Further up", show=False, priority=True, id="glossary.page-up"),
        Binding("escape", "dismiss", "Close", key_display="Esc", id="glossary.dismiss"),
    ]

    def __init__(self, terms: tuple[Term, ...], page: str) -> None:
        """The terms that `page` uses stand first."""
        super().__init__()
        self.terms = terms
        self.here = occurring(terms, page)
        self.rows: list[Term | None] = []  # None: a heading
        self.just_shown = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall", id="glossary"):
            yield Input(placeholder="Glossary: type a word", compact=True, id="word")
            yield AnswerList([], id="terms", classes="rows")
            with VerticalScroll(id="meaning", can_focus=False):
                yield Static(Content(""), id="meaning-text")
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#terms").can_focus = False
        self._list("")

    @on(Input.Changed, "#word")
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._list(event.value)

    def _list(self, typed: str) -> None:
        here, found = matching(self.here, typed), matching(self.terms, typed)
        self.rows = [None, *here] if here else []
        self.rows += [None, *found] if found else []
        headings = iter((f"On this page ({len(here)})", f"All terms ({len(found)})")[0 if here else 1 :])
        options = [
            Option(plain(next(headings), f"bold {DIM_STYLE}"), disabled=True)
            if term is None
            else Option(plain(f"  {term.term}"))
            for term in self.rows
        ]
        listed = self.query_one("#terms", AnswerList)
        listed.clear_options()
        listed.add_options(options)
        listed.highlighted = 1 if self.rows else None
        if not self.rows:
            self._say(plain(f"No term has {typed!r} in its name.", DIM_STYLE))

    @property
    def chosen(self) -> Term | None:
        index = self.query_one("#terms", AnswerList).highlighted
        return self.rows[index] if index is not None and index < len(self.rows) else None

    @on(OptionList.OptionHighlighted, "#terms")
    def _highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self.just_shown = True
        if (term := self.chosen) is not None:
            names = f" (also {', '.join(term.also)})" if term.also else ""
            taught = desk(self).course.current_id(term.item)
            title = inline(desk(self).course.item(taught).title, DIM_STYLE) if taught else plain("no item")
            where = Content.assemble(plain("Taught in: ", DIM_STYLE), title)
            self._say(stack([Content.assemble(plain(term.term, "bold"), plain(names)), inline(term.text), where]))

    def _say(self, text: Content) -> None:
        self.query_one("#meaning-text", Static).update(text)
        self.query_one("#meaning").scroll_home(animate=False)

    @on(OptionList.OptionSelected, "#terms")
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        """The first click on a row shows what it means, one more goes to its item."""
        event.stop()
        if not self.just_shown:
            self.action_look_up_term()
        self.just_shown = False

    def action_move(self, rows: int) -> None:
        listed = self.query_one("#terms", AnswerList)
        for _ in range(abs(rows)):
            listed.action_cursor_down() if rows > 0 else listed.action_cursor_up()

    def action_page(self, direction: int) -> None:
        """Through a meaning that is longer than its place, else through the list."""
        meaning = self.query_one("#meaning")
        left = meaning.max_scroll_y - meaning.scroll_offset.y if direction > 0 else meaning.scroll_offset.y
        if left > 0:
            meaning.scroll_page_down(animate=False) if direction > 0 else meaning.scroll_page_up(animate=False)
        else:
            self.action_move(8 * direction)

    def action_look_up_term(self) -> None:
        if (term := self.chosen) is not None and desk(self).course.current_id(term.item):
            self.dismiss(term.item)
