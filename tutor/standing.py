"""How far the learner is: per module, in all, and what comes next."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tutor.course.course import Course
from tutor.course.model import Item, Module
from tutor.progress import Progress


@dataclass(frozen=True)
class ModuleStanding:
    module: Module
    done: int  # lessons read, answers right, exercises passed
    total: int


@dataclass(frozen=True)
class Standing:
    modules: tuple[ModuleStanding, ...]
    done: int
    total: int
    next_item: Item | None  # what "continue" opens; None when everything is done


def standing(course: Course, progress: Progress) -> Standing:
    states = progress.states()
    finished = {item_id for item_id, state in states.items() if state.passed}
    modules = tuple(
        ModuleStanding(module, sum(item.id in finished for item in module.items), len(module.items))
        for module in course.modules
    )
    return Standing(
        modules,
        sum(part.done for part in modules),
        sum(part.total for part in modules),
        _next_item(course, finished, progress.resume()),
    )


def modules_begun(course: Course, progress: Progress) -> tuple[str, ...]:
    """Ids of the modules of which something was opened, answered or graded; what only a drill asked does not count."""
    drilled = Counter(attempt.item_id for attempt in progress.attempts() if attempt.detail.get("drill"))
    begun = {item for item, state in progress.states().items() if not state.attempts or state.attempts > drilled[item]}
    return tuple(module.id for module in course.modules if any(item.id in begun for item in module.items))


def _next_item(course: Course, finished: set[str], resume: str | None) -> Item | None:
    items = course.items()
    current = course.current_id(resume) if resume else None
    start = next((index for index, item in enumerate(items) if item.id == current), 0)
    for item in (*items[start:], *items[:start]):
        if item.id not in finished:
            return item
    return None
