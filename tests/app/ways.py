"""Ways to views that take more than some keys: a file of the learner's, an answer of last week, a drill whose clock stands.

They find items by kind, so that they work on any course; what a file says is what `tests/fake_grader.py` goes by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.app.driver import Session
from tests.app.test_compiler_view import KERNEL
from tests.app.test_drill import PLAN, answer
from tutor.course.course import kind_of
from tutor.course.model import Exercise, Item, Quiz
from tutor.drill.opening import Wanted, drawn, strictness
from tutor.drill.sitting import Sitting
from tutor.editing.edited_file import Conflict
from tutor.screens.access_map import AccessMapScreen
from tutor.screens.conflict import ConflictScreen
from tutor.screens.drill import DrillScreen
from tutor.screens.drill_report import DrillReportScreen
from tutor.screens.home import HomeScreen
from tutor.screens.result_plots import ResultPlotsScreen
from tutor.widgets.access_grid import AccessGrid
from tutor.widgets.code_editor import CodeEditor

Way = Callable[[Session], Awaitable[None]]
NOON = 1_796_040_000.0  # the moment at which everything happens: midday of a Monday, UTC
FAILING = '"""A kernel that does not pass."""\n# fake: wrong_answer\n# cause: missing_store_mask\n'
BROKEN = KERNEL.replace("y = ", "y = x[i] # fake: compile_error ")


class StillClock:
    def now(self) -> float:
        return 0.0

    def wall(self) -> float:
        return NOON

    def boot(self) -> str:
        return "one and the same"


def first(s: Session, kind: str) -> Item:
    items = s.desk.course.items()
    return next(one for one in items if kind_of(one) == kind and not (isinstance(one, Quiz) and one.several))


def item(kind: str, *pressed: str) -> Way:
    async def go(s: Session) -> None:
        await s.open(first(s, kind).id)
        await s.keys(*pressed)

    return go


def exercise(text: str, *pressed: str, shown: str = "") -> Way:
    """The first exercise with this file of the learner's; then keys, until `shown` is on the screen."""

    async def go(s: Session) -> None:
        found = first(s, "exercise")
        assert isinstance(found, Exercise)
        s.desk.workspace.file(found.exercise).write_text(text, encoding="utf-8")
        await s.open(found.id)
        await s.keys(*pressed)
        await s.until_shown(shown)

    return go


def then(*steps: Way) -> Way:
    async def go(s: Session) -> None:
        for step in steps:
            await step(s)

    return go


def access_map(name: str, *pressed: str) -> Way:
    async def go(s: Session) -> None:
        await exercise(f"# map: {name}\n", "m")(s)
        await s.until(lambda: isinstance(s.app.screen, AccessMapScreen) and s.app.screen.shown is not None)
        await s.until(lambda: s.app.screen.query_one(AccessGrid).drawn is not None)
        await s.keys(*pressed)

    return go


def plots(view: str) -> Way:
    """The pictures of a file that was not graded: times by the model."""

    async def go(s: Session) -> None:
        await exercise("# takes: 2\n", "b")(s)
        await s.until(lambda: isinstance(s.app.screen, ResultPlotsScreen) and len(s.app.screen.models) == 2)
        await s.keys(view)

    return go


async def editor(s: Session) -> None:
    await exercise(KERNEL, "E")(s)
    await s.until(lambda: isinstance(s.app.focused, CodeEditor))
    assert isinstance(s.app.focused, CodeEditor)
    s.app.focused.cursor_blink = False
    await s.type("#")
    await s.until(lambda: s.desk.workspace.file("vector_add").read_text(encoding="utf-8").startswith("#"))


async def editor_marked(s: Session) -> None:
    await exercise(FAILING, "E")(s)
    await s.until(lambda: isinstance(s.app.focused, CodeEditor))
    assert isinstance(s.app.focused, CodeEditor)
    s.app.focused.cursor_blink = False
    await s.keys("f6")
    await s.until_shown("wrong answer")
    await s.keys("f4")
    await s.until_shown("▶ Line 3")


async def diff(s: Session) -> None:
    found = first(s, "exercise")
    assert isinstance(found, Exercise)
    await s.open(found.id)
    file = s.desk.workspace.file(found.exercise)
    file.write_text(file.read_text(encoding="utf-8").replace("    pass\n", "    x = mine[0]\n"), encoding="utf-8")
    await s.keys("D")
    await s.until_shown("change 1 of")


async def conflict(s: Session) -> None:
    await item("exercise")(s)
    mine = KERNEL.replace("x + y", "x - y")
    await s.app.push_screen(ConflictScreen("vector_add.py", Conflict(mine, KERNEL.replace("x + y", "y + x"))))
    await s.until_shown("Keep mine")


def before(s: Session, days: float = 3, right: bool = True) -> None:
    """As if every quiz and bug had been answered so many days ago."""
    progress = s.desk.progress
    now, progress.clock = progress.clock, lambda: NOON - days * 86400
    for one in s.desk.course.items():
        if kind_of(one) in ("quiz", "bug"):
            progress.record_answer(one.id, kind_of(one), correct=right, score=float(right), seconds=60)
    progress.clock = now


async def home_due(s: Session) -> None:
    before(s)
    assert isinstance(s.app.screen, HomeScreen)
    s.app.screen.refresh_standing()
    await s.pilot.pause()


async def drill_phase(s: Session) -> None:
    wanted = Wanted(PLAN, 1, strict=False)
    plan = drawn(wanted, s.desk.course, s.desk.progress, s.desk.workspace)
    folder = s.desk.workspace.folder
    sitting = Sitting.begin(plan, folder, StillClock(), s.desk.course, strict=strictness(wanted))
    await s.app.push_screen(DrillScreen(sitting))
    await s.pilot.pause()


async def drill_scoring(s: Session) -> None:
    """From the first question: that one right, the rest not tried, something written to the interviewer."""
    screen = s.app.screen
    assert isinstance(screen, DrillScreen)
    await answer(s, screen)
    screen.sitting.next_phase()
    await screen._enter()
    await s.keys("n")
    await s.until_shown(PLAN.phases[1].talk.question)  # type: ignore[union-attr]
    await s.type("All of x[i].")
    await s.keys("f6")
    await s.until(lambda: screen.asked is not None and screen.asked.kind == "exercise")
    screen.sitting.finish()
    await screen._enter()
    await s.until_shown("Score your answer")
    await s.until(lambda: s.app.focused is not None and s.app.focused.id == "rubric")


async def drill_report(s: Session) -> None:
    await s.keys("space", "enter")
    await s.until(lambda: isinstance(s.app.screen, DrillReportScreen))


async def palette(s: Session) -> None:
    await s.keys("ctrl+p")
    await s.until_shown("Quit")


async def settings(s: Session) -> None:
    await s.keys("comma")
    s.app.screen.query_one("#themes").focus()  # no cursor in the box, which would blink
    await s.pilot.pause()
