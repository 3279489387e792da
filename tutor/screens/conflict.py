"""Two versions of one file that cannot be joined: which goes on, while the other becomes a backup."""

from __future__ import annotations

import time

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from tutor.editing.differences import compared
from tutor.editing.edited_file import Conflict
from tutor.widgets.content import DIM_STYLE, plain, stack
from tutor.widgets.desk import key_of
from tutor.widgets.diff_rows import unified
from tutor.widgets.keys import KeyLine
from tutor.widgets.prose import Reading

GUARD_SECONDS = 1.0  # it comes up while someone types: what was meant for the text decides nothing
CHOICES = (("mine", "Keep mine", "m"), ("theirs", "Take theirs", "t"), ("both", "Both, with markers", "b"))


class ConflictScreen(ModalScreen[str | None]):
    BINDINGS = [
        Binding("m", "decide('mine')", "Mine", id="conflict.decide-mine"),
        Binding("t", "decide('theirs')", "Theirs", id="conflict.decide-theirs"),
        Binding(
            "b",
            "decide('both')",
            "Both",
            tooltip="One text with both, between markers as git writes them",
            id="conflict.decide-both",
        ),
        Binding("escape", "decide('')", "Later", key_display="Esc", id="conflict.decide"),
        Binding("left", "app.focus_previous", "Other", show=False, id="conflict.focus-previous"),
        Binding("right", "app.focus_next", "Other", show=False, id="conflict.other"),
    ]

    def __init__(self, name: str, conflict: Conflict) -> None:
        super().__init__()
        self.file, self.conflict = name, conflict
        self.opened = time.monotonic()

    def compose(self) -> ComposeResult:
        words = (
            f"Another program saved {self.file} while you changed the same lines here. Nothing is written until you "
            "choose, and whatever gives way is kept as a backup."
        )
        rows, _ = unified(compared(self.conflict.mine, self.conflict.theirs), around=1)
        with Vertical(classes="dialog"):
            yield Static(plain(words))
            yield Static(plain("- is yours, + is theirs", DIM_STYLE))
            with Reading(id="versions"):
                yield Static(stack(rows), classes="code-lines")
            with Horizontal(classes="buttons"):
                for name, label, usual in CHOICES:
                    key = key_of(self, f"conflict.decide-{name}", usual)
                    yield Button(plain(f"{label} ({key})"), id=name, compact=True)
        yield KeyLine()

    def on_mount(self) -> None:
        self.query_one("#mine").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        event.stop()
        self.action_decide(event.button.id or "")

    def action_decide(self, choice: str) -> None:
        if time.monotonic() - self.opened >= GUARD_SECONDS:
            self.dismiss(choice or None)
