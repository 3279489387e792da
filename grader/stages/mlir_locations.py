"""MLIR's locations: `loc("file":9:4)`, names, call sites, fused ones, and the table of `#loc12` at the text's ends."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Frame:
    """One level of a call: a file and its 1-based line; 0 where no line is known."""

    file: str
    line: int


_ENTRY = re.compile(r"^(#loc\d*) = loc\((.*)\)\s*$")
_POSITION = re.compile(r":(\d+):(\d+)(?: to (?::?\d+)?:?\d+)?")


class LocationTable:
    """The `#locN = loc(…)` lines of a text, resolved to frames when asked."""

    def __init__(self, text: str) -> None:
        self._raw = {m[1]: m[2] for line in text.splitlines() if line.startswith("#loc") and (m := _ENTRY.match(line))}
        self._known: dict[str, tuple[Frame, ...]] = {}

    def frames(self, location: str) -> tuple[Frame, ...]:
        """Innermost call first. What cannot be read gives no frame: a location explains, it never fails."""
        try:
            return _Reader(location, self).location()
        except (IndexError, ValueError, RecursionError):
            return ()

    def named(self, name: str) -> tuple[Frame, ...]:
        if name not in self._known:
            self._known[name] = ()  # a table that refers to itself ends here
            self._known[name] = self.frames(self._raw.get(name, "unknown"))
        return self._known[name]


class _Reader:
    """Reads one location from left to right."""

    def __init__(self, text: str, table: LocationTable) -> None:
        self.text, self.table, self.at = text, table, 0

    def location(self) -> tuple[Frame, ...]:
        if self._takes("callsite("):
            callee = self.location()
            self._expects(" at ")
            caller = self.location()
            self._expects(")")
            return callee + caller
        if self._takes("fused"):
            return self._fused()
        if self._takes("unknown"):
            return ()
        if self._takes("loc("):
            inner = self.location()
            self._expects(")")
            return inner
        if self.text.startswith("#loc", self.at):
            found = re.compile(r"#loc\d*").match(self.text, self.at)
            assert found is not None
            self.at = found.end()
            return self.table.named(found[0])
        return self._quoted()

    def _fused(self) -> tuple[Frame, ...]:
        if self._takes("<"):
            self.at = self.text.index(">[", self.at) + 1
        self._expects("[")
        found: list[Frame] = []
        while not self._takes("]"):
            found += self.location()
            self._takes(", ")
        return tuple(dict.fromkeys(found))

    def _quoted(self) -> tuple[Frame, ...]:
        """A file with line and column, or a name around another location."""
        self._expects('"')
        end = self.text.index('"', self.at)
        name, self.at = self.text[self.at : end], end + 1
        if found := _POSITION.match(self.text, self.at):
            self.at = found.end()
            return (Frame(name, int(found[1])),)
        if self._takes("("):
            inner = self.location()
            self._expects(")")
            return inner
        return ()

    def _takes(self, word: str) -> bool:
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def _expects(self, word: str) -> None:
        if not self._takes(word):
            raise ValueError(word)


def without_locations(line: str) -> tuple[str, str]:
    """The line without any ` loc(…)`, and the inside of the one that ended it (empty when there is none)."""
    kept, last, at = [], "", 0
    while (start := line.find(" loc(", at)) >= 0:
        end = _closing(line, start + 4)
        kept.append(line[at:start])
        last = line[start + 5 : end - 1] if not line[end:].strip() else ""
        at = end
    kept.append(line[at:])
    return "".join(kept).rstrip(), last


def _closing(line: str, opening: int) -> int:
    """The position after the parenthesis that closes the one at `opening`; brackets in quotes do not count."""
    depth, quoted = 0, False
    for at in range(opening, len(line)):
        letter = line[at]
        if letter == '"':
            quoted = not quoted
        elif not quoted and letter == "(":
            depth += 1
        elif not quoted and letter == ")":
            depth -= 1
            if depth == 0:
                return at + 1
    return len(line)
