"""From modules/*.yaml to a Course. Every error of every file is reported at once, with file and line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from grader import catalog
from tutor.course import model
from tutor.course.course import Course
from tutor.course.model import Module
from tutor.whole_files import write_atomically

Place = tuple[str | int, ...]


@dataclass(frozen=True)
class CourseError:
    file: str
    line: int
    item: str  # the item's id, or its place in the list; empty for the module itself
    message: str
    advice: str = ""

    def __str__(self) -> str:
        item = f" {self.item}:" if self.item else ""
        advice = f"; {self.advice}" if self.advice else ""
        return f"{self.file}:{self.line}:{item} {self.message}{advice}"


class CourseErrors(Exception):
    def __init__(self, errors: tuple[CourseError, ...]) -> None:
        self.errors = errors
        super().__init__("\n".join(str(error) for error in errors))


def modules_folder() -> Path:
    return catalog.course_root() / "modules"


def module_files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("[0-9][0-9]-*.yaml")))


def _all_module_files() -> tuple[Path, ...]:
    """Those of the built-in course, then those of added ones. Raises NoCourse."""
    found = [(root,) if root.is_file() else module_files(root / "modules") for root in catalog.course_roots()]
    return tuple(file for files in found for file in files)


def load(folder: Path | None = None, *, cache: bool = True, thorough: bool = False) -> Course:
    """Reads the course. `thorough` also makes the checks that only authors need (`triton-prep check`).

    Raises CourseErrors.
    """
    files = _all_module_files() if folder is None else module_files(folder)
    if not files:
        where = str(folder if folder is not None else modules_folder())
        raise CourseErrors((CourseError(where, 1, "", "no module files here", "expected 01-….yaml and so on"),))
    store = _Cache(files) if cache and not thorough else None
    modules = store.read() if store else None
    if modules is None:
        modules = _parse(files, thorough)
        if store:
            store.write(modules)
    return Course(modules, files)


def _parse(files: tuple[Path, ...], thorough: bool) -> tuple[Module, ...]:
    from tutor.course.typed_yaml import load_typed

    modules: dict[Path, Module] = {}
    errors: list[CourseError] = []
    for file in files:
        try:
            modules[file] = load_typed(file, Module, "items", "id")
        except CourseErrors as found:
            errors += found.errors
    errors += _rule_errors(modules, thorough)
    if errors:
        raise CourseErrors(tuple(errors))
    return tuple(modules.values())


def _rule_errors(modules: dict[Path, Module], thorough: bool) -> list[CourseError]:
    from tutor.course import rules
    from tutor.course.lines import Positions

    positions: dict[Path, Positions] = {}

    def located(breach: rules.Breach) -> CourseError:
        if breach.file not in positions:
            positions[breach.file] = Positions(breach.file)
        place = positions[breach.file]
        line = place.line(breach.path) if breach.offset is None else place.text_line(breach.path, breach.offset)
        return CourseError(str(breach.file), line, breach.item, breach.message, breach.advice)

    errors = [located(breach) for breach in rules.needed(modules)]
    if thorough:
        errors += [located(breach) for breach in rules.wanted(modules)]
        for file in modules:
            positions.setdefault(file, Positions(file))
            for key, line in positions[file].repeated_keys():
                errors.append(CourseError(str(file), line, "", f"{key!r} is given twice here", "keep one of them"))
    return errors


class _Cache:
    """The parsed course on disk, valid for exactly these files and types. A cache that cannot be used is skipped."""

    def __init__(self, files: tuple[Path, ...]) -> None:
        facts = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in (*files, Path(model.__file__))]
        self._key = hashlib.sha256(repr(facts).encode()).digest()
        name = hashlib.sha256(repr([str(file) for file in files]).encode()).hexdigest()[:16]
        self._place: Callable[[], Path] = lambda: _cache_folder() / f"course-{name}.msgpack"

    def read(self) -> tuple[Module, ...] | None:
        try:
            content = self._place().read_bytes()
            if content[:32] != self._key:
                return None
            return msgspec.msgpack.decode(content[32:], type=tuple[Module, ...])
        except (OSError, msgspec.MsgspecError):
            return None

    def write(self, modules: tuple[Module, ...]) -> None:
        try:
            write_atomically(self._place(), self._key + msgspec.msgpack.encode(modules), synced=False)
        except OSError:
            return


def _cache_folder() -> Path:
    chosen = os.environ.get("TRITON_PREP_CACHE")
    if chosen:
        return Path(chosen)
    import platformdirs

    return Path(platformdirs.user_cache_dir("triton-prep"))
