"""Text that keeps its indentation where it wraps, and parts below each other that do so each for itself."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rich.segment import Segment
from textual.content import Content
from textual.css.styles import RulesMap
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual

from tutor.widgets.content import plain

NARROWEST = 12  # columns: with less left beside the head, the body wraps below it
_ENTRY = re.compile(r"(?P<head>\s*(?:\S.*?\s{2,}|[-*•·] |\d+[.)] )?)(?P<body>\S.*)", re.DOTALL)


class Hanging(Visual):
    """`head`, then `body`, whose further lines start where its first one does."""

    def __init__(self, head: Content, body: Visual) -> None:
        self.head, self.body = head, body
        self.indent = head.cell_length

    @property
    def plain(self) -> str:
        return self.head.plain + getattr(self.body, "plain", "")

    def _fits(self, width: int) -> bool:
        return width - self.indent >= NARROWEST or not isinstance(self.body, Content)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        if isinstance(self.body, Content) and not self._fits(width):
            joined = Content("").join([self.head, self.body])
            return joined.render_strips(width, height, style, replace(options, selection=None))
        inner = replace(options, selection=None)  # a selection counts in the text of the whole widget
        head = self.head.render_strips(max(1, self.indent), 1, style, inner)
        lines = self.body.render_strips(max(1, width - self.indent), None, style, inner) or [Strip.blank(0)]
        gap = Strip([Segment(" " * self.indent, style.rich_style)], self.indent)
        strips = [Strip.join([(head[0] if head else gap) if not row else gap, line]) for row, line in enumerate(lines)]
        return strips if height is None else strips[:height]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return self.indent + self.body.get_optimal_width(rules, container_width)

    def get_height(self, rules: RulesMap, width: int) -> int:
        if isinstance(self.body, Content) and not self._fits(width):
            # a pane that another one covers has no column at all, into which textual cannot wrap
            return Content("").join([self.head, self.body]).get_height(rules, max(1, width))
        return max(1, self.body.get_height(rules, max(1, width - self.indent)))


class Column(Visual):
    """Parts below each other."""

    def __init__(self, parts: Sequence[Visual]) -> None:
        self.parts = tuple(parts)

    @property
    def plain(self) -> str:
        return "\n".join(getattr(part, "plain", "") for part in self.parts)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        inner = replace(options, selection=None)
        strips: list[Strip] = []
        for part in self.parts:
            strips += part.render_strips(width, None, style, inner) or [Strip.blank(width, style.rich_style)]
        return strips if height is None else strips[:height]

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return max((part.get_optimal_width(rules, container_width) for part in self.parts), default=0)

    def get_height(self, rules: RulesMap, width: int) -> int:
        return sum(max(1, part.get_height(rules, width)) for part in self.parts)


def hanging_lines(text: str) -> Column:
    """Every line as written; where one wraps, it goes on under its own text, past a list sign or a first cell."""
    return Column([hanging_line(line) for line in text.split("\n")])


def hanging_line(line: str, style: str = "") -> Visual:
    found = _ENTRY.fullmatch(line)
    if found and found["head"]:
        return Hanging(plain(found["head"], style), plain(found["body"], style))
    return plain(line, style)
