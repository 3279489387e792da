"""Spaced review: the items that are due, one after the other, in their usual panes; then how it went."""

from __future__ import annotations

from functools import partial

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static

from tutor.course.course import kind_of
from tutor.course.model import Exercise, Item
from tutor.progress import ItemState
from tutor.review import Agenda, agenda, counted, day_words
from tutor.screens.item import KIND_WORDS, ItemScreen
from tutor.widgets.content import RIGHT, RIGHT_STYLE, WRONG, WRONG_STYLE, Content, inline, plain, stack
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import KeyLine
from tutor.widgets.pane import Answered, GaveUp
from tutor.widgets.prose import Reading
from tutor.widgets.result import ResultView

REWRITE = "Due again: {reset} puts the stub back (your version is kept as a backup), then write it anew."
SAME_FILE = "The same file passed before, so it does not count as a review. {reset} puts the stub back."

GIVE_UP = "See the answer? It counts as forgotten, and comes back tomorrow."


class ReviewScreen(ItemScreen):
    def __init__(self, day: Agenda) -> None:
        super().__init__(day.due[0], visit=True)
        self.day = day
        self.right: dict[str, bool] = {}  # the last result, by item

    def entries(self) -> tuple[Item, ...]:
        return self.day.due

    def states_shown(self) -> dict[str, ItemState]:
        """The outline marks what was done in this review, not what was done before."""
        return {item_id: ItemState(item_id, passed=good, attempts=1) for item_id, good in self.right.items()}

    async def show_item(self, item: Item, at_end: bool = False) -> None:
        await super().show_item(item)
        if isinstance(item, Exercise) and item.id not in self.right:
            from tutor.widgets.exercise import ExercisePane  # loaded when the first exercise is shown

            self.query_one(ExercisePane).advise(partial(self._with_key, REWRITE))

    def _say_where(self) -> None:
        items = self.entries()
        left = sum(item.id not in self.right for item in items)
        head = f"Review {items.index(self.item) + 1}/{len(items)}"
        parts = [plain(head, "bold"), plain(f", {left} left  ", "$foreground 72%")]
        if self.item.id in self.right:
            parts += [self._outcome(self.item), plain("  ")]
        parts += [plain(f"{KIND_WORDS[kind_of(self.item)]}: ", "$foreground 72%"), inline(self.item.title)]
        self.query_one("#where", Static).update(Content.assemble(*parts))

    def _outcome(self, item: Item) -> Content:
        good = self.right[item.id]
        card = desk(self).progress.cards().get(item.id)
        back = f" back {day_words(card.due, self.day.today)}" if card is not None else ""
        return plain(f"{RIGHT if good else WRONG}{back}", RIGHT_STYLE if good else WRONG_STYLE)

    def answer_kept(self, message: Answered) -> None:
        newest = desk(self).progress.attempts(message.item.id, limit=1)
        uncounted = message.correct and bool(newest) and newest[0].rating is None
        if uncounted and message.item.id not in self.right:
            for result in self.query(ResultView):
                result.say_above(partial(self._with_key, SAME_FILE))
        else:
            self.right[message.item.id] = message.correct
            self._say_where()

    def _with_key(self, words: str) -> str:
        return words.format(reset=key_of(self, "exercise.reset", "x"))

    def on_gave_up(self, message: GaveUp) -> None:
        """In a review, asking for the answer is an answer: it was forgotten."""
        if self.right.get(message.item.id):
            return
        desk(self).progress.record_answer(
            message.item.id, kind_of(message.item), correct=False, score=0.0, detail={"gave_up": True}
        )
        self.right[message.item.id] = False
        self._say_where()

    def action_solution(self) -> None:
        """The item has been passed before; until it is right again, its answer is not free."""
        from tutor.screens.confirm import ConfirmScreen

        if self.item.id in self.right:
            self._reveal(True)
        else:
            self.app.push_screen(ConfirmScreen(GIVE_UP, "Show it"), self._give_up)

    async def action_next_item(self) -> None:
        items = self.entries()
        index = items.index(self.item) + 1
        if index < len(items):
            await self.show_item(items[index])
        else:
            self.app.switch_screen(ReviewDoneScreen(self.day, self.right))

    async def action_previous_item(self) -> None:
        items = self.entries()
        index = items.index(self.item) - 1
        if index >= 0:
            await self.show_item(items[index])
        else:
            self.notify("This is the first item of the review.", markup=False)


class ReviewDoneScreen(Screen[None]):
    BINDINGS = [Binding("escape,enter,n,q", "dismiss", "Home", key_display="Esc", id="review-done.dismiss")]

    def __init__(self, day: Agenda, right: dict[str, bool]) -> None:
        super().__init__()
        self.day, self.right = day, right

    def compose(self) -> ComposeResult:
        yield Static(plain("Review", "bold"), id="where")
        with Reading(id="stats"):
            yield Static(self._text())
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#stats").focus()

    def _text(self) -> Content:
        good, asked = sum(self.right.values()), len(self.right)
        head = f"{good} of {asked} right." if asked else "Nothing was answered."
        parts = [plain(head, "bold")]
        missed = [item for item in self.day.due if self.right.get(item.id) is False]
        parts += [
            Content.assemble(
                plain(f"{WRONG} ", WRONG_STYLE), inline(item.title), plain(f"  {item.id}", "$foreground 72%")
            )
            for item in missed
        ]
        parts.append(plain(""))
        now = agenda(desk(self.app).course, desk(self.app).progress)
        if now.due:
            parts.append(
                plain(f"{counted(now.due, 'item')} still due: {key_of(self, 'home.review', 'r')} on Home goes on.")
            )
        elif now.next_due:
            parts.append(plain(f"The next review is {now.next_words}."))
        return stack(parts)
