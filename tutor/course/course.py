"""The whole course as one value, with the look-ups that screens and commands need."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tutor.course.model import Exercise, Item, Module


class UnknownItem(KeyError):
    """No item has this id; the text names the nearest one."""

    def __init__(self, item_id: str, known: list[str]) -> None:
        near = difflib.get_close_matches(item_id, known, n=1, cutoff=0.5)
        advice = f"Did you mean {near[0]}?" if near else "`triton-prep list` shows every id."
        self.text = f"There is no item {item_id!r}. {advice}"
        super().__init__(self.text)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Course:
    modules: tuple[Module, ...]
    files: tuple[Path, ...] = ()  # where each module was read from

    @cached_property
    def _order(self) -> tuple[Item, ...]:
        return tuple(item for module in self.modules for item in module.items)

    @cached_property
    def _by_id(self) -> dict[str, Item]:
        return {item.id: item for item in self._order}

    @cached_property
    def _position(self) -> dict[str, int]:
        return {item.id: index for index, item in enumerate(self._order)}

    @cached_property
    def _module_by_item(self) -> dict[str, Module]:
        return {item.id: module for module in self.modules for item in module.items}

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Every id an item had before, with the one it has now."""
        return {alias: item.id for item in self._order for alias in item.aliases}

    @cached_property
    def _by_exercise(self) -> dict[str, Exercise]:
        return {item.exercise: item for item in self._order if isinstance(item, Exercise)}

    def items(self) -> tuple[Item, ...]:
        return self._order

    def current_id(self, item_id: str) -> str | None:
        """The id this item has now; None when the course no longer holds it."""
        if item_id in self._by_id:
            return item_id
        return self.aliases.get(item_id)

    def item(self, item_id: str) -> Item:
        current = self.current_id(item_id)
        if current is None:
            raise UnknownItem(item_id, [*self._by_id, *self._by_exercise, *(module.id for module in self.modules)])
        return self._by_id[current]

    def title_of(self, item_id: str) -> str:
        """Empty for an id that the course does not hold."""
        current = self.current_id(item_id)
        return self._by_id[current].title if current else ""

    def module_of(self, item_id: str) -> Module:
        return self._module_by_item[self.item(item_id).id]

    def module(self, module_id: str) -> Module:
        for module in self.modules:
            if module.id == module_id:
                return module
        raise UnknownItem(module_id, [module.id for module in self.modules])

    def exercise_item(self, slug: str) -> Exercise | None:
        return self._by_exercise.get(slug)

    def exercise_slugs(self) -> tuple[str, ...]:
        """Slugs in taught order."""
        return tuple(self._by_exercise)

    def after(self, item_id: str) -> Item | None:
        position = self._position[self.item(item_id).id] + 1
        return self._order[position] if position < len(self._order) else None

    def before(self, item_id: str) -> Item | None:
        position = self._position[self.item(item_id).id]
        return self._order[position - 1] if position else None


def kind_of(item: Item) -> str:
    return str(item.__struct_config__.tag)
