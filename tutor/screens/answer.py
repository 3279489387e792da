"""Hints and the solution, each in a dialog that Esc closes."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from tutor.widgets.content import Content, inline, plain, stack
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import CodeView, Reading


class HintScreen(ModalScreen[None]):
    BINDINGS = [
        Binding("h", "more", "Next hint", id="hint.more"),
        Binding("escape,q", "dismiss", "Close", key_display="Esc", id="hint.dismiss"),
    ]

    def __init__(self, hints: tuple[str, ...], taken: int, record: Callable[[int], None]) -> None:
        """`taken` hints are shown at first; `record` is told of every further level."""
        super().__init__()
        self.hints, self.taken, self.record = hints, taken, record

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog"):
            with Reading():
                yield Static(self._text(), id="hints")
        yield KeyLine()

    def _text(self) -> Content:
        parts: list[Content] = []
        for level, hint in enumerate(self.hints[: self.taken], 1):
            parts += [plain(f"Hint {level} of {len(self.hints)}", "bold"), inline(hint), plain("")]
        return stack(parts[:-1])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.taken < len(self.hints) if action == "more" else True

    def action_more(self) -> None:
        self.taken += 1
        self.record(self.taken)
        self.query_one("#hints", Static).update(self._text())
        self.refresh_bindings()


class SolutionScreen(ModalScreen[None]):
    BINDINGS = [
        Binding("y", "copy", "Copy", id="solution.copy"),
        Binding("escape,q,s", "dismiss", "Close", key_display="Esc", id="solution.dismiss"),
    ]

    def __init__(self, slug: str, code: str) -> None:
        super().__init__()
        self.slug, self.code = slug, code

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog -tall"):
            yield Static(plain(f"Solution of {self.slug}", "bold"))
            yield CodeView(self.code)
        yield KeyLine()

    def action_copy(self) -> None:
        self.app.copy(self.code, "Solution")  # type: ignore[attr-defined]
