"""A YAML file that holds one of the course's types: read with every fault and its line, and its JSON schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

import msgspec

from tutor.course.loader import CourseError, CourseErrors

Typed = TypeVar("Typed", bound=msgspec.Struct)
QUOTES = "text that holds `: `, ` #` or starts with a bracket or quote wants quotes or a `|` block"


def load_typed(file: Path, wanted: type[Typed], entries: str, name: str, *, may_be_empty: bool = False) -> Typed:
    """Raises CourseErrors, all faults at once. One in the list `entries` names its entry, by the entry's `name`."""
    import yaml

    try:
        data = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise CourseErrors((CourseError(str(file), line, "", f"not YAML: {error.problem}", QUOTES),)) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise CourseErrors((CourseError(str(file), 1, "", f"cannot be read: {error}"),)) from error
    if data is None and may_be_empty:
        data = {}
    try:
        return msgspec.convert(data, wanted, strict=False)
    except msgspec.ValidationError as error:
        first = CourseError(str(file), 1, "", str(error))
        raise CourseErrors(_faults(file, data, wanted, entries, name) or (first,)) from error


def _faults(file: Path, data: object, wanted: type[msgspec.Struct], entries: str, name: str) -> tuple[CourseError, ...]:
    from tutor.course.faults import faults
    from tutor.course.lines import Positions

    positions = Positions(file)

    def of_entry(path: tuple[str | int, ...]) -> str:
        if not isinstance(data, dict) or len(path) < 2 or path[0] != entries or not isinstance(path[1], int):
            return ""
        entry = data[entries][path[1]]
        called = entry.get(name) if isinstance(entry, dict) else None
        return str(called or f"{entries.removesuffix('s')} {path[1] + 1}")

    return tuple(
        CourseError(str(file), positions.line(fault.path), of_entry(fault.path), fault.message, fault.advice)
        for fault in faults(data, wanted)
    )


def json_schema(wanted: type[msgspec.Struct], title: str) -> str:
    """For editors, which check and complete by it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **msgspec.json.schema(wanted)}
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
