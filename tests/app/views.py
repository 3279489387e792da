"""Every view of the app by name: how to get there from Home, for pictures and for text dumps. A new one is one line.

Items are taken by kind, so that it works on any course that has the kind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.app.driver import Session
from tutor.course.course import kind_of
from tutor.course.model import Quiz

Way = Callable[[Session], Awaitable[None]]
SIZES = ((80, 24), (140, 40))
FAILING = '"""A kernel that does not pass."""\n# fake: wrong_answer\n# cause: missing_store_mask\n'


def keys(*pressed: str) -> Way:
    return lambda s: s.keys(*pressed)


def action(name: str) -> Way:
    async def go(s: Session) -> None:
        await s.app.run_action(name)
        await s.pilot.pause()

    return go


def item(kind: str, *pressed: str) -> Way:
    async def go(s: Session) -> None:
        found = next(
            one for one in s.desk.course.items() if kind_of(one) == kind and not (isinstance(one, Quiz) and one.several)
        )
        await s.open(found.id)
        await s.keys(*pressed)

    return go


def graded(text: str, shown: str, *pressed: str) -> Way:
    """The first exercise with this file of the learner's, graded."""

    async def go(s: Session) -> None:
        exercise = next(one for one in s.desk.course.items() if kind_of(one) == "exercise")
        s.desk.workspace.file(exercise.exercise).write_text(text, encoding="utf-8")  # type: ignore[union-attr]
        await s.open(exercise.id)
        await s.keys("g")
        await s.until_shown(shown)
        await s.keys(*pressed)

    return go


async def palette(s: Session) -> None:
    await s.keys("ctrl+p")
    await s.until_shown("Quit")


async def settings(s: Session) -> None:
    await s.keys("comma")
    s.app.screen.query_one("#themes").focus()  # no cursor in the box, which would blink
    await s.pilot.pause()


VIEWS: dict[str, Way] = {
    "home": keys(),
    "outline": keys("1"),
    "lesson": item("lesson"),
    "quiz": item("quiz"),
    "quiz-answered": item("quiz", "2"),
    "bug": item("bug"),
    "bug-wrong-line": item("bug", "enter"),
    "match": item("match"),
    "walkthrough": item("walkthrough", "right"),
    "predict": item("predict"),
    "open": item("open"),
    "exercise": item("exercise"),
    "exercise-graded": graded(FAILING, "n=1001", "f5"),
    "help": action("help"),
    "settings": settings,
    "keys": action("keys"),
    "stats": action("stats"),
    "drill": action("drill"),
    "tour": action("tour"),
    "palette": palette,
}
