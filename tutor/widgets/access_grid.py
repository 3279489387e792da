"""A tensor of an access map as a grid of cells, scaled to the room there is; one cell may be picked."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget

from grader.access_map.model import AccessMap
from tutor.access.cells import Cell, Choice, Grid, Row, Touches, grid, touches
from tutor.access.drawing import edge_scale
from tutor.widgets.content import DIM_STYLE, WRONG_STYLE, Content, plain, stack

# a program's colour only helps the eye: its digit or letter says which one it is
PROGRAM_STYLES = ("$text-primary", "$text-success", "$text-warning", "$text-accent", "bold $foreground", "$secondary")
STYLES = {
    "several": "bold on $warning 30%",
    "partly": "bold $text-warning",
    "mixed": "$foreground",
    "gap": DIM_STYLE,
    "masked": DIM_STYLE,
    "bad": WRONG_STYLE,
    "load": "$text-primary",
    "store": "bold $text-success",
}
PICKED = "reverse bold"


class AccessGrid(Widget, can_focus=True):
    DEFAULT_CSS = """
    AccessGrid { height: 1fr; width: 1fr; padding: 0 1; }
    """

    @dataclass
    class Drawn(Message):
        """Another grid is shown: what a cell stands for may have changed."""

    @dataclass
    class Picked(Message):
        """A cell was clicked or stepped to."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: AccessMap | None = None
        self.choice = Choice()
        self.touched: Touches | None = None
        self.drawn: Grid | None = None
        self.picked: tuple[int, int] | None = None  # row and column of a cell

    def show(self, shown: AccessMap, choice: Choice) -> None:
        if self.choice.tensor != choice.tensor or self.shown is not shown:
            self.picked = None
        self.shown, self.choice = shown, choice
        self.touched = touches(shown, choice) if shown.tensors else None
        self._draw(self.content_size)

    def clear(self) -> None:
        self.shown = self.touched = self.drawn = self.picked = None
        self.refresh()

    def on_resize(self, event: events.Resize) -> None:
        self._draw(self.content_size)

    def _draw(self, size: Size) -> None:
        if self.touched is None or not size.width or not size.height:
            self.drawn = None
        else:
            before = self.drawn
            self.drawn = grid(self.touched, size.width, size.height)
            if before is not None and (before.across, before.down) != (self.drawn.across, self.drawn.down):
                self.picked = None
        self.refresh()
        self.post_message(self.Drawn())

    # the picked cell

    @property
    def cell(self) -> Cell | None:
        if self.drawn is None or self.picked is None:
            return None
        row, column = self.picked
        rows = self.drawn.rows
        return rows[row].cells[column] if row < len(rows) and column < len(rows[row].cells) else None

    def step(self, rows: int, columns: int) -> None:
        if self.drawn is None or not self.drawn.rows:
            return
        row, column = self.picked or (0, -columns if columns > 0 else 0)
        row = min(max(row + rows if self.picked else 0, 0), len(self.drawn.rows) - 1)
        column = min(max(column + columns, 0), len(self.drawn.rows[row].cells) - 1)
        self._pick((row, column))

    def unpick(self) -> None:
        self._pick(None)

    def _pick(self, place: tuple[int, int] | None) -> None:
        self.picked = place
        self.refresh()
        self.post_message(self.Picked())

    def on_click(self, event: events.Click) -> None:
        place = event.get_content_offset(self)
        if place is None or self.drawn is None:
            return
        column = place.x - self.drawn.label_width - 1
        if 0 <= place.y < len(self.drawn.rows) and 0 <= column < len(self.drawn.rows[place.y].cells):
            self._pick((place.y, column))

    # drawing

    def render(self) -> Content:
        if self.drawn is None:
            return plain("")
        width = self.drawn.label_width
        lines = [self._row(row, row.label.rjust(width), number) for number, row in enumerate(self.drawn.rows)]
        for row in self.drawn.edges:
            signs = self._row(row, row.label, -1)
            lines.append(Content("").join([signs, plain(edge_scale(self.drawn), DIM_STYLE)]))
        return stack(lines)

    def _row(self, row: Row, label: str, number: int) -> Content:
        parts: list[tuple[str, str]] = [(f"{label} ", DIM_STYLE)]
        for column, cell in enumerate(row.cells):
            style = STYLES.get(cell.tone) or PROGRAM_STYLES[cell.program % len(PROGRAM_STYLES)]
            if self.picked == (number, column):
                style = PICKED
            if parts[-1][1] == style:
                parts[-1] = (parts[-1][0] + cell.sign, style)
            else:
                parts.append((cell.sign, style))
        return Content("").join([plain(text, style) for text, style in parts])
