"""Every action that has a key, from the BINDINGS of the app, the screens and the widgets: one definition of each."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.screen import Screen

from tutor.keymap import Action

AREAS = {  # in the order in which they are listed; others follow by name
    "app": "Everywhere",
    "home": "Home",
    "module": "A module's list",
    "item": "Every item",
    "lesson": "Lesson",
    "quiz": "Quiz",
    "bug": "Spot the bug",
    "match": "Match",
    "walkthrough": "Walkthrough",
    "open": "Open question",
    "exercise": "Exercise",
    "compiler": "Compiler view",
    "compiler-help": "Compiler view: help",
    "compiles": "Two compiles compared",
    "lines": "Lines of code",
    "drill": "Drill",
    "list": "Lists of answers",
    "ticks": "Lists to tick",
    "text": "Text",
    "code": "Code",
}


def area_words(area: str) -> str:
    return AREAS.get(area, area.replace("-", " ").capitalize())


@cache
def actions() -> tuple[Action, ...]:
    """Imports every screen and widget, so it takes some tenths of a second the first time."""
    found: dict[str, Action] = {}
    for owner in owners():
        for binding in owner.__dict__.get("BINDINGS", ()):
            if isinstance(binding, Binding) and binding.id:
                keys = tuple(key.strip() for key in binding.key.split(","))
                known = found.get(binding.id)
                if known is None:
                    found[binding.id] = Action(binding.id, binding.description, keys, _place(owner))
    order = list(AREAS)
    return tuple(sorted(found.values(), key=lambda one: order.index(one.area) if one.area in order else len(order)))


def owners() -> list[type[DOMNode]]:
    owners: dict[str, type[DOMNode]] = {}
    for package in ("tutor.screens", "tutor.widgets"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            for value in vars(import_module(module.name)).values():
                if isinstance(value, type) and issubclass(value, DOMNode) and value.__module__.startswith("tutor."):
                    owners[f"{value.__module__}.{value.__name__}"] = value
    return list(owners.values())


def _place(owner: type[DOMNode]) -> str:
    from tutor.widgets.pane import ItemPane

    if issubclass(owner, App):
        return "app"
    if issubclass(owner, Screen):
        return "screen"
    return "pane" if issubclass(owner, ItemPane) else "part"
