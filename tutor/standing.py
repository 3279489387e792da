"""How far the learner is: per module, in all, and what comes next."""

from __future__ import annotations

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


def _next_item(course: Course, finished: set[str], resume: str | None) -> Item | None:
    items = course.items()
    current = course.current_id(resume) if resume else None
    start = next((index for index, item in enumerate(items) if item.id == current), 0)
    for item in (*items[start:], *items[:start]):
        if item.id not in finished:
            return item
    return None
