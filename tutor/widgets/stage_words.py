"""What is said of a line of a stage, and of a line of the learner's, in words."""

from __future__ import annotations

from collections import Counter

from tutor.compiler.compilation import StageText
from tutor.widgets.content import Content, plain


def said_of_row(stage: StageText, row: int) -> Content:
    """A row of the stage: what it does, and where it comes from."""
    mark = stage.marks.get(row)
    does = plain(f"{mark.words[:1].upper()}{mark.words[1:]}. ", "bold") if mark else plain("")
    return Content.assemble(plain(f"{stage.name} {row + 1}: "), does, plain(_origin(stage, row)))


def _origin(stage: StageText, row: int) -> str:
    lines = stage.lines[row]
    library = stage.library.get(row)
    if not lines:
        return f"From {library}, a function of Triton's." if library else "From no line of yours in particular."
    if library and stage.name == "SASS" and len(lines) > 1:
        either = " or ".join(map(str, lines))
        return f"{library}, a function of Triton's, inlined at your line {either}: the machine code does not say which."
    if library:
        return f"{library}, a function of Triton's, inlined at your line {_called(lines)}."
    return f"From your line {_called(lines)}."


def _called(lines: tuple[int, ...]) -> str:
    first, *callers = lines
    return str(first) if not callers else f"{first}, called from line {', '.join(map(str, callers))}"


def said_of_line(stage: StageText, line: int) -> Content:
    """A line of the learner's: what became of it."""
    rows = stage.rows_of.get(line, ())
    if not rows:
        inside = min(stage.rows_of, default=0) <= line <= max(stage.rows_of, default=0)
        why = f"no line of {stage.name} comes from it" if inside else "not part of this kernel"
        return plain(f"Your line {line}: {why}.")
    told = Counter(stage.marks[row].words for row in rows if row in stage.marks)
    lines = "1 line" if len(rows) == 1 else f"{len(rows)} lines"
    marked = ", ".join(f"{number} × {words}" for words, number in told.most_common())
    head = plain(f"Your line {line}: {lines} of {stage.name}.")
    return Content.assemble(head, plain(f" {marked}.", "bold")) if marked else head
