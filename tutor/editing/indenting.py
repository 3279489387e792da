"""What Enter, Tab and the comment key do to lines of Python."""

from __future__ import annotations

import re
from collections.abc import Sequence

STEP = 4  # columns
_LEAVES = re.compile(r"(return|break|continue|raise)\b")
_COMMENT = re.compile(r"(\s*)# ?(.*)", re.DOTALL)


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def next_indent(before: str) -> int:
    """Columns to begin the next line with, from what stands before the cursor on this one."""
    width = indent_of(before)
    code = _without_comment(before).strip()
    if code.endswith((":", "(", "[", "{")):
        return width + STEP
    if _LEAVES.match(code):
        return max(0, width - STEP)
    return width


def _without_comment(line: str) -> str:
    """A `#` within quotes is none; a string over several lines is not looked at."""
    quote = ""
    for index, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "#":
            return line[:index]
    return line


def shifted(lines: Sequence[str], direction: int) -> list[str]:
    """Indented (1) or dedented (-1) to the next stop; empty lines stay empty."""
    done = []
    for line in lines:
        width = indent_of(line)
        stop = (width // STEP + 1) * STEP if direction > 0 else max(0, (width - 1) // STEP * STEP)
        done.append(" " * stop + line[width:] if line.strip() else line)
    return done


def toggled(lines: Sequence[str]) -> list[str]:
    """Comments put before every line, or taken away when all of them have one."""
    written = [line for line in lines if line.strip()]
    if written and all(line.lstrip().startswith("#") for line in written):
        return [_COMMENT.sub(r"\1\2", line, count=1) if line.strip() else line for line in lines]
    column = min((indent_of(line) for line in written), default=0)
    return [f"{line[:column]}# {line[column:]}" if line.strip() else line for line in lines]


def matches(lines: Sequence[str], wanted: str) -> list[tuple[int, int]]:
    """Row and column of each place; small letters find capitals too."""
    if not wanted:
        return []
    flags = re.IGNORECASE if wanted == wanted.lower() else 0
    pattern = re.compile(re.escape(wanted), flags)
    return [(row, found.start()) for row, line in enumerate(lines) for found in pattern.finditer(line)]
