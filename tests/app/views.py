"""Every view of the app by name, and how to get there from Home: for pictures and for text dumps. A new one is one line."""

from __future__ import annotations

from dataclasses import dataclass

from tests.app import ways
from tests.app.driver import Session
from tests.app.test_compiler_view import KERNEL
from tests.app.ways import BROKEN, FAILING, Way, exercise, item, then

SIZES = ((80, 24), (140, 40))


def keys(*pressed: str) -> Way:
    return lambda s: s.keys(*pressed)


def action(name: str) -> Way:
    async def go(s: Session) -> None:
        await s.app.run_action(name)
        await s.pilot.pause()

    return go


@dataclass(frozen=True)
class After:
    """A view that is reached from another, which the table has just before it: one session serves both."""

    view: str
    way: Way


def after(view: str, *pressed: str, shown: str = "") -> After:
    async def go(s: Session) -> None:
        await s.keys(*pressed)
        await s.until_shown(shown)

    return After(view, go)


VIEWS: dict[str, Way | After] = {
    "home": keys(),
    "home-due": After("home", ways.home_due),
    "review": after("home-due", "r", shown="Review 1/"),
    "review-done": after("review", *["n"] * 5, shown="Nothing was answered"),
    "stats-later": After("review-done", then(keys("escape"), action("stats"))),
    "outline": keys("1"),
    "lesson": item("lesson"),
    "glossary": after("lesson", "G"),
    "quiz": item("quiz"),
    "quiz-answered": after("quiz", "2"),
    "match": item("match"),
    "bug": item("bug"),
    "hint": after("bug", "h"),
    "bug-wrong-line": after("hint", "escape", "enter"),
    "walkthrough": item("walkthrough", "right"),
    "predict": item("predict"),
    "predict-answered": after("predict", "1"),
    "open": item("open"),
    "open-answered": after("open", "f6"),
    "exercise": item("exercise"),
    "reset": after("exercise", "x"),
    "exercise-graded": exercise(FAILING, "g", "f5", shown="n=1001"),
    "result-cases": after("exercise-graded", "b", shown="FAIL n=1001"),
    "editor": ways.editor,
    "editor-marked": ways.editor_marked,
    "diff": ways.diff,
    "conflict": ways.conflict,
    "compiler-error": exercise(BROKEN, "v", shown="NameError"),
    "compiler": exercise(KERNEL, "v", shown="26 registers"),
    "compiler-compare": after("compiler", "c", *["down"] * 4, "enter", shown="* differs"),
    "compiler-ptx": after("compiler-compare", "escape", "2", "n", shown="global.v4"),
    "access-map": ways.access_map("matmul"),
    "access-map-program": after("access-map", "tab", "right", "full_stop", shown="iteration 0"),
    "access-map-overrun": ways.access_map("overrun", "right", "right"),
    "result-times": ways.plots("2"),
    "result-roofline": after("result-times", "3"),
    "result-sizes": after("result-roofline", "4", "S", shown="of the limit"),
    "palette": ways.palette,
    "help": After("palette", then(keys("escape"), action("help"))),
    "keys": After("help", then(keys("escape"), action("keys"))),
    "stats": After("keys", then(keys("escape"), action("stats"))),
    "settings": After("stats", then(keys("escape"), ways.settings)),
    "drill": action("drill"),
    "drill-phase": ways.drill_phase,
    "drill-task": after("drill-phase", "n"),
    "drill-list": after("drill-task", "f8", "f2", shown="open, flagged"),
    "drill-scoring": After("drill-list", then(keys("f2", "f8"), ways.drill_scoring)),
    "drill-report": After("drill-scoring", ways.drill_report),
    "tour": action("tour"),
    "tour-exercise": after("tour", "enter", "enter", "enter", shown="An exercise"),
}


def way_to(view: str) -> Way:
    """From Home."""
    found = VIEWS[view]
    return then(way_to(found.view), found.way) if isinstance(found, After) else found
