"""Many lines with a cursor, drawn only where they are seen: thousands cost no more than a screenful."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tutor.widgets.content import Content, plain

SIDEWAYS = 8  # columns that a key scrolls by


@dataclass(frozen=True)
class Row:
    """`gutter` stays in sight while the text scrolls sideways."""

    gutter: str
    text: Content | str


class LinkedLines(ScrollView, can_focus=True, inherit_bindings=False):
    """Signs before a line: `>` cursor, `=` belongs to the line under the other side's cursor, `*` marked."""

    COMPONENT_CLASSES = {
        "lines--cursor",
        "lines--linked",
        "lines--marked",
        "lines--gutter",
        "lines--more",
        "lines--less",
    }
    DEFAULT_CSS = """
    LinkedLines {
        height: 1fr;
        background: $surface;
        overflow: auto auto;
        scrollbar-size-horizontal: 1;
    }
    LinkedLines:light { background: white; }
    LinkedLines > .lines--cursor { background: $primary 20%; }
    LinkedLines:focus > .lines--cursor { background: $primary 40%; text-style: bold; }
    LinkedLines > .lines--linked { background: $success 20%; }
    LinkedLines > .lines--marked { color: $text-warning; }
    LinkedLines > .lines--gutter { color: $foreground 72%; }
    LinkedLines > .lines--more { color: $text-success; }
    LinkedLines > .lines--less { color: $text-error; }
    """
    BINDINGS = [
        Binding("up", "move(-1)", "Up", show=False, id="lines.up"),
        Binding("down", "move(1)", "Down", show=False, id="lines.down"),
        Binding("pageup", "page(-1)", "Page up", show=False, id="lines.page-up"),
        Binding("pagedown", "page(1)", "Page down", show=False, id="lines.page-down"),
        Binding("home", "move(-1000000000)", "Top", show=False, id="lines.top"),
        Binding("end", "move(1000000000)", "Bottom", show=False, id="lines.bottom"),
        Binding("shift+left,comma", "sideways(-1)", "Scroll left", show=False, id="lines.scroll-left"),
        Binding("shift+right,full_stop", "sideways(1)", "Scroll right", show=False, id="lines.scroll-right"),
    ]

    @dataclass
    class Moved(Message):
        """The learner moved the cursor."""

        lines: LinkedLines
        row: int

        @property
        def control(self) -> LinkedLines:
            return self.lines

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self.rows: Sequence[Row] = ()
        self.cursor = 0
        self.linked: frozenset[int] = frozenset()
        self.marked: frozenset[int] = frozenset()
        self.tones: dict[int, str] = {}  # row to "more" or "less"
        self._gutter = 0

    def show_rows(self, rows: Sequence[Row], marked: Collection[int] = (), cursor: int = 0) -> None:
        self.rows, self.marked, self.linked = rows, frozenset(marked), frozenset()
        self._gutter = max((plain(row.gutter).cell_length for row in rows), default=0) + 3
        width = max((_width(row.text) for row in rows), default=0) + self._gutter
        self.virtual_size = Size(width, len(rows))
        self.cursor = max(0, min(cursor, len(rows) - 1))
        self.scroll_to(0, 0, animate=False, force=True)
        self.refresh()
        # by then the cursor may have been put elsewhere
        self.call_after_refresh(lambda: self._keep_in_sight(self.cursor, self.cursor))

    def put_cursor(self, row: int) -> None:
        """Without telling: the screen does so itself."""
        self.cursor = max(0, min(row, len(self.rows) - 1))
        self._keep_in_sight(self.cursor, self.cursor)
        self.refresh()

    def link(self, rows: Collection[int]) -> None:
        """These belong to the line under the other side's cursor; the first of them is brought into sight."""
        self.linked = frozenset(rows)
        if rows:
            nearest = [row for row in sorted(rows) if self._in_sight(row)]
            if not nearest:
                self._keep_in_sight(min(rows), min(rows))
        self.refresh()

    # moving

    def action_move(self, step: int) -> None:
        if self.rows:
            self.put_cursor(self.cursor + step)
            self.post_message(self.Moved(self, self.cursor))

    def action_page(self, direction: int) -> None:
        self.action_move(direction * max(1, self.scrollable_content_region.height - 1))

    def action_sideways(self, direction: int) -> None:
        self.scroll_relative(x=direction * SIDEWAYS, animate=False)

    def on_click(self, event: events.Click) -> None:
        row = event.get_content_offset_capture(self).y + self.scroll_offset.y
        if 0 <= row < len(self.rows):
            self.action_move(row - self.cursor)

    def _in_sight(self, row: int) -> bool:
        top = self.scroll_offset.y
        return top <= row < top + max(1, self.scrollable_content_region.height)

    def _keep_in_sight(self, first: int, last: int) -> None:
        height = max(1, self.scrollable_content_region.height)
        top = self.scroll_offset.y
        if first < top or last >= top + height:
            near = abs(first - top) <= 1 or abs(last - (top + height - 1)) <= 1
            wanted = (first if first < top else last - height + 1) if near else first - height // 3
            self.scroll_to(y=max(0, wanted), animate=False, force=True)

    # drawing

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = y + self.scroll_offset.y
        if row >= len(self.rows):
            return Strip.blank(width, self.rich_style)
        strip = self._row(row)
        segments = list(strip)
        return strip.crop_extend(0, width, segments[-1].style if segments else self.rich_style)

    def _row(self, number: int) -> Strip:
        row = self.rows[number]
        names = [f"lines--{self.tones[number]}"] if number in self.tones else []
        names += ["lines--linked"] if number in self.linked else []
        names += ["lines--cursor"] if number == self.cursor else []
        base = self.get_visual_style(*names)
        here = number == self.cursor and (self.has_focus or number not in self.linked)
        sign = ">" if here else "=" if number in self.linked else " "
        star = "*" if number in self.marked else " "
        gutter = base + self.get_visual_style("lines--gutter", partial=True)
        head = Segment(f"{sign}{star}{row.gutter:>{self._gutter - 3}} ", gutter.rich_style)
        if number in self.marked:
            base += self.get_visual_style("lines--marked", partial=True)
        text = row.text if isinstance(row.text, Content) else plain(row.text)
        body = Strip(text.render_segments(base), text.cell_length)
        shown = max(0, self.scrollable_content_region.width - self._gutter)
        start = self.scroll_offset.x
        return Strip.join([Strip([head], self._gutter), body.crop_extend(start, start + shown, base.rich_style)])


def _width(text: Content | str) -> int:
    return text.cell_length if isinstance(text, Content) else cell_len(text)
