"""The learner's own keys: `.triton-prep/keys.yaml`, one line an action. Read, checked, changed; no textual here."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

HEAD = "# Your own keys, as ACTION: KEY or ACTION: [KEY, KEY]. A line taken out gives the usual key back.\n"
NAMED = {
    "escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown", "up",
    "down", "left", "right", *(f"f{number}" for number in range(1, 25)),
}  # fmt: skip
MODIFIERS = ("ctrl", "shift", "alt")
# what terminals keep for themselves, or send for another key
NEVER = {
    "ctrl+s": "many terminals stop their output on it",
    "ctrl+z": "it suspends programs",
    "ctrl+c": "it copies, or interrupts",
    "ctrl+b": "tmux takes it",
    "ctrl+h": "terminals send it for Backspace",
    "ctrl+i": "terminals send it for Tab",
    "ctrl+j": "terminals send it for Enter",
    "ctrl+m": "terminals send it for Enter",
}
SHORTENED = {"reverse_solidus": "backslash", "solidus": "slash", "commercial_at": "at", "hyphen_minus": "minus",
             "plus_sign": "plus", "low_line": "underscore"}  # fmt: skip


def _punctuation() -> dict[str, str]:
    names = {sign: unicodedata.name(sign).lower().replace("-", "_").replace(" ", "_") for sign in string.punctuation}
    return {SHORTENED.get(name, name): sign for sign, name in names.items()}


PUNCTUATION = _punctuation()  # by the name that textual gives it
PRINTED = {"escape": "Esc", "enter": "Enter", "space": "Space", "tab": "Tab", "backspace": "Backspace", "delete": "Del",
           "pageup": "PgUp", "pagedown": "PgDn", "up": "↑", "down": "↓", "left": "←", "right": "→"}  # fmt: skip


@dataclass(frozen=True)
class Action:
    """Something that a key does. `place`: app, screen, pane (inside an item's screen) or part (inside any of them)."""

    id: str
    words: str
    keys: tuple[str, ...]
    place: str

    @property
    def area(self) -> str:
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Chosen:
    id: str
    keys: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class KeyFile:
    path: Path
    chosen: tuple[Chosen, ...] = ()
    faults: tuple[str, ...] = ()  # each names file and line

    @property
    def keymap(self) -> dict[str, str]:
        """As `App.set_keymap` takes it."""
        return {one.id: ",".join(one.keys) for one in self.chosen}

    def keys_of(self, action: Action) -> tuple[str, ...]:
        return next((one.keys for one in self.chosen if one.id == action.id), action.keys)


def key_fault(key: str) -> str:
    """What is wrong with a key's name; empty when it can be pressed."""
    if key in NEVER:
        return f"{key} cannot be used: {NEVER[key]}"
    *modifiers, base = key.split("+") if key != "+" else ("+",)
    if any(modifier not in MODIFIERS for modifier in modifiers):
        return f"{key} is no key: a combination is written ctrl+g, shift+f5, alt+x"
    if base in NAMED or base in PUNCTUATION or (len(base) == 1 and base.isprintable() and base != " "):
        return ""
    near = get_close_matches(base, [*NAMED, *PUNCTUATION], 1)
    return f"{key} is no key{f': {near[0]}?' if near else ': write g, G, ?, f6, ctrl+g, space, pageup'}"


def normal(key: str) -> str:
    """A sign by its name, since keymaps separate keys with commas."""
    return next((name for name, sign in PUNCTUATION.items() if sign == key), key)


def shown(key: str) -> str:
    """As a keyboard shows it."""
    names = PUNCTUATION | PRINTED
    return "+".join(names.get(part, part.upper() if part[1:].isdigit() else part) for part in key.split("+"))


def read(path: Path) -> KeyFile:
    """The file's lines, those with a fault left out. No file: no changes."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return KeyFile(path)
    except (OSError, UnicodeDecodeError) as error:
        return KeyFile(path, (), (f"{path} cannot be read: {error}",))
    try:
        root = yaml.compose(text, Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        return KeyFile(path, (), (f"{path}:{line}: not YAML: {error.problem}",))
    if root is None:
        return KeyFile(path)
    if not isinstance(root, yaml.MappingNode):
        return KeyFile(path, (), (f"{path}:1: write lines such as  exercise.grade: ctrl+g",))
    chosen: dict[str, Chosen] = {}
    faults = []
    for name, value in root.value:
        line = name.start_mark.line + 1
        given = value.value if isinstance(value, yaml.SequenceNode) else [value]
        keys = tuple(normal(str(one.value)) for one in given if isinstance(one, yaml.ScalarNode) and one.value)
        wrong = [fault for key in keys if (fault := key_fault(key))]
        if not keys or len(keys) != len(given):
            wrong = [f"{name.value} has no key: write {name.value}: g"]
        if name.value in chosen:
            wrong = [f"{name.value} is in line {chosen[name.value].line} already"]
        faults += [f"{path}:{line}: {fault}" for fault in wrong]
        if not wrong:
            chosen[name.value] = Chosen(name.value, keys, line)
    return KeyFile(path, tuple(chosen.values()), tuple(faults))


def checked(file: KeyFile, actions: Sequence[Action]) -> KeyFile:
    """Without the lines that name no action, or a key that another action has at the same time; each with a fault."""
    by_id = {action.id: action for action in actions}
    kept, faults = [], list(file.faults)
    for one in file.chosen:
        if one.id not in by_id:
            near = get_close_matches(one.id, by_id, 1)
            faults.append(f"{file.path}:{one.line}: no action {one.id}{f'; {near[0]}?' if near else ''}")
        else:
            kept.append(one)
    while accused := _first_clash(file.path, kept, by_id):
        one, words = accused
        kept.remove(one)  # with its usual key back, another line may be the one that clashes
        faults.append(words)
    return KeyFile(file.path, tuple(kept), tuple(faults))


def _first_clash(path: Path, kept: Sequence[Chosen], by_id: Mapping[str, Action]) -> tuple[Chosen, str] | None:
    """The first line with a key that an earlier line, or an action without a line, has."""
    file = KeyFile(path, tuple(kept))
    for place, one in enumerate(kept):
        later = {other.id for other in kept[place + 1 :]}
        taken = clash(by_id[one.id], one.keys, file, [action for action in by_id.values() if action.id not in later])
        if taken is not None:
            key, other = taken
            return one, f"{path}:{one.line}: {shown(key)} is {other.id} ({other.words}) already"
    return None


def clash(action: Action, keys: Iterable[str], file: KeyFile, actions: Iterable[Action]) -> tuple[str, Action] | None:
    """The first of the keys that another action has where this one is live, as things are in `file`."""
    for other in actions:
        if other.id != action.id and together(action, other):
            # keys that two actions share as delivered are meant: Esc ends the innermost thing
            new = [key for key in keys if key in file.keys_of(other) and not (key in action.keys and key in other.keys)]
            if new:
                return new[0], other
    return None


def together(one: Action, other: Action) -> bool:
    """Whether both can be live at once."""
    if one.area == other.area:
        return True
    places = {one.place, other.place}
    if "app" in places or one.area in EVERYWHERE or other.area in EVERYWHERE:
        return True
    if places <= {"pane", "part"}:
        return "part" in places
    around = one if one.place == "screen" else other
    return places != {"screen"} and around.area in ("item", "drill", "review")


EVERYWHERE = ("list", "ticks", "text", "code")  # parts of many screens


def change(path: Path, action: str, keys: Sequence[str]) -> None:
    """Sets the action's keys, or takes its line out when there are none; other lines stay. Raises OSError."""
    import yaml

    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    lines = text.splitlines(keepends=True)
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    new = [f"{action}: {_written(keys)}\n"] if keys else []
    for name, value in root.value if isinstance(root, yaml.MappingNode) else ():
        if name.value == action:
            first, last = name.start_mark.line, value.end_mark.line + bool(value.end_mark.column)
            lines[first:last] = new
            break
    else:
        if lines and not lines[-1].endswith("\n"):
            lines.append("\n")
        lines += new
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def _written(keys: Sequence[str]) -> str:
    import json

    return json.dumps(keys[0]) if len(keys) == 1 else "[" + ", ".join(map(json.dumps, keys)) + "]"
