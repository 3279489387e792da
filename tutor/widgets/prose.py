"""Running text of the course: Markdown in which a bracket is a bracket."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import ScrollableContainer, VerticalScroll
from textual.content import Content
from textual.widgets import Markdown, Static

from tutor.widgets.content import numbered, stack

if TYPE_CHECKING:
    from markdown_it import MarkdownIt


def bracket_safe_parser() -> MarkdownIt:
    """Markdown without links, images and HTML: `kernel[grid](x)` is a launch, `<T>` a type."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("gfm-like", {"linkify": False, "html": False})
    return parser.disable(["link", "image", "autolink", "linkify", "html_inline", "html_block", "reference"])


class Prose(Markdown):
    def __init__(self, text: str = "", *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(text, id=id, classes=classes, parser_factory=bracket_safe_parser, open_links=False)


class Reading(VerticalScroll, can_focus=True, inherit_bindings=False):
    """A scrolling column of text; left and right are free for turning pages."""

    BINDINGS = [
        Binding("up,k", "scroll_up", "Up", show=False, id="text.scroll-up"),
        Binding("down,j", "scroll_down", "Down", show=False, id="text.scroll-down"),
        Binding("pageup", "page_up", "Page up", show=False, id="text.page-up"),
        Binding("pagedown", "page_down", "Page down", show=False, id="text.page-down"),
        Binding("home", "scroll_home", "Top", show=False, id="text.scroll-home"),
        Binding("end", "scroll_end", "Bottom", show=False, id="text.scroll-end"),
    ]


class CodeView(ScrollableContainer, can_focus=True):
    """Numbered code that scrolls both ways, with marked lines kept in sight."""

    BINDINGS = [
        Binding("k", "scroll_up", "Up", show=False, id="code.scroll-up"),
        Binding("j", "scroll_down", "Down", show=False, id="code.scroll-down"),
    ]

    def __init__(
        self,
        code: str = "",
        language: str = "python",
        *,
        marked: tuple[int, ...] = (),
        focusable: bool = True,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.code, self.language, self.marked = code, language, marked
        self.can_focus = focusable
        self._lines = Static(self._content(), classes="code-lines")

    def compose(self) -> ComposeResult:
        yield self._lines

    def _content(self) -> Content:
        return stack(numbered(self.code, self.marked, self.language))

    def show(self, code: str | None = None, marked: tuple[int, ...] = ()) -> None:
        """Show other code or other marks; a marked line is scrolled into view."""
        if code is not None:
            self.code = code
        self.marked = marked
        self._lines.update(self._content())
        if marked:
            self.call_after_refresh(self._bring_into_view, min(marked) - 1, max(marked) - 1)

    def _bring_into_view(self, first: int, last: int) -> None:
        top, height = self.scroll_offset.y, self.scrollable_content_region.height
        if first < top or last >= top + height:
            self.scroll_to(y=max(0, first - max(0, (height - (last - first) - 1) // 2)), animate=False)
