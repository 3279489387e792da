"""The footer: one line of keys, the most needed ones when not all have room. Each can be clicked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from textual import events
from textual.binding import Binding
from textual.screen import Screen
from textual.widget import Widget

from tutor.widgets.content import Content, plain
from tutor.widgets.desk import key_of

# What goes first when there is no room; the others stay. The palette (^p) lists every key and is never left out.
LEAVES = {
    "outline": 9,
    "previous_item": 8,
    "comment": 8,
    "edit_here": 8,
    "diff": 7,
    "find": 7,
    "go_to_mark": 5,
    "copy": 8,
    "reset": 7,
    "undo": 6,
    "help": 6,
    "stats": 6,
    "drill": 5,
    "pause": 5,
    "flag": 5,
    "settings": 6,
    "more_lines": 6,
    "again": 5,
    "watch": 5,
    "compiler": 5,
    "see": 5,
    "solution": 5,
    "carry_on": 4,
    "hint": 4,
    "quit": 4,
    "next_item": 3,
    "back": 1,
    "dismiss": 1,
    "leave": 1,
    "command_palette": 0,
}
USUAL = 2
# shown as one thing, by their `key_display`, while all of them are the usual ones
SEVERAL = {
    "map.next-program": (("map.previous-program", "left"), ("map.next-program", "right")),
    "map.next-access": (("map.previous-access", "up"), ("map.next-access", "down")),
    "map.next-iteration": (("map.previous-iteration", "comma"), ("map.next-iteration", "full_stop")),
    "map.cell-right": (
        ("map.cell-left", "h"),
        ("map.cell-down", "j"),
        ("map.cell-up", "k"),
        ("map.cell-right", "l"),
    ),
}
LAST = ("back", "leave", "dismiss", "answer", "help", "quit", "command_palette")


@dataclass(frozen=True)
class Key:
    key: str
    shown: str
    words: str
    action: str

    @property
    def name(self) -> str:
        return self.action.removeprefix("app.").removeprefix("screen.").partition("(")[0]

    @property
    def width(self) -> int:
        return plain(f"{self.shown} {self.words}").cell_length


def fitting(keys: list[Key], width: int, leading: str = "") -> list[Key]:
    """As many keys as fit into `width` with a column between them; the order stays, and so does the leading action."""
    kept = list(keys)

    def rank(key: Key) -> int:
        return 0 if key.name == leading else LEAVES.get(key.name, USUAL)

    while len(kept) > 1 and sum(key.width for key in kept) + len(kept) - 1 > width:
        most = max(rank(key) for key in kept)
        kept.remove([key for key in kept if rank(key) == most][-1])
    return kept


class KeyLine(Widget):
    DEFAULT_CSS = """
    KeyLine {
        dock: bottom;
        height: 1;
        padding: 0 1;
        color: $footer-foreground;
        background: $footer-background;
        text-wrap: nowrap;
        text-overflow: ellipsis;
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._keys: list[Key] = []
        self._ends: list[tuple[int, int, Key]] = []  # columns from and to, for clicks

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._bindings_changed)

    def on_unmount(self) -> None:
        self.screen.bindings_updated_signal.unsubscribe(self)

    def _bindings_changed(self, screen: Screen[object]) -> None:
        if not (self.is_attached and screen is self.screen and screen.app.app_focus):
            return
        keys = self._active()
        if keys != self._keys:
            self._keys = keys
            self.refresh()

    def _active(self) -> list[Key]:
        found: dict[str, Key] = {}
        words_of = getattr(self.screen, "words_of_key", lambda action: "")
        for active in self.screen.active_bindings.values():
            binding: Binding = active.binding
            if binding.show and active.enabled and binding.description:
                shown = key_shown(self.screen, binding)
                key = Key(binding.key, shown, words_of(binding.action) or binding.description, binding.action)
                # of two keys for one action the plain one, which only a box to type in takes away
                if binding.action not in found or len(shown) < len(found[binding.action].shown):
                    found[binding.action] = key
        first = self._leading()
        return sorted(found.values(), key=lambda key: (key.name != first, key.name in LAST, _rank_last(key)))

    def _leading(self) -> str:
        leading = getattr(self.screen, "leading_action", None)
        return leading() if leading else ""

    def render(self) -> Content:
        width = self.content_size.width
        keys = fitting(self._keys, width, self._leading())
        gap = 2 if sum(key.width for key in keys) + 2 * (len(keys) - 1) <= width else 1
        self._ends, parts, column = [], [], 0
        for key in keys:
            parts.append(
                Content.assemble(
                    plain(key.shown, "bold $footer-foreground"), plain(f" {key.words}", "$footer-foreground 80%")
                )
            )
            self._ends.append((column, column + key.width, key))
            column += key.width + gap
        return Content(" " * gap).join(parts)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        column = event.get_content_offset_capture(self).x
        for start, end, key in self._ends:
            if start <= column < end:
                self.app.simulate_key(key.key)


def key_shown(screen: Screen[Any], binding: Binding) -> str:
    """While typing, a letter is a letter: a command is then shown with its other key."""
    several = SEVERAL.get(binding.id or "", ())
    if {action for action, _ in several} & set(getattr(screen.app, "own_keys", ())):
        return " ".join(key_of(screen, *action) for action in several)
    focused, shown = screen.focused, screen.app.get_key_display(binding)
    if focused is not None and len(shown) == 1 and focused.check_consume_key(shown, shown):
        return screen.app.get_key_display(replace(binding, key_display=None))
    return shown


def _rank_last(key: Key) -> int:
    return LAST.index(key.name) if key.name in LAST else 0
