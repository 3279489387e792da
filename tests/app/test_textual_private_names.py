"""Private names of Textual's that the app's classes override or read: known, few, and still there."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re

import tutor

KNOWN = {
    "BaseApp": {"_exit"},
    "Palette": {"_action_command_list"},
    "CourseServer": {"_make_app", "_process_messages"},
    "BrowserSession": {"_open_app_process", "_process", "_stdin"},
    "CodeEditor": {"_delete_via_keyboard", "_replace_via_keyboard"},
}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def written_in(kind: type) -> set[str]:
    """Private names that the class's own source uses on `self` or `super()`, or defines."""
    found = set()
    for node in ast.walk(ast.parse(inspect.getsource(kind))):
        if isinstance(node, ast.Attribute):
            asked = node.value.func if isinstance(node.value, ast.Call) else node.value
            if isinstance(asked, ast.Name) and asked.id in ("self", "super"):
                found.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
    return {name for name in found if private(name)}


def names_of(kind: type) -> set[str]:
    """Private names of a class of Textual's: its methods, and what it sets on itself."""
    return {name for name in vars(kind) if private(name)} | set(
        re.findall(r"self\.(_[a-z]\w*)\s*(?::[^=\n]+)?=", inspect.getsource(kind))
    )


def test_every_private_name_of_textuals_that_is_used_is_known_and_still_there() -> None:
    used: dict[str, set[str]] = {}
    for found in pkgutil.walk_packages(tutor.__path__, "tutor."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            theirs = [base for base in kind.__mro__ if base.__module__.split(".")[0] in ("textual", "textual_serve")]
            if theirs and (names := written_in(kind) & set().union(*map(names_of, theirs))):
                used[kind.__name__] = names
    assert used == KNOWN
