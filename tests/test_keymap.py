"""The learner's own keys: what the file may say, and that every fault names file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tutor.keymap import Action, change, checked, key_fault, read, shown

ACTIONS = (
    Action("app.quit", "Quit", ("ctrl+q",), "app"),
    Action("home.review", "Review", ("r",), "screen"),
    Action("item.next", "Next", ("n",), "screen"),
    Action("item.back", "Back", ("escape",), "screen"),
    Action("exercise.grade", "Grade", ("g",), "pane"),
    Action("exercise.cancel", "Cancel", ("f7", "escape"), "pane"),
    Action("quiz.again", "Again", ("r",), "pane"),
    Action("list.cursor-down", "Down", ("j",), "part"),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.yaml"


def faults(file: Path, text: str) -> list[str]:
    file.write_text(text)
    return [fault.removeprefix(str(file)) for fault in checked(read(file), ACTIONS).faults]


def test_one_key_or_several_and_signs_by_themselves(file: Path) -> None:
    file.write_text('exercise.grade: [ctrl+g, ","]\nitem.next: "?"\nhome.review: R\n')
    found = checked(read(file), ACTIONS)
    assert found.faults == ()
    assert found.keymap == {
        "exercise.grade": "ctrl+g,comma", "item.next": "question_mark", "home.review": "R",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("item.next: n\nexercise.grad: x", ":2: no action exercise.grad; exercise.grade?"),
        ("item.next: pagdown", ":1: pagdown is no key: pagedown?"),
        ("item.next: crtl+n", ":1: crtl+n is no key: a combination is written ctrl+g"),
        ("\nitem.next: ctrl+m", ":2: ctrl+m cannot be used: terminals send it for Enter"),
        ("item.next:", ":1: item.next has no key"),
        ("item.next: x\nitem.next: y", ":2: item.next is in line 1 already"),
        ("exercise.grade: n", ":1: n is item.next (Next) already"),
        ("exercise.grade: ctrl+q", ":1: ctrl+q is app.quit (Quit) already"),
        ("quiz.again: x\nitem.next: j", ":2: j is list.cursor-down (Down) already"),
        ("exercise.grade: z\nitem.next: z", ":2: z is exercise.grade (Grade) already"),
        ("item.next: [a", ":2: not YAML"),
        ("- a", ":1: write lines such as  exercise.grade: ctrl+g"),
    ],
)
def test_a_fault_names_its_line_and_the_line_is_left_out(file: Path, text: str, said: str) -> None:
    told = faults(file, text)
    assert len(told) == 1 and told[0].startswith(said), told


@pytest.mark.parametrize(
    "text",
    [
        "exercise.grade: r",  # Review on Home is never live with it
        "exercise.cancel: escape",  # shared with Back as delivered
        "item.next: g\nexercise.grade: n",  # two that change places
    ],
)
def test_what_cannot_be_mistaken_is_no_clash(file: Path, text: str) -> None:
    assert faults(file, text) == []


def test_changing_a_line_keeps_the_others_and_their_comments(file: Path) -> None:
    change(file, "item.next", ("x",))
    file.write_text(file.read_text() + "home.review: [a,\n  b]  # mine\n")
    change(file, "item.next", ("ctrl+n", "comma"))
    change(file, "exercise.grade", ("f5",))
    change(file, "home.review", ())
    text = file.read_text()
    assert "ACTION: KEY" in text and "# mine" not in text
    assert read(file).keymap == {"item.next": "ctrl+n,comma", "exercise.grade": "f5"}


def test_names_of_keys() -> None:
    assert [key_fault(key) for key in ("+", "shift+f5", "é", "alt+x", "f24")] == [""] * 5
    assert key_fault("") and key_fault("f25") and key_fault("shift+")
    assert shown("ctrl+slash") == "ctrl+/" and shown("f6") == "F6"
