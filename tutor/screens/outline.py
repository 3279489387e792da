"""A module's table of contents."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import OptionList, Static

from tutor.course.course import kind_of
from tutor.course.model import Item, Lesson, Module, Note, Page
from tutor.progress import ItemState
from tutor.widgets.content import (
    DIM_STYLE,
    OPEN,
    PARTLY,
    RIGHT,
    RIGHT_STYLE,
    Content,
    inline,
    plain,
)
from tutor.widgets.desk import desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList


def number_of(module: Module) -> str:
    """3 for m03; modules outside the count carry a dot."""
    return str(int(module.id[1:])) if module.id[1:].isdigit() else OPEN


def module_items(module: Module) -> tuple[Item, ...]:
    """The module's items, with what surrounds them as lessons: probes first; gotchas, versions, outlook last."""
    first = [_about(module, "probes", "What interviewers probe", module.probes)]
    last = []
    if module.gotchas:
        last.append(_about(module, "gotchas", "Gotchas", _notes(module.gotchas)))
    if module.versions:
        last.append(_about(module, "versions", "Version notes", _notes(module.versions)))
    if module.next:
        last.append(_about(module, "next", "What comes next", module.next))
    return (*first, *module.items, *last)


def _about(module: Module, name: str, title: str, text: str) -> Lesson:
    return Lesson(id=f"{module.id}.about.{name}", title=title, pages=(Page(title=title, text=text),))


def _notes(notes: tuple[Note, ...]) -> str:
    return "\n\n".join(note.text if note.text.startswith(("#", "-", "*")) else f"- {note.text}" for note in notes)


def is_about(item: Item) -> bool:
    """Whether it is a page around the module's items: it has no number and no progress."""
    return ".about." in item.id


def sign_of(state: ItemState | None) -> Content:
    """Done, begun or not yet, readable without colour."""
    if state is None:
        return plain(OPEN, DIM_STYLE)
    if state.passed:
        return plain(RIGHT, RIGHT_STYLE)
    return plain(PARTLY, "$text-warning") if state.attempts or state.position else plain(OPEN, DIM_STYLE)


def row_of(item: Item, state: ItemState | None) -> Content:
    sign = plain(" ") if is_about(item) else sign_of(state)  # what is not counted is never done
    return Content.assemble(sign, plain(f" {kind_of(item):<12}", DIM_STYLE), inline(item.title))


class OutlineScreen(Screen[None]):
    BINDINGS = [
        Binding("n", "beside(1)", "Next module", id="module.next-module"),
        Binding("p", "beside(-1)", "Previous module", id="module.previous-module"),
        Binding("escape,q", "back", "Home", key_display="Esc", id="module.back"),
    ]

    def __init__(self, module: Module) -> None:
        super().__init__()
        self.module = module

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="where")
        with Vertical(id="module"):
            yield Static(Content(""), id="blurb")
            yield AnswerList([], id="items", classes="rows")
        yield KeyLine()

    def on_mount(self) -> None:
        self.show_module(self.module)
        self.query_one("#items").focus()

    def on_screen_resume(self) -> None:
        self.show_module(self.module, keep=True)

    def show_module(self, module: Module, keep: bool = False) -> None:
        states = desk(self).progress.states()
        items = self.query_one("#items", AnswerList)
        place = items.highlighted if keep else None
        self.module = module
        done = sum(item.id in states and states[item.id].passed for item in module.items)
        self.query_one("#where", Static).update(
            Content.assemble(
                plain(f"{number_of(module)} {module.title}", "bold"),
                plain(f"  {done} of {len(module.items)} done", DIM_STYLE),
            )
        )
        self.query_one("#blurb", Static).update(inline(module.blurb))
        shown = module_items(module)
        items.clear_options()
        items.add_options([row_of(item, states.get(item.id)) for item in shown])
        undone = (index for index, item in enumerate(shown) if item in module.items and not _passed(states, item))
        items.highlighted = place if place is not None else next(undone, 0) if done else 0

    @on(OptionList.OptionSelected, "#items")
    def _picked(self, event: OptionList.OptionSelected) -> None:
        from tutor.screens.item import ItemScreen

        event.stop()
        self.app.push_screen(ItemScreen(module_items(self.module)[event.option_index]))

    def action_beside(self, direction: int) -> None:
        modules = desk(self).course.modules
        index = modules.index(self.module) + direction
        if 0 <= index < len(modules):
            self.show_module(modules[index])

    def action_back(self) -> None:
        self.dismiss()


def _passed(states: dict[str, ItemState], item: Item) -> bool:
    return item.id in states and states[item.id].passed
