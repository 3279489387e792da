"""A text area for Python: it indents, comments, marks the line of the last diagnosis, and takes the app's colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import Document, Selection, TextAreaTheme

from tutor.editing.indenting import STEP, next_indent, shifted, toggled

TAKEN_BY_THE_SCREEN = ("f6", "f7")  # a text area selects with them; here they grade and cancel
COLOURS = {  # names of tree-sitter's query for Python, by the class that colours them
    "keyword": (
        "keyword keyword.function keyword.return keyword.operator include repeat conditional exception "
        "constant.builtin boolean function.builtin"
    ),
    "string": "string string.escape",
    "comment": "comment",
    "number": "number float",
    "name": "function attribute attribute.builtin type.class",
}


@dataclass
class CourseColours(TextAreaTheme):
    """Colours from the style sheet, so that they follow the app's theme."""

    def apply_css(self, text_area: TextArea) -> None:
        super().apply_css(text_area)
        self.syntax_styles = {}
        for group, names in COLOURS.items():
            style = text_area.get_component_rich_style(f"code--{group}")
            ink = Style(color=style.color, bold=style.bold, italic=style.italic, dim=style.dim)
            self.syntax_styles |= dict.fromkeys(names.split(), ink)


class CodeEditor(TextArea, inherit_bindings=False):
    BINDINGS = [
        *(key for key in TextArea.BINDINGS if isinstance(key, Binding) and key.key not in TAKEN_BY_THE_SCREEN),
        Binding("ctrl+home", "go_to_end(-1)", "First line", show=False, id="editor.first-line"),
        Binding("ctrl+end", "go_to_end(1)", "Last line", show=False, id="editor.last-line"),
    ]
    COMPONENT_CLASSES = {*(f"code--{group}" for group in COLOURS), "code--mark"}
    DEFAULT_CSS = """
    CodeEditor {
        border: none;
        padding: 0;
        height: 1fr;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        &:focus { border: none; }
        &:light { background: white; }
        & .text-area--gutter { color: $foreground 80%; }
        & .text-area--cursor-gutter { color: $foreground; }
        & .code--keyword { color: $text-accent; }
        & .code--string { color: $text-success; }
        & .code--comment { color: $foreground 90%; text-style: italic; }
        & .code--number { color: $text-warning; }
        & .code--name { color: $text-primary; text-style: bold; }
        & .code--mark { color: $text-warning; text-style: bold; }
        &:ansi {
            background: ansi_default;
            & .text-area--gutter { color: ansi_default; text-style: dim; }
            & .code--keyword { color: ansi_magenta; }
            & .code--string { color: ansi_green; }
            & .code--comment { color: ansi_default; text-style: dim italic; }
            & .code--number { color: ansi_blue; }
            & .code--name { color: ansi_default; text-style: bold; }
            & .code--mark { color: ansi_red; text-style: bold; }
        }
    }
    """

    def __init__(self, text: str, *, blink: bool, id: str | None = None) -> None:
        super().__init__(
            text, language="python", soft_wrap=False, tab_behavior="indent", show_line_numbers=True,
            max_checkpoints=500, id=id,
        )  # fmt: skip
        self.register_theme(CourseColours("course"))
        self.theme = "course"
        self.cursor_blink = blink
        self.indent_width = STEP
        self.marked: int | None = None  # 0-based row
        self._marked_text = ""
        self._rows = self.document.line_count
        self._as_given = (self.text, text)

    # --- the text as a whole

    @property
    def source(self) -> str:
        """The text to save. As long as nobody typed it is exactly what was given, mixed line ends included."""
        shown, given = self._as_given
        return given if self.text == shown else self.text

    def show(self, text: str) -> None:
        """Another text, as one edit that can be undone; only the lines that differ are touched."""
        new = Document(text)
        if new.newline != self.document.newline:
            self.load_text(text)
        elif text != self.text:
            old, lines = self.document.lines, new.lines
            first = _common(old, lines)
            last = _common(old[first:][::-1], lines[first:][::-1])
            self._replace_rows(first, len(old) - last, lines[first : len(lines) - last])
        self._as_given = (self.text, text)
        self._rows = self.document.line_count

    def _replace_rows(self, first: int, end: int, lines: Sequence[str]) -> None:
        """Rows `first` to `end` (excluded) give way to `lines`; the cursor stays with its text."""
        old, text = self.document.lines, "\n".join(lines)
        if first < end and lines:
            self.replace(text, (first, 0), (end - 1, len(old[end - 1])))
        elif lines:  # new rows
            at_end = first == len(old)
            place = self.document.end if at_end else (first, 0)
            self.replace(f"\n{text}" if at_end else f"{text}\n", place, place)
        elif end < len(old):
            self.replace("", (first, 0), (end, 0))
        else:
            self.replace("", (first - 1, len(old[first - 1])), self.document.end)

    # --- keys

    def on_key(self, event: events.Key) -> None:
        if self.read_only or event.key not in ("enter", "tab", "shift+tab"):
            return
        start, end = sorted(self.selection)
        if event.key == "enter":
            before = self.document.get_line(start[0])[: start[1]]
            self._replace_via_keyboard("\n" + " " * next_indent(before), start, end)
        elif event.key == "shift+tab":
            self._change_rows(lambda lines: shifted(lines, -1))
        elif start[0] != end[0]:
            self._change_rows(lambda lines: shifted(lines, 1))
        else:
            return
        event.stop()
        event.prevent_default()

    def action_delete_left(self) -> None:
        """Within the indentation, back to the stop before."""
        row, column = self.cursor_location
        before = self.document.get_line(row)[:column]
        if self.selection.is_empty and before and not before.strip(" "):
            self._delete_via_keyboard((row, (column - 1) // STEP * STEP), (row, column))
        else:
            super().action_delete_left()

    def action_go_to_end(self, direction: int) -> None:
        self.move_cursor(self.document.end if direction > 0 else (0, 0))

    def action_comment(self) -> None:
        self._change_rows(toggled)

    def _change_rows(self, change: Callable[[Sequence[str]], list[str]]) -> None:
        """Applies `change` to the selected lines, or to that of the cursor; the selection goes along."""
        start, end = sorted(self.selection)
        last = end[0] - (1 if end[0] > start[0] and end[1] == 0 else 0)
        old = self.document.lines[start[0] : last + 1]
        new = change(old)
        if new == old:
            return
        forward = self.selection.start <= self.selection.end
        self.replace("\n".join(new), (start[0], 0), (last, len(old[-1])))
        left = (start[0], max(0, start[1] + len(new[0]) - len(old[0])))
        right = (end[0], max(0, end[1] + len(new[-1]) - len(old[-1])) if end[0] == last else end[1])
        self.selection = Selection(left, right) if forward else Selection(right, left)

    # --- the line of the last diagnosis

    def mark(self, row: int | None) -> None:
        """`row` counts from 0; None takes the mark away."""
        self.marked = row if row is not None and row < self.document.line_count else None
        self._marked_text = self.document.get_line(self.marked) if self.marked is not None else ""
        self._rows = self.document.line_count
        self.notify_style_update()
        self.refresh()

    def follow_mark(self) -> None:
        """After an edit: lines that came or went above the marked one move it."""
        grown, self._rows = self.document.line_count - self._rows, self.document.line_count
        if self.marked is None or not grown:
            return
        for row in (self.marked, self.marked + grown):
            if 0 <= row < self._rows and self.document.get_line(row) == self._marked_text:
                self.marked = row
                break
        self.marked = min(self.marked, self._rows - 1)
        self.notify_style_update()

    def render_line(self, y: int) -> Strip:
        strip = super().render_line(y)
        if self.marked is None or y + self.scroll_offset.y != self.marked:
            return strip
        margin = self.gutter_width - 2
        style = self.get_component_rich_style("code--mark")
        number = Segment(f"{self.marked + 1:>{margin}}▶ ", style + Style(bold=True))
        return Strip.join([Strip([number], self.gutter_width), strip.crop(self.gutter_width)])


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines at the front are the same."""
    count = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        count += 1
    return count
