"""The command palette: every key of the screen in words, and a jump to any item."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider, SearchIcon
from textual.types import IgnoreReturnCallbackType

from tutor.course.course import kind_of
from tutor.course.model import Exercise
from tutor.widgets.content import Content, inline, plain
from tutor.widgets.desk import desk, key_of
from tutor.widgets.keys import key_shown

EVERYWHERE = (
    ("Help", "help"),
    ("Glossary: what a word means ({glossary})", "glossary"),
    ("Settings", "settings"),
    ("Keys: see and change them", "keys"),
    ("Tour of a minute", "tour"),
    ("Notices so far", "notices"),
    ("Save this screen as text and as a picture", "save_screen"),
    ("Stats", "stats"),
    ("Home", "home"),
    ("Quit", "quit"),
)


class Palette(CommandPalette):
    def on_mount(self) -> None:
        self.query_one(SearchIcon).icon = ">"  # textual's magnifying glass is in few fonts

    def _action_command_list(self, action: str) -> None:
        with suppress(LookupError):  # textual turns a page of commands before they are laid out
            super()._action_command_list(action)


class KeyCommands(Provider):
    """What the keys of the screen do, for those who do not know them yet."""

    def _commands(self) -> Iterator[tuple[str, IgnoreReturnCallbackType]]:
        seen = {"command_palette"}
        for active in self.screen.active_bindings.values():
            binding = active.binding
            if not (active.enabled and binding.show and binding.description) or binding.action in seen:
                continue
            seen.add(binding.action)
            text = f"{binding.description} ({key_shown(self.screen, binding)})"
            yield text, partial(self.app.run_action, binding.action, active.node)
        key = key_of(self.screen, "app.glossary", "G")
        for text, action in EVERYWHERE:
            if action not in {name.removeprefix("app.") for name in seen}:
                yield text.format(glossary=key), partial(self.app.run_action, action)

    async def discover(self) -> Hits:
        for text, command in self._commands():
            yield DiscoveryHit(plain(text), command, text)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for text, command in self._commands():
            if (score := matcher.match(text)) > 0:
                yield Hit(score, plain(text), command, text)


class ItemCommands(Provider):
    """Jump to an item by its title, id or exercise name."""

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for item in desk(self.screen).course.items():
            text = f"{item.title} ({item.id})"
            score = max(matcher.match(text), matcher.match(item.exercise if isinstance(item, Exercise) else item.id))
            if score > 0:
                shown = Content.assemble(inline(item.title), plain(f"  {kind_of(item)}  {item.id}", "$foreground 72%"))
                yield Hit(score, shown, partial(self.app.run_action, f"open_item({item.id!r})"), text)
