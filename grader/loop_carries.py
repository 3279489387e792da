"""Which names each loop of a compiled kernel carries from one iteration to the next, read off its TTIR."""

from __future__ import annotations

import re
from typing import Any

from grader.stages.mlir_locations import LocationTable, without_locations

MOST = 64  # loops of a kernel that are told of
_LOOP = re.compile(r"^(\s*)(?:%\S+ = )?scf\.(?:for\b.*?iter_args|while )\((.*?)\) ?[-:]")
_NAME = re.compile(r"%([^\s=]+) = ")


def loops(ttir: str) -> list[dict[str, Any]]:
    """One row a loop that carries anything: its 1-based line in the file of its function, and the names as Triton
    prints them, `cur_0` for `cur`."""
    if "scf." not in ttir:
        return []
    lines = ttir.splitlines()
    table: LocationTable | None = None
    found: list[dict[str, Any]] = []
    for number, text in enumerate(lines):
        opened = _LOOP.match(text)
        if opened is None or len(found) == MOST:
            continue
        table = table or LocationTable(ttir)
        frames = table.frames(_location(lines, number, opened[1]))
        if frames:
            found.append({"line": frames[0].line, "names": _NAME.findall(opened[2])})
    return found


def _location(lines: list[str], opener: int, indent: str) -> str:
    """An operation with regions has its location after the brace that closes the last one."""
    for text in lines[opener + 1 :]:
        if text.startswith(f"{indent}}}") and not text.rstrip().endswith("{"):
            return without_locations(text)[1]
    return ""


def carries(names: list[str], name: str) -> bool:
    """Whether one of the printed names is this one: a number tells it from others, or the part of a tuple."""
    printed = re.compile(rf"{re.escape(name)}(?:[._]\d+)*")
    return any(printed.fullmatch(one) for one in names)
