"""What the learner's file has changed: against the stub, the newest backup, or, where it may be seen, the solution."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, ScrollableContainer
from textual.screen import Screen
from textual.widgets import Button, Static

from tutor.editing.differences import Version, compared
from tutor.widgets.content import DIM_STYLE, Content, plain, stack
from tutor.widgets.diff_rows import side_by_side, unified
from tutor.widgets.keys import KeyLine

SIDE_BY_SIDE_COLUMNS = 110


class DiffBody(ScrollableContainer, can_focus=True):
    BINDINGS = [
        Binding("k", "scroll_up", "Up", show=False, id="diff.scroll-up"),
        Binding("j", "scroll_down", "Down", show=False, id="diff.scroll-down"),
    ]

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="diff-rows")


class DiffScreen(Screen[None]):
    CSS_PATH = "diff.tcss"
    BINDINGS = [
        Binding("n", "change(1)", "Next change", id="diff.change-after"),
        Binding("p", "change(-1)", "Change before", id="diff.change-before"),
        Binding("v", "version", "Other version", tooltip="Stub, backup, solution", id="diff.version"),
        Binding("escape,q,D", "dismiss", "Back", key_display="Esc", id="diff.dismiss"),
    ]

    def __init__(self, name: str, mine: str, versions: Sequence[Version], note: str = "") -> None:
        """`note` says which version may not be seen yet, and why."""
        super().__init__()
        self.file, self.mine, self.versions, self.note = name, mine, tuple(versions), note
        self.shown = 0
        self.current = 0
        self.places: list[int] = []

    def compose(self) -> ComposeResult:
        yield Static(Content(""), id="where")
        with Horizontal(id="diff-versions"):
            for index, version in enumerate(self.versions):
                yield Button(plain(version.name.capitalize()), id=f"version-{index}", compact=True)
            yield Static(plain(self.note, DIM_STYLE), id="diff-note")
        yield DiffBody()
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one(DiffBody).focus()
        self._show()

    def on_resize(self) -> None:
        if self.query("#diff-rows"):
            self._show()

    def _show(self) -> None:
        version = self.versions[self.shown]
        rows = compared(version.text, self.mine)
        if self.app.size.width >= SIDE_BY_SIDE_COLUMNS:
            lines, self.places = side_by_side(rows, self.app.size.width - 3)
        else:
            lines, self.places = unified(rows)
        self.current = min(self.current, max(0, len(self.places) - 1))
        if not self.places:
            lines = [plain(f"{self.file} is the same as {version.words}.")]
        self.query_one("#diff-rows", Static).update(stack(lines))
        for index in range(len(self.versions)):
            self.query_one(f"#version-{index}").set_class(index == self.shown, "-shown")
        self._say_where()
        self.refresh_bindings()

    def _say_where(self) -> None:
        version = self.versions[self.shown]
        count = len(self.places)
        what = f"change {self.current + 1} of {count}" if count else "no change"
        words = f"  {what}: + is yours, - is {version.words}"
        self.query_one("#where", Static).update(Content.assemble(plain(self.file, "bold"), plain(words)))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "change":
            return len(self.places) > 0
        return len(self.versions) > 1 if action == "version" else True

    def action_change(self, direction: int) -> None:
        self.current = (self.current + direction) % len(self.places)
        body = self.query_one(DiffBody)
        body.scroll_to(y=max(0, self.places[self.current] - 2), animate=False)
        self._say_where()

    def action_version(self) -> None:
        self.show_version((self.shown + 1) % len(self.versions))

    def show_version(self, index: int) -> None:
        self.shown, self.current = index, 0
        self._show()
        self.query_one(DiffBody).scroll_home(animate=False)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.show_version(int((event.button.id or "version-0").removeprefix("version-")))
        self.query_one(DiffBody).focus()
