"""A tour of a minute over the real screens; what it says of a key follows the learner's own keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tutor.course.model import Exercise, Item, Lesson, Quiz
from tutor.screens.item import ItemScreen
from tutor.widgets.content import DIM_STYLE, Content, plain
from tutor.widgets.keys import KeyLine
from tutor.widgets.pane import PageShown

if TYPE_CHECKING:
    from tutor.screens.terminal import TritonPrepApp

SETTING = "tour"


KEYS = {
    "go_on": ("tour.next", "enter"),
    "leave": ("tour.leave", "escape"),
    "help": ("app.help", "f1"),
    "palette": ("app.command-palette", "ctrl+p"),
    "select": ("list.select", "enter"),
    "carry_on": ("home.carry-on", "c"),
    "read_on": ("lesson.onward", "space"),
    "next": ("item.next", "n"),
    "previous": ("item.previous", "p"),
    "back": ("item.back", "escape"),
    "list": ("item.outline", "f2"),
    "hint": ("item.hint", "h"),
    "edit": ("exercise.edit", "e"),
    "grade": ("exercise.grade", "g"),
    "review": ("home.review", "r"),
    "drill": ("home.drill", "d"),
    "quit": ("app.quit", "ctrl+q"),
}
TEXTS = (
    (
        "First time here?",
        "A tour of a minute shows the keys. {go_on} takes it, {leave} goes straight to work. Help ({help}) and the "
        "palette ({palette}) keep it.",
    ),
    (
        "Home",
        "The first row is the next thing to do: {select}, or {carry_on}. Below are the modules, in the order in which "
        "they build on each other.",
    ),
    (
        "A lesson",
        "{read_on} reads on. {next} goes to the next item, {previous} back, {back} to where you came from. {list} "
        "lists the module.",
    ),
    (
        "A quiz",
        "A number answers at once; so does {select} on a row. Then every option says why it is right or wrong. {hint} "
        "gives a hint where there is one.",
    ),
    (
        "An exercise",
        "A Python file of yours: {edit} edits it, {grade} grades it. Your kernel runs on this machine, with or without "
        "a GPU, and is compared with PyTorch.",
    ),
    (
        "Later",
        "What you answered comes back after days, then weeks: {review} on Home reviews it. {drill} is a timed mock "
        "interview.",
    ),
    (
        "That is all",
        "{help} lists the keys of any screen, {palette} every command. Answers are kept at once; {quit} leaves.",
    ),
)


@dataclass(frozen=True)
class Stop:
    """One step: what is said over which item, or over the screen that is there."""

    title: str
    text: str
    item: Item | None = None


class ShownItem(ItemScreen):
    """An item to look at: what is shown is not recorded as read."""

    def on_page_shown(self, message: PageShown) -> None:
        message.stop()
        message.prevent_default()  # textual calls the handler of every class


class TourScreen(ModalScreen[int]):
    """Gives the number of steps to go: 1, -1, or 0 to leave."""

    CSS = """
    TourScreen { align: center bottom; background: transparent; }
    #tour { height: auto; max-height: 100%; margin-bottom: 1; padding: 0 1 1 1; border: round $primary;
            background: $surface; max-width: 100; }
    """
    BINDINGS = [
        Binding("enter,space,n,right", "go(1)", "Go on", id="tour.next", key_display="⏎"),
        Binding("p,left", "go(-1)", "Back", id="tour.previous"),
        Binding("escape,q", "go(0)", "Leave the tour", key_display="Esc", id="tour.leave"),
    ]

    def __init__(self, stop: Stop, place: int, count: int) -> None:
        super().__init__()
        self.stop, self.place, self.count = stop, place, count

    def compose(self) -> ComposeResult:
        where = f"  tour, {self.place} of {self.count}" if self.place else ""
        with Vertical(id="tour"):
            yield Static(Content.assemble(plain(self.stop.title, "bold"), plain(where, DIM_STYLE)))
            yield Static(plain(self.stop.text))
            yield KeyLine()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return not (action == "go" and parameters == (-1,) and self.place <= 1)

    def words_of_key(self, action: str) -> str:
        """For the footer: the last step leads to the app itself."""
        return "Begin" if action == "go(1)" and self.place == self.count else ""

    def action_go(self, steps: int) -> None:
        self.dismiss(steps)


def stops(app: TritonPrepApp) -> tuple[Stop, ...]:
    """The offer first, then what a newcomer needs; a step whose kind of item the course lacks is left out."""
    items = app.desk.course.items()
    lesson = next((item for item in items if isinstance(item, Lesson)), None)
    quiz = next((item for item in items if isinstance(item, Quiz) and not item.several), None)
    exercise = next((item for item in items if isinstance(item, Exercise)), None)
    keys = {name: app.key_of(*key) for name, key in KEYS.items()}
    every = tuple(
        Stop(title, text.format(**keys), item)
        for (title, text), item in zip(TEXTS, (None, None, lesson, quiz, exercise, None, None), strict=True)
    )
    missing = {one.title for one, item in zip(every[2:5], (lesson, quiz, exercise), strict=True) if item is None}
    return tuple(one for one in every if one.title not in missing)


async def show_tour(app: TritonPrepApp, *, offer: bool) -> None:
    """In a worker, since it waits for screens. What it opened is closed again."""
    way = stops(app)
    place = 0 if offer else 1
    while 0 <= place < len(way):
        stop = way[place]
        if stop.item is not None:
            await app.push_screen(ShownItem(stop.item, visit=True))
        steps = await app.push_screen_wait(TourScreen(stop, place, len(way) - 1))
        if stop.item is not None and isinstance(app.screen, ShownItem):
            await app.pop_screen()
        place = place + steps if steps else len(way)
