"""Pictures of kernels in lessons: a fenced block that says which kernel, and holds what its access map looked like.

    ```map exercise=vector_add demo=tiles case=n=1000 tensor=x_ptr
    0 000000001111111122
    ```

`exercise` and `case` give the call, `demo` the kernel in modules/demos/ (left out: the exercise's solution), `tensor` a
parameter of the kernel, `program` one program, `rows` how many rows of cells at most. What stands in the block is
shown as it is, so that a page needs no grader; tests/grader/test_lesson_pictures.py runs each kernel again.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from grader import catalog

FENCE, KIND = "```", "map"
WIDTH, ROWS = 72, 8
KEYS = {"exercise", "case", "demo", "tensor", "program", "rows"}


class BadPicture(ValueError):
    """A block that does not say what it must; the text says what to write."""


@dataclass(frozen=True)
class Picture:
    exercise: str
    case: str
    tensor: str
    demo: str = ""
    program: int | None = None
    rows: int = ROWS
    lines: tuple[str, ...] = ()
    offset: int = 0  # the line of the page on which the block starts, from 0

    @property
    def file(self) -> Path:
        """The kernel's file. Raises BadPicture."""
        if not self.demo:
            return catalog.find(self.exercise).solution
        for root in catalog.course_roots():
            file = root / "modules" / "demos" / f"{self.demo}.py"
            if file.is_file():
                return file
        raise BadPicture(f"no demo called {self.demo!r}: write modules/demos/{self.demo}.py")


def pictures(text: str) -> tuple[Picture, ...]:
    """Those of one page, in order. Raises BadPicture."""
    return tuple(_blocks(text.split("\n")))


def has_picture(text: str) -> bool:
    return f"{FENCE}{KIND} " in text


def without_info(text: str) -> str:
    """The page as plain text shows it: a picture is a drawing like any other."""
    lines = text.split("\n")
    return "\n".join(f"{FENCE}text" if line.startswith(f"{FENCE}{KIND} ") else line for line in lines)


def _blocks(lines: list[str]) -> Iterator[Picture]:
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        if line.startswith(f"{FENCE}{KIND} "):
            end = next((i for i in range(number + 1, len(lines)) if lines[i].strip() == FENCE), len(lines))
            yield _picture(line.removeprefix(f"{FENCE}{KIND}"), tuple(lines[number + 1 : end]), number)
            number = end
        number += 1


def _picture(info: str, lines: tuple[str, ...], offset: int) -> Picture:
    try:
        given = dict(part.split("=", 1) for part in shlex.split(info))
    except ValueError as error:
        raise BadPicture(f"a map block wants key=value, with quotes around spaces: {info.strip()}") from error
    if unknown := set(given) - KEYS:
        raise BadPicture(f"a map block knows no {', '.join(sorted(unknown))}: write {', '.join(sorted(KEYS))}")
    if missing := {"exercise", "case", "tensor"} - set(given):
        raise BadPicture(f"a map block needs {', '.join(sorted(missing))}")
    try:
        rows = int(given.get("rows", ROWS))
        program = int(given["program"]) if "program" in given else None
    except ValueError as error:
        raise BadPicture("rows and program of a map block are numbers") from error
    return Picture(
        given["exercise"], given["case"], given["tensor"], given.get("demo", ""), program, rows, lines, offset
    )
