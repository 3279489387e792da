"""One screen for every item: a pane for its kind, an outline beside it, and the way to the next one."""

from __future__ import annotations

import time
from importlib import import_module

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Horizontal
from textual.screen import Screen
from textual.widgets import OptionList, Static

from tutor.course.course import kind_of
from tutor.course.model import Item, Module
from tutor.progress import ItemState
from tutor.screens.outline import module_items, number_of, row_of
from tutor.widgets.content import Content, inline, plain
from tutor.widgets.desk import desk
from tutor.widgets.keys import KeyLine
from tutor.widgets.lists import AnswerList
from tutor.widgets.pane import Answered, GaveUp, HintTaken, ItemPane, PageShown

KIND_WORDS = {
    "lesson": "Lesson",
    "quiz": "Quiz",
    "bug": "Spot the bug",
    "match": "Match",
    "walkthrough": "Walkthrough",
    "predict": "Predict",
    "open": "Open question",
    "exercise": "Exercise",
}


PANES = {
    "lesson": "lesson.LessonPane",
    "quiz": "quiz.QuizPane",
    "predict": "quiz.QuizPane",
    "bug": "bug.BugPane",
    "match": "match.MatchPane",
    "walkthrough": "walkthrough.WalkthroughPane",
    "open": "open_question.OpenPane",
    "exercise": "exercise.ExercisePane",
}


def pane_for(item: Item, position: int) -> ItemPane:
    """The pane of the item's kind; its file is imported when it is first needed, to keep the first paint quick."""
    module, _, name = PANES[kind_of(item)].partition(".")
    pane: ItemPane = getattr(import_module(f"tutor.widgets.{module}"), name)(item, position)
    return pane


class ItemScreen(Screen[None]):
    CSS_PATH = ["item.tcss", "exercise.tcss"]
    BINDINGS = [
        Binding("n,ctrl+n", "next_item", "Next", key_display="n", id="item.next"),
        Binding("p", "previous_item", "Prev", id="item.previous"),
        Binding("h", "hint", "Hint", id="item.hint"),
        Binding("s", "solution", "Solution", tooltip="After a pass, or when you give up", id="item.solution"),
        Binding("f2,o", "outline", "List", key_display="F2", tooltip="The items of this module", id="item.outline"),
        Binding("escape", "back", "Back", key_display="Esc", id="item.back"),
    ]

    def __init__(self, item: Item, *, visit: bool = False) -> None:
        """A `visit` looks something up: where the learner is in the course stays as it was."""
        super().__init__()
        self.item = item
        self.visit = visit
        self.opened = time.monotonic()
        self.about = False  # probes, gotchas and the like: read, not recorded

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="where")
        with Horizontal(id="body"):
            yield AnswerList([], id="outline")
            yield Container(id="stage")
        yield KeyLine()

    async def on_mount(self) -> None:
        self.query_one("#outline").display = False
        await self.show_item(self.item)

    @property
    def pane(self) -> ItemPane:
        return self.query_one("#stage").query_one(ItemPane)

    @property
    def module(self) -> Module:
        return desk(self).course.module(self.item.id.split(".")[0])

    def entries(self) -> tuple[Item, ...]:
        return module_items(self.module)

    async def show_item(self, item: Item, at_end: bool = False) -> None:
        """`at_end` opens the last page, for someone who pages backwards."""
        self.item = item
        self.opened = time.monotonic()
        self.about = item not in self.module.items
        progress = desk(self).progress
        position = 0
        if not self.about:
            if not self.visit:
                progress.set_resume(item.id)
            state = progress.state(item.id)
            # whoever had finished starts again at the front
            position = 0 if state.passed else state.position
        if at_end:
            position = 10_000 if kind_of(item) in ("lesson", "walkthrough") else 0
        stage = self.query_one("#stage")
        with self.app.batch_update():
            await stage.remove_children()
            pane = pane_for(item, position)
            await stage.mount(pane)
        self._say_where()
        self._refresh_outline()
        if (focus := pane.answer_focus()) is not None:
            focus.focus(scroll_visible=False)
        self.refresh_bindings()

    def _say_where(self) -> None:
        items, number = self.module.items, number_of(self.module)
        place = "" if self.about else f"{items.index(self.item) + 1}/{len(items)} "
        room = self.app.size.width - 2
        kind = KIND_WORDS[kind_of(self.item)]
        long = (f"{number} {self.module.title}", f"  {place}{kind}: ")
        short = (number, f"  {place}{kind}: ")
        fits = plain("".join(long)).cell_length + inline(self.item.title).cell_length <= room
        module, middle = long if fits else short
        self.query_one("#where", Static).update(
            Content.assemble(plain(module, "bold"), plain(middle, "$foreground 72%"), inline(self.item.title))
        )

    def on_resize(self) -> None:
        if self.query(ItemPane):
            self._say_where()

    def leading_action(self) -> str:
        """The key to show first: once the item is answered, the way on."""
        return "next_item" if self.query(ItemPane) and self.pane.finished else ""

    def name_keys(self) -> None:
        for pane in self.query(ItemPane):
            pane.name_keys()

    # what the panes tell

    def on_answered(self, message: Answered) -> None:
        seconds = time.monotonic() - self.opened
        desk(self).progress.record_answer(
            message.item.id,
            kind_of(message.item),
            correct=message.correct,
            score=message.score,
            seconds=seconds,
            detail=message.detail,
        )
        self._refresh_outline()
        self.refresh_bindings()
        self.answer_kept(message)

    def answer_kept(self, message: Answered) -> None:
        """For screens that do more once an answer is recorded."""

    def on_page_shown(self, message: PageShown) -> None:
        if message.item in self.module.items:
            desk(self).progress.record_page(message.item.id, message.position, finished=message.finished)

    def on_hint_taken(self, message: HintTaken) -> None:
        desk(self).progress.record_hint(message.item.id, message.level)

    def on_gave_up(self, message: GaveUp) -> None:
        desk(self).progress.record_give_up(message.item.id)

    # ways on

    async def action_next_item(self) -> None:
        if self.pane.turn(1):
            return
        items = self.entries()
        index = items.index(self.item) + 1
        if index < len(items):
            await self.show_item(items[index])
        elif (following := self._module_beside(1)) is not None:
            await self.show_item(module_items(following)[0])
        else:
            self.notify("That was the last item of the course.", markup=False)

    async def action_previous_item(self) -> None:
        if self.pane.turn(-1):
            return
        items = self.entries()
        index = items.index(self.item) - 1
        if index >= 0:
            await self.show_item(items[index], at_end=True)
        elif (before := self._module_beside(-1)) is not None:
            await self.show_item(module_items(before)[-1])
        else:
            self.notify("This is the first item of the course.", markup=False)

    def _module_beside(self, direction: int) -> Module | None:
        modules = desk(self).course.modules
        index = modules.index(self.module) + direction
        return modules[index] if 0 <= index < len(modules) else None

    def action_back(self) -> None:
        if self.query_one("#outline").has_focus:
            self.action_outline()
        else:
            self.dismiss()

    # the outline

    def states_shown(self) -> dict[str, ItemState]:
        return desk(self).progress.states()

    def _refresh_outline(self) -> None:
        outline = self.query_one("#outline", AnswerList)
        if not outline.display:
            return
        outline.clear_options()
        states = self.states_shown()
        for item in self.entries():
            outline.add_option(row_of(item, states.get(item.id)))
        outline.highlighted = self.entries().index(self.item)

    def action_outline(self) -> None:
        outline = self.query_one("#outline")
        outline.display = not outline.display
        self._refresh_outline()
        if outline.display:
            outline.focus()
        elif (focus := self.pane.answer_focus()) is not None:
            focus.focus()

    @on(OptionList.OptionSelected, "#outline")
    async def _outline_picked(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self.has_class("-narrow"):
            self.query_one("#outline").display = False
        await self.show_item(self.entries()[event.option_index])

    # help with the item

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action in ("hint", "solution", "next_item", "previous_item", "outline") and not self.query(ItemPane):
            return False  # keys typed before the item is there
        if action == "hint":
            return bool(self.pane.hints())
        if action == "solution":
            return hasattr(self.pane, "reveal")
        return True

    def action_hint(self) -> None:
        from tutor.screens.answer import HintScreen

        hints = self.pane.hints()
        taken = min(max(1, desk(self).progress.state(self.item.id).hints), len(hints))
        self.post_message(HintTaken(self.item, taken))
        self.app.push_screen(HintScreen(hints, taken, lambda level: self.on_hint_taken(HintTaken(self.item, level))))

    def action_solution(self) -> None:
        from tutor.screens.confirm import ConfirmScreen

        state = desk(self).progress.state(self.item.id)
        if state.passed or state.gave_up:
            desk(self).progress.record_solution_seen(self.item.id)
            self._reveal(True)
            return
        question = "Give up and see the answer? It is recorded; you can still solve it afterwards."
        self.app.push_screen(ConfirmScreen(question, "Show it"), self._give_up)

    def _give_up(self, wanted: bool | None) -> None:
        if wanted:
            self.post_message(GaveUp(self.item))
            self._reveal(True)

    def _reveal(self, wanted: bool) -> None:
        reveal = getattr(self.pane, "reveal", None)
        if wanted and reveal is not None:
            reveal()
