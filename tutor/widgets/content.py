"""Text as data: every string of the course reaches the screen through this file, so that no markup eats a bracket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from textual.content import Content, Span

CODE_STYLE = "$text-accent"
RIGHT_STYLE = "bold $text-success"
WRONG_STYLE = "bold $text-error"
DIM_STYLE = "$foreground 72%"
MARK_STYLE = "bold on $warning 15%"

RIGHT, WRONG, OPEN, PARTLY = "✓", "✗", "·", "◐"

_INLINE = re.compile(
    r"(?P<ticks>`+)(?P<code>.+?)(?P=ticks)(?!`)"
    r"|\*\*(?P<strong>\S(?:.*?\S)?)\*\*"
    r"|(?<![\w*])\*(?P<em>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])",
    re.DOTALL,
)


def plain(text: str, style: str = "") -> Content:
    """`text` exactly as written, `kernel[grid](x)` and `a[i]` included."""
    return Content.styled(text, style) if style else Content(text)


def inline(text: str, style: str = "") -> Content:
    """One paragraph with `code`, **strong** and *emphasis*; anything else stays as written."""
    parts: list[Content] = []
    end = 0
    for found in _INLINE.finditer(text):
        parts.append(plain(text[end : found.start()]))
        if code := found["code"]:
            parts.append(plain(code.strip() or code, CODE_STYLE))
        elif strong := found["strong"]:
            parts.append(inline(strong, "bold"))
        else:
            parts.append(inline(found["em"], "italic"))
        end = found.end()
    parts.append(plain(text[end:]))
    joined = Content("").join(parts)
    return joined.stylize_before(style) if style else joined


def stack(parts: Iterable[Content | str]) -> Content:
    """Parts below each other; a `str` is taken as written."""
    return Content("\n").join([part if isinstance(part, Content) else plain(part) for part in parts])


@lru_cache(maxsize=64)
def code_lines(code: str, language: str = "python") -> tuple[Content, ...]:
    """The lines of `code`, coloured, as many and as long as in the text."""
    lines = code.expandtabs(4).rstrip("\n").split("\n")
    if language != "python":
        return tuple(plain(line) for line in lines)
    from textual.highlight import highlight

    from tutor.widgets.code_theme import CodeTheme

    # an own end mark keeps the lexer from dropping blank lines at either end
    coloured = highlight("\n".join(lines), language="python", theme=CodeTheme).split("\n", allow_blank=True)
    if [line.plain for line in coloured[: len(lines)]] != lines:
        return tuple(plain(line) for line in lines)
    return tuple(coloured[: len(lines)])


def numbered(code: str, marked: Sequence[int] = (), language: str = "python") -> list[Content]:
    """Lines with their 1-based number; marked ones carry a sign as well as a colour."""
    lines = code_lines(code, language)
    width = len(str(len(lines)))
    shown = []
    for number, line in enumerate(lines, 1):
        mark = number in marked
        gutter = plain(f"{'▶' if mark else ' '}{number:>{width}} ", "bold $text-warning" if mark else DIM_STYLE)
        row = Content("").join([gutter, line])
        shown.append(row.stylize_before(MARK_STYLE) if mark else row)
    return shown


def columns(rows: Sequence[Sequence[Content | str]], gap: int = 2) -> Content:
    """A borderless table: every column as wide as its widest cell, the last one free."""
    cells = [[cell if isinstance(cell, Content) else plain(cell) for cell in row] for row in rows]
    widths = [max((cell.cell_length for cell in column), default=0) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [cell.pad_right(width - cell.cell_length + gap) for cell, width in zip(row, widths, strict=True)]
        lines.append(Content("").join([*padded[:-1], row[-1]]))
    return stack(lines)


def bar(done: int, total: int, width: int = 10) -> Content:
    """A progress bar that reads without colour too."""
    filled = round(width * done / total) if total else 0
    if done and not filled:
        filled = 1
    return Content.assemble(("━" * filled, "$success"), ("╌" * (width - filled), DIM_STYLE))


__all__ = ["Content", "Span", "bar", "code_lines", "columns", "inline", "numbered", "plain", "stack"]
