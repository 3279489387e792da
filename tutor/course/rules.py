"""What the types cannot say about a course: ids, right options, line numbers, widths, evidence."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from grader import catalog
from tutor.course.course import kind_of
from tutor.course.model import Bug, Exercise, Item, Lesson, Module, Predict, Quiz, Walkthrough
from tutor.course.pictures import BadPicture, has_picture, pictures

LONGEST_PAGE = 60
WIDEST_CODE = 72
NAME_IN_ID = {"walkthrough": "walk"}


@dataclass(frozen=True)
class Breach:
    file: Path
    path: tuple[str | int, ...]
    item: str
    message: str
    advice: str = ""
    offset: int | None = None  # line within a block scalar at `path`, 0-based


def needed(modules: dict[Path, Module]) -> Iterator[Breach]:
    """Without these, screens or progress would go wrong."""
    owners: dict[str, str] = {}
    module_ids: dict[str, Path] = {}
    present = {item.id for module in modules.values() for item in module.items}
    for file, module in modules.items():
        if module.id in module_ids:
            yield Breach(file, ("id",), "", f"module id {module.id} is used by {module_ids[module.id].name} too")
        module_ids.setdefault(module.id, file)
        for index, item in enumerate(module.items):
            place: tuple[str | int, ...] = ("items", index)
            where = f"{file.name}, item {index + 1}"
            if item.id in owners:
                yield Breach(
                    file, (*place, "id"), item.id, f"id is used twice (first by {owners[item.id]})", "rename it"
                )
            owners.setdefault(item.id, where)
            if not item.id.startswith(f"{module.id}."):
                yield Breach(
                    file, (*place, "id"), item.id, "id does not start with its module's", f"write {module.id}.…"
                )
            for alias in item.aliases:
                if alias in present:
                    yield Breach(file, (*place, "aliases"), item.id, f"alias {alias} is the id of an item", "remove it")
                elif alias in owners:
                    yield Breach(file, (*place, "aliases"), item.id, f"alias {alias} is used twice", "remove it")
                owners.setdefault(alias, where)
            for path, message, advice in _item(item):
                yield Breach(file, (*place, *path), item.id, message, advice)


def _pictures(path: tuple[str | int, ...], text: str) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    try:
        for picture in pictures(text):
            picture.file  # noqa: B018 - raises when there is none
    except (BadPicture, catalog.UnknownExercise) as error:
        yield path, str(error), "tutor/course/pictures.py says what a map block holds"


def _item(item: Item) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    if isinstance(item, Lesson):
        for number, page in enumerate(item.pages):
            if has_picture(page.text):
                yield from _pictures(("pages", number, "text"), page.text)
    if isinstance(item, (Quiz, Predict)) and not any(option.correct for option in item.options):
        yield ("options",), "no option is right", "give one `correct: true`"
    if isinstance(item, Predict) and sum(option.correct for option in item.options) > 1:
        yield ("options",), "a prediction has exactly one right option", "keep one `correct: true`"
    if isinstance(item, Bug):
        length = len(item.code.rstrip("\n").split("\n"))
        for line in item.faulty:
            if not 1 <= line <= length:
                yield ("faulty",), f"line {line} is not in the code", f"the code has lines 1 to {length}"
        for number, mend in enumerate(item.mends):
            if mend.line > length:
                advice = f"the code has lines 1 to {length}"
                yield ("mends", number, "line"), f"line {mend.line} is not in the code", advice
        if len({mend.line for mend in item.mends}) < len(item.mends):
            yield ("mends",), "two mends replace the same line", "join them: `text` may hold several lines"
    if isinstance(item, Walkthrough):
        length = len(item.stage.rstrip("\n").split("\n"))
        keys = list(item.steps[0].state)
        for number, step in enumerate(item.steps):
            if list(step.state) != keys:
                odd = ", ".join(sorted(set(step.state) ^ set(keys))) or "another order"
                yield (
                    ("steps", number, "state"),
                    f"state differs from step 1 in its names: {odd}",
                    "same names, same order",
                )
            outside = [line for line in step.lines if not 1 <= line <= length]
            if outside:
                yield (
                    ("steps", number, "lines"),
                    f"line {outside[0]} is not in the stage",
                    f"it has lines 1 to {length}",
                )


def wanted(modules: dict[Path, Module]) -> Iterator[Breach]:
    """What authors are held to: `triton-prep check` reports it, the app runs without it."""
    slugs = {files.slug for files in catalog.exercises()}
    taught: dict[str, str] = {}
    for file, module in modules.items():
        for index, item in enumerate(module.items):
            place: tuple[str | int, ...] = ("items", index)
            kind = NAME_IN_ID.get(kind_of(item), kind_of(item))
            if item.id.split(".")[1] != kind:
                yield Breach(
                    file, (*place, "id"), item.id, f"id does not name its kind, {kind}", f"{module.id}.{kind}.…"
                )
            yield from _pages(file, place, item)
            yield from _widths(file, place, item)
            if isinstance(item, (Bug, Exercise)) and item.exercise not in slugs:
                near = difflib.get_close_matches(item.exercise, slugs, n=1)
                advice = f"did you mean {near[0]}?" if near else "see the folders in exercises/"
                yield Breach(file, (*place, "exercise"), item.id, f"no exercise {item.exercise!r}", advice)
            if isinstance(item, Exercise):
                if item.exercise in taught:
                    message = f"{item.exercise} has an item already ({taught[item.exercise]})"
                    yield Breach(file, (*place, "exercise"), item.id, message)
                taught.setdefault(item.exercise, item.id)
            for number, evidence in enumerate(item.evidence):
                yield from _evidence(file, (*place, "evidence", number), item.id, evidence)
        for part in ("gotchas", "versions"):
            for index, note in enumerate(getattr(module, part)):
                for number, evidence in enumerate(note.evidence):
                    yield from _evidence(file, (part, index, "evidence", number), f"{part}[{index + 1}]", evidence)


def _pages(file: Path, place: tuple[str | int, ...], item: Item) -> Iterator[Breach]:
    if isinstance(item, Exercise) and len(lines := item.after.rstrip("\n").split("\n")) > LONGEST_PAGE:
        message = f"`after` has {len(lines)} lines, at most {LONGEST_PAGE} are shown"
        yield Breach(file, (*place, "after"), item.id, message, "shorten it", LONGEST_PAGE)
    if not isinstance(item, Lesson):
        return
    for number, page in enumerate(item.pages):
        lines = page.text.rstrip("\n").split("\n")
        if len(lines) > LONGEST_PAGE:
            message = f"page {number + 1} has {len(lines)} lines, at most {LONGEST_PAGE} are shown"
            yield Breach(file, (*place, "pages", number, "text"), item.id, message, "split the page", LONGEST_PAGE)


def _widths(file: Path, place: tuple[str | int, ...], item: Item) -> Iterator[Breach]:
    texts: list[tuple[tuple[str | int, ...], str, bool]] = []
    for name in ("code", "stage"):
        if getattr(item, name, ""):
            texts.append(((name,), getattr(item, name), True))
    for name in ("question", "story", "explain", "answer", "brief", "after", "intro", "prompt"):
        if getattr(item, name, ""):
            texts.append(((name,), getattr(item, name), False))
    if isinstance(item, Lesson):
        texts += [(("pages", number, "text"), page.text, False) for number, page in enumerate(item.pages)]
    if isinstance(item, Walkthrough):
        texts += [(("steps", number, "text"), step.text, False) for number, step in enumerate(item.steps)]
    for path, text, all_code in texts:
        fenced = all_code
        for offset, line in enumerate(text.split("\n")):
            if not all_code and line.lstrip().startswith("```"):
                fenced = not fenced
            elif fenced and len(line) > WIDEST_CODE:
                message = f"code of {len(line)} columns, at most {WIDEST_CODE} are shown"
                yield Breach(file, (*place, *path), item.id, message, "break the line", offset)


def _evidence(file: Path, path: tuple[str | int, ...], item: str, evidence: str) -> Iterator[Breach]:
    if not evidence.startswith("test:"):
        return
    name, _, function = evidence.removeprefix("test:").partition("::")
    root = tests_root(file)
    if root is None:
        return  # an installed course carries no tests
    tests = root / name
    if not tests.is_file():
        yield Breach(
            file, path, item, f"evidence names a file that is not there: {name}", "write the test, or mend the path"
        )
        return
    functions = _test_functions(tests)
    if function not in functions:
        near = difflib.get_close_matches(function, functions, n=1)
        advice = f"did you mean {near[0]}?" if near else f"write it in {name}"
        yield Breach(file, path, item, f"evidence names a test that is not there: {function}", advice)


def tests_root(file: Path) -> Path | None:
    """The folder that a module file's `test:tests/…` starts from: its own course's, else the built-in one's."""
    homes = (file.resolve().parent.parent, file.resolve().parent, catalog.course_root())
    return next((home for home in homes if (home / "tests").is_dir()), None)


@cache
def _test_functions(file: Path) -> frozenset[str]:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except SyntaxError:
        return frozenset()
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
