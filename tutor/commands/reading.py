"""list, show, glossary."""

from __future__ import annotations

from pathlib import Path

from tutor.commands.session import open_session
from tutor.commands.terminal import PASSED, USAGE, Stop, say, width
from tutor.course.course import Course, UnknownItem, kind_of
from tutor.course.glossary import UnknownTerm, find, load_glossary
from tutor.course.model import Exercise, Item, Lesson, Module, Walkthrough
from tutor.course.text import item_text, module_text, wrapped
from tutor.schedule import SCHEDULED
from tutor.standing import standing


def list_items(module_id: str | None, folder: Path | None) -> int:
    session = open_session(folder, create=False)
    states = session.progress.states()
    modules = session.course.modules
    if module_id:
        modules = tuple(module for module in modules if module.id == module_id)
        if not modules:
            known = ", ".join(module.id for module in session.course.modules)
            raise Stop(f"There is no module {module_id!r}. Modules: {known}.", USAGE)
    for part in standing(session.course, session.progress).modules:
        if part.module not in modules:
            continue
        say(f"{part.module.id}  {part.module.title}  ({part.done} of {part.total} done)")
        longest = max(len(item.id) for item in part.module.items)
        for item in part.module.items:
            state = states.get(item.id)
            mark = "✓ done" if state and state.passed else "· open" if state is None else "~ seen"
            slug = f"  [{item.exercise}]" if isinstance(item, Exercise) else ""
            say(f"  {mark}  {item.id:{longest}}  {kind_of(item):11}  {item.title}{slug}")
    return PASSED


def show(name: str, answer: bool, folder: Path | None) -> int:
    session = open_session(folder, create=False)
    found = _find(session.course, name)
    if isinstance(found, Module):
        say(module_text(found, width()))
        return PASSED
    passed = isinstance(found, Exercise) and session.progress.state(found.id).passed
    say(item_text(found, width(), answer=answer or passed))
    if answer and kind_of(found) in SCHEDULED:
        session.progress.record_solution_seen(found.id)
    if isinstance(found, Exercise):
        say(f"\nYour file: {session.workspace.file(found.exercise)}")
    if isinstance(found, (Lesson, Walkthrough)):
        last = len(found.pages if isinstance(found, Lesson) else found.steps) - 1
        session.progress.record_page(found.id, last, finished=True)
        session.progress.set_resume(found.id)
    return PASSED


def glossary(name: str | None) -> int:
    terms = load_glossary()
    if not terms:
        raise Stop("This course has no glossary.", USAGE)
    try:
        found = find(terms, name) if name else terms
    except UnknownTerm as unknown:
        raise Stop(str(unknown), USAGE) from unknown
    for number, term in enumerate(found):
        names = f" (also {', '.join(term.also)})" if term.also else ""
        say(f"{chr(10) if number else ''}{term.term}{names}\n{wrapped(term.text, width())}\n-> {term.item}")
    return PASSED


def _find(course: Course, name: str) -> Item | Module:
    exercise = course.exercise_item(name)
    if exercise is not None:
        return exercise
    for module in course.modules:
        if name == module.id:
            return module
    try:
        return course.item(name)
    except UnknownItem:
        raise
