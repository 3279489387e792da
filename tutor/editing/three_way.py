"""Joining two versions of a text that began as one: line by line, and only where they do not touch each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MINE, BETWEEN, THEIRS = "<<<<<<< yours", "=======", ">>>>>>> the other version"


@dataclass(frozen=True, order=True)
class Change:
    """Lines `start` to `end` (0-based, end excluded) of the base give way to `lines`."""

    start: int
    end: int
    lines: tuple[str, ...]

    def touches(self, other: Change) -> bool:
        """Neighbours touch: whoever changed the line above may have meant the one below."""
        return self.start <= other.end and other.start <= self.end


def changes(base: Sequence[str], version: Sequence[str]) -> list[Change]:
    opcodes = SequenceMatcher(None, base, version, autojunk=False).get_opcodes()
    return [Change(i1, i2, tuple(version[j1:j2])) for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]


def merged(base: str, mine: str, theirs: str) -> str | None:
    """The text with the changes of both; None where they change the same or neighbouring lines differently."""
    lines = base.splitlines(keepends=True)
    ours = changes(lines, mine.splitlines(keepends=True))
    others = changes(lines, theirs.splitlines(keepends=True))
    if any(one.touches(other) and one != other for one in ours for other in others):
        return None
    for change in sorted({*ours, *others}, reverse=True):  # from the end, so that the line numbers stay true
        lines[change.start : change.end] = change.lines
    return "".join(lines)


def with_conflicts(mine: str, theirs: str) -> str:
    """One text of both versions, each place where they differ between markers as git writes them."""
    left, right = mine.splitlines(), theirs.splitlines()
    parts: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag == "equal":
            parts += left[i1:i2]
        else:
            parts += [MINE, *left[i1:i2], BETWEEN, *right[j1:j2], THEIRS]
    return "\n".join(parts) + "\n"
