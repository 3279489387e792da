"""Everything that is wrong with a module's data, not only the first thing: msgspec itself stops at one."""

from __future__ import annotations

import difflib
import re
import typing
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from tutor.course import model

KINDS = {kind.__struct_config__.tag: kind for kind in typing.get_args(model.Item)}


@dataclass(frozen=True)
class Fault:
    path: tuple[str | int, ...]
    message: str
    advice: str = ""


def faults(data: Any, wanted: type[msgspec.Struct] = model.Module) -> Iterator[Fault]:
    """`data` is what YAML gave for one file of that type."""
    yield from _struct(data, wanted, ())


def _struct(data: Any, wanted: type[msgspec.Struct], path: tuple[str | int, ...]) -> Iterator[Fault]:
    name = wanted.__name__.lower()
    if not isinstance(data, dict):
        yield Fault(path, f"expected the keys of a {name}, found {_shown(data)}")
        return
    fields = {field.name: field for field in msgspec.structs.fields(wanted)}
    tag_field = wanted.__struct_config__.tag_field
    for key in data:
        if key not in fields and key != tag_field:
            near = difflib.get_close_matches(str(key), fields, n=1)
            advice = f"write {near[0]!r}" if near else f"a {name} has: {', '.join(fields)}"
            yield Fault((*path, key), f"unknown key {key!r}", advice)
    for field in fields.values():
        if field.name in data:
            yield from _value(data[field.name], field.type, (*path, field.name))
        elif field.required:
            yield Fault(path, f"{field.name!r} is missing", f"add `{field.name}:` to this {name}")


def _value(data: Any, wanted: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    element = _element(wanted)
    if element is not None:
        if not isinstance(data, list):
            yield Fault(path, f"expected a list, found {_shown(data)}", "start each entry with `- `")
            return
        found = [fault for index, entry in enumerate(data) for fault in _entry(entry, element, (*path, index))]
        yield from found or _convert(data, wanted, path)  # the whole only for its length
        return
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        yield from _struct(data, wanted, path)
        return
    if isinstance(data, dict) and typing.get_origin(wanted) is dict:
        for key, entry in data.items():
            yield from _convert(entry, typing.get_args(wanted)[1], (*path, key))
        return
    yield from _convert(data, wanted, path)


def _entry(data: Any, element: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    if element is model.Item or element == model.Item:
        kind = data.get("kind") if isinstance(data, dict) else None
        if kind not in KINDS:
            near = difflib.get_close_matches(str(kind), KINDS, n=1)
            advice = f"write `kind: {near[0]}`" if near else f"one of: {', '.join(KINDS)}"
            where = (*path, "kind") if kind is not None else path
            yield Fault(where, f"unknown kind {kind!r}" if kind is not None else "'kind' is missing", advice)
            return
        yield from _struct(data, KINDS[kind], path)
    else:
        yield from _value(data, element, path)


def _convert(data: Any, wanted: Any, path: tuple[str | int, ...]) -> Iterator[Fault]:
    try:
        msgspec.convert(data, wanted, strict=False)
    except msgspec.ValidationError as error:
        message = re.sub(r" - at `.*`$", "", str(error))
        advice = _advice(data, message)
        if "matching regex" in message:
            message = f"{data!r} has the wrong form"
        yield Fault(path, f"{message[0].lower()}{message[1:]}", advice)


def _advice(data: Any, message: str) -> str:
    if isinstance(data, bool) and "`str`" in message:
        return "YAML reads yes, no, on, off, true and false as booleans: put it in quotes"
    if "`str`" in message and not isinstance(data, (str, list, dict)):
        return f'put it in quotes: "{data}"'
    if "regex" in message and isinstance(data, str):
        if "doc:" in message:
            return "write test:tests/evidence/test_m04.py::test_name or doc:DOCUMENT AND VERSION"
        return "it should look like m04.quiz.shift (small letters, digits, dashes)"
    return ""


def _element(wanted: Any) -> Any:
    """The T of a (possibly annotated) tuple[T, ...]; None for anything else."""
    if typing.get_origin(wanted) is typing.Annotated:
        wanted = typing.get_args(wanted)[0]
    if typing.get_origin(wanted) is tuple:
        return typing.get_args(wanted)[0]
    return None


def _shown(data: Any) -> str:
    if data is None:
        return "nothing"
    return f"{type(data).__name__} {str(data)[:30]!r}"
