"""Writing to stdout and stderr: colour only where it is wanted, never a crash over an encoding."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import msgspec

from tutor.verdict_text import Line

PASSED, FELL_SHORT, USAGE, CANNOT = 0, 1, 2, 3
COLOURS = {"good": "32", "bad": "31", "dim": "2", "head": "1"}


_readers_left: list[bool] = []


class Stop(Exception):
    """Ends a command with a message on stderr and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        self.code = code
        super().__init__(message)


def prepare() -> None:
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def coloured(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def say(text: str = "") -> None:
    """When whoever read stdout has left (`| head`), the rest goes nowhere: the exit code must still be true."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _readers_left.append(True)


def reader_left() -> bool:
    return bool(_readers_left)


def say_lines(lines: Iterable[Line]) -> None:
    colour = coloured(sys.stdout)
    for line in lines:
        code = COLOURS.get(line.tone) if colour else None
        say(f"\x1b[{code}m{line.text}\x1b[0m" if code else line.text)


def say_json(value: Any) -> None:
    say(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class Ticker:
    """One line on stderr that is overwritten as work goes on; silent when stderr is not a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._length = 0

    def show(self, text: str) -> None:
        if self._shown:
            text = text[: width() - 1]
            sys.stderr.write("\r" + text.ljust(self._length))
            sys.stderr.flush()
            self._length = len(text)

    def clear(self) -> None:
        if self._shown and self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()
            self._length = 0


def width() -> int:
    """Columns to wrap at: the terminal's, at most 100; 80 in a pipe."""
    if not sys.stdout.isatty():
        return 80
    try:
        return max(30, min(os.get_terminal_size().columns, 100))
    except OSError:
        return 80


def ask(prompt: str) -> str:
    """One line from stdin. Raises EOFError at its end."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = sys.stdin.readline()
    if not line:
        say()
        raise EOFError
    if not sys.stdin.isatty():
        say()
    return line.rstrip("\r\n")
