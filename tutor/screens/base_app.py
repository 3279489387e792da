"""What the app is apart from the course: colours, motion, the learner's own keys, notices, screens that close once."""

from __future__ import annotations

import datetime
import os
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from textual import events
from textual._context import active_message_pump
from textual.actions import ActionParseResult
from textual.app import App
from textual.await_complete import AwaitComplete
from textual.binding import Binding
from textual.dom import DOMNode
from textual.message_pump import MessagePump
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.widget import Widget

from tutor.themes import NO_COLOUR_THEME, OWN

if TYPE_CHECKING:
    from tutor.keymap import KeyFile


SHORTEST_SECONDS = 5.0  # that a notice is shown, unless a key is pressed


def reading_seconds(text: str) -> float:
    """For a person who looks up first; about four words a second."""
    return 1 + len(text.split()) / 4


@dataclass(frozen=True)
class Said:
    """A notice, kept to be read again."""

    at: datetime.datetime
    text: str


class BaseApp(App[int]):
    @property
    def keys_path(self) -> Path:
        raise NotImplementedError

    def __init__(self) -> None:
        colourless = bool(os.environ.get("NO_COLOR"))
        if not colourless:
            os.environ.pop("NO_COLOR", None)  # set but empty means nothing, but textual looks only whether it is set
        super().__init__(ansi_color=True if colourless else None)
        self.own_keys: dict[str, str] = {}
        self.said: deque[Said] = deque(maxlen=100)
        self.read_by = 0.0  # by time.monotonic(): when the notices that are shown have been read; 0: none is
        self.shown_until = 0.0  # the newest one
        for theme in OWN:
            self.register_theme(theme)
        if colourless:
            self.theme = NO_COLOUR_THEME

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        """A blinking cursor is motion too, and bytes over SSH."""
        if self.animation_level == "none" and hasattr(event.widget, "cursor_blink"):
            event.widget.cursor_blink = False

    # notices: they cover what is below, so the next key takes those away that have been read

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        text, now = f"{title}: {message}" if title else message, time.monotonic()
        if self.read_by and now < self.shown_until and self.said and self.said[-1].text == text:
            return  # it is there already
        self.note(text)
        seconds = reading_seconds(message)
        timeout = timeout or max(SHORTEST_SECONDS, 2 * seconds)
        self.read_by, self.shown_until = max(self.read_by, now + seconds), now + timeout
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def note(self, text: str) -> None:
        """Keeps what is said where it covers nothing, beside the notices."""
        self.said.append(Said(datetime.datetime.now(), text))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key) and not event.is_forwarded and 0 < self.read_by <= time.monotonic():
            self.clear_notifications()
        await super().on_event(event)

    def clear_notifications(self) -> None:
        self.read_by = 0.0
        super().clear_notifications()

    # the learner's own keys

    def use_keys(self, file: KeyFile) -> None:
        self.own_keys = file.keymap
        self.set_keymap(self.own_keys)
        for screen in self.screen_stack:  # what is shown already names the keys of before
            getattr(screen, "name_keys", lambda: None)()

    def key_of(self, action: str, usual: str) -> str:
        """The key to name in a text, as it is on the keyboard."""
        from tutor.keymap import shown

        return shown(self.own_keys.get(action, usual).partition(",")[0])

    def get_key_display(self, binding: Binding) -> str:
        """For footers and palette: F4 as it is on the keyboard."""
        text = super().get_key_display(binding)
        return text.upper() if text[:1] == "f" and text[1:].isdigit() else text

    def read_keys(self) -> None:
        """Before the first paint; whether the lines name real actions is checked after it."""
        if self.keys_path.exists():
            from tutor.keymap import read

            self.use_keys(read(self.keys_path))

    def check_keys(self) -> None:
        """Knowing every action means importing every screen."""
        if not self.keys_path.exists():
            return
        from tutor.keymap import checked, read
        from tutor.screens.actions import actions

        file = checked(read(self.keys_path), actions())
        self.use_keys(file)
        for fault in file.faults:
            self.notify(fault, title="A key that is not used", severity="warning", timeout=20, markup=False)

    # keys that were typed ahead reach screens that have just closed; nothing more may close or open for them

    def _has_left(self, node: MessagePump | DOMNode | None) -> bool:
        if isinstance(node, Widget) and not isinstance(node, Screen):
            node = next((one for one in node.ancestors if isinstance(one, Screen)), None)
            if node is None:  # taken out of its screen
                return True
        return isinstance(node, Screen) and node not in self.screen_stack

    async def run_action(
        self,
        action: str | ActionParseResult,
        default_namespace: DOMNode | None = None,
        namespaces: Mapping[str, DOMNode] | None = None,
    ) -> bool:
        if self._exit or self._has_left(default_namespace):
            return False
        return await super().run_action(action, default_namespace, namespaces)

    def pop_screen(self) -> AwaitComplete:
        if len(self.screen_stack) <= 1 or self._has_left(active_message_pump.get(None)):
            return AwaitComplete.nothing()
        return super().pop_screen()
