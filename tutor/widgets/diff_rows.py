"""A comparison as text: a sign on every changed line beside its colour, below each other or side by side."""

from __future__ import annotations

from collections.abc import Sequence

from tutor.editing.differences import Gap, Row, blocks, near_changes
from tutor.widgets.content import DIM_STYLE, Content, plain

OLD_STYLE, NEW_STYLE = "$text-error on $error 12%", "$text-success on $success 12%"
AROUND = 3
TAB = 4


def _line(number: int | None, digits: int, sign: str, text: str, style: str) -> Content:
    gutter = plain(f"{number or '':>{digits}} ", DIM_STYLE)
    body = f"{sign} {text.expandtabs(TAB)}"
    return Content.assemble(gutter, plain(body, style) if style else plain(body))


def _gap(gap: Gap) -> Content:
    lines = "1 line" if gap.rows == 1 else f"{gap.rows} lines"
    return plain(f"  ... {lines} the same", DIM_STYLE)


def unified(rows: Sequence[Row], around: int = AROUND) -> tuple[list[Content], list[int]]:
    """The lines, and at which of them each change begins."""
    shown = near_changes(rows, around)
    starts = {block.start: block for block in blocks(shown)}
    digits = len(str(len(rows)))
    lines: list[Content] = []
    places = []
    index = 0
    while index < len(shown):
        row = shown[index]
        if index in starts:
            places.append(len(lines))
            block = [shown[at] for at in starts[index]]
            changed = [row for row in block if isinstance(row, Row)]
            lines += [_line(row.left[0], digits, "-", row.left[1], OLD_STYLE) for row in changed if row.left]
            lines += [_line(row.right[0], digits, "+", row.right[1], NEW_STYLE) for row in changed if row.right]
            index = starts[index].stop
            continue
        if isinstance(row, Gap):
            lines.append(_gap(row))
        elif row.right:
            lines.append(_line(row.right[0], digits, " ", row.right[1], ""))
        index += 1
    return lines, places


def side_by_side(rows: Sequence[Row], width: int, around: int = AROUND) -> tuple[list[Content], list[int]]:
    """The same in two columns of together `width` cells; what does not fit ends in an ellipsis."""
    shown = near_changes(rows, around)
    digits = len(str(len(rows)))
    half = (width - 3) // 2
    lines = []
    for row in shown:
        if isinstance(row, Gap):
            lines.append(_gap(row))
            continue
        left = _half(row.left, row.same, digits, "-", OLD_STYLE).truncate(half, ellipsis=True, pad=True)
        right = _half(row.right, row.same, digits, "+", NEW_STYLE)
        lines.append(Content.assemble(left, plain(" │ ", DIM_STYLE), right.truncate(half, ellipsis=True)))
    return lines, [block.start for block in blocks(shown)]


def _half(line: tuple[int, str] | None, same: bool, digits: int, sign: str, style: str) -> Content:
    if line is None:
        return plain("")
    return _line(line[0], digits, " " if same else sign, line[1], "" if same else style)
