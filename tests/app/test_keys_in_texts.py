"""Where a text names a key, it is the learner's: nothing in the app spells out a key that can be changed."""

from __future__ import annotations

import ast
import itertools
import re
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tutor
from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, BUG_LINE, COURSE, EXERCISE, LESSON, MATCH, OPEN, QUIZ, SEVERAL
from tests.app.test_access_map import stored
from tests.app.test_drill import PLAN
from tutor.drill.opening import Wanted
from tutor.keymap import KeyFile, checked, read, shown
from tutor.screens.access_map import AccessMapScreen
from tutor.screens.actions import actions
from tutor.screens.compiler_legend import LegendScreen
from tutor.screens.confirm import ConfirmScreen
from tutor.widgets.keys import KeyLine

New = Callable[..., Session]
SOURCES = [*Path(tutor.__path__[0]).glob("screens/*.py"), *Path(tutor.__path__[0]).glob("widgets/*.py")]
# keys of textual's own boxes, buttons and lists, which nobody can change, and the dialog that takes any key
FIXED = {
    "Enter hands it in, ",
    "Enter keeps it, ",
    "Enter next, ",
    "All paired: Enter checks, ",
    "Press the new key. Esc leaves it as it is, Backspace gives the usual key back.",
}
NAMED = re.compile(
    r"\b(F\d\d?|Esc|Enter|Space)\b|\b[Cc]trl\+\w|\^[a-y]\b"
    r"|(?:^|[\s(])[b-zB-HJ-Z?] (?:opens|grades|goes|shows|starts|tries|brings|switches|puts|explains|on Home|or )"
    r"|\([a-zA-Z?]\)"
)


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """What the file says, without docstrings, bindings, and `("an.action", "its usual key")`."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    left_out: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            left_out.add(id(body[0].value))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Binding":
            left_out |= {id(part) for part in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            if " " in node.value:  # else it is no text but a key, an id, a file
                yield node.lineno, node.value


def pairs_of(file: Path) -> Iterator[tuple[int, str, str]]:
    """Every action that is written with a key beside it, and that key; what a binding calls is an action of textual's."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        call = isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "Binding")
        parts = node.elts if isinstance(node, ast.Tuple) else node.args if call else []
        for one, other in itertools.pairwise(parts):
            if isinstance(one, ast.Constant) and isinstance(other, ast.Constant):
                if re.fullmatch(r"[a-z-]+\.[a-z-]+", str(one.value)) and str(one.value).split(".")[0] in AREAS:
                    yield one.lineno, str(one.value), str(other.value)


AREAS = {action.area for action in actions()}


def test_no_text_spells_out_a_key_that_can_be_changed() -> None:
    found = [
        f"{file.name}:{line}: {text!r}"
        for file in SOURCES
        for line, text in texts_of(file)
        if NAMED.search(text) and text not in FIXED
    ]
    assert found == []


def test_the_key_beside_an_action_is_the_one_that_it_has_as_delivered() -> None:
    usual = {action.id: action.keys for action in actions()}
    found = [(file.name, *pair) for file in SOURCES for pair in pairs_of(file)]
    assert len(found) > 60
    wrong = [one for one in found if one[3] not in usual.get(one[2], ())]
    assert wrong == []


def others() -> dict[str, str]:
    """A key for every action that no action has as delivered."""
    held = ("alt", "ctrl+alt", "shift+alt", "ctrl+shift+alt")
    signs = [f"{keys}+{sign}" for keys in held for sign in string.ascii_letters + string.digits]
    return {action.id: key for action, key in zip(actions(), signs, strict=False)}


@pytest.fixture
def new(tmp_path: Path) -> dict[str, str]:
    """Every key changed; as texts show them."""
    file = tmp_path / "workspace" / ".triton-prep" / "keys.yaml"
    file.parent.mkdir(parents=True)
    mine = others()
    assert len(mine) == len(actions()) == len(set(mine.values()))
    file.write_text("".join(f"{action}: {key}\n" for action, key in mine.items()), encoding="utf-8")
    used = checked(read(file), actions())
    assert isinstance(used, KeyFile) and used.faults == () and len(used.chosen) == len(mine)
    return {action: shown(key) for action, key in mine.items()}


def old_in_footer(s: Session) -> list[str]:
    """Every new key has alt in it; numbers are nobody's to change."""
    keys = s.app.screen.query_one(KeyLine)._active()
    return [f"{key.shown} {key.words}" for key in keys if "alt" not in key.shown and not key.key.isdigit()]


def test_with_every_key_changed_no_screen_names_an_old_one(session: New, new: dict[str, str]) -> None:
    async def story() -> None:
        async with session(size=(100, 40)) as s:  # narrow: no second column between the lines of a text

            def says(*words: str) -> None:
                text = " ".join(s.text().split())
                for word in words:
                    assert word in text, f"{word!r} is not in\n{s.text()}"
                left = [found[0] for found in NAMED.finditer(text.replace("Enter hands it in, ", ""))]
                assert [word for word in left if word.strip("( )") in ("Esc", "Space", "Enter") or word[0] == "F"] == []
                assert old_in_footer(s) == []

            says(f"{new['list.select']} opens what", f"{new['item.next']} goes on", f"{new['home.help']} explains")
            await s.open(LESSON.id)
            says("page 1 of 3")
            await s.open(QUIZ.id)
            says()
            await s.open(SEVERAL.id)
            says(f"then {new['ticks.hand-in']}.")
            await s.open(MATCH.id)
            await s.open(OPEN.id)
            says(f"then {new['open.reveal']} shows a model answer")
            await s.open(BUG.id)
            says(f"{new['list.select']} or a click picks it")
            s.app.screen.pane.pick(BUG_LINE)  # type: ignore[attr-defined]
            await s.pilot.pause()
            says(f"{new['bug.more-lines']} allows several lines")
            await s.open(EXERCISE.id)
            views = [f"{new[f'exercise.view-{name}']} {name.title()}" for name in ("task", "code", "result")]
            pane = s.app.screen.pane  # type: ignore[attr-defined]
            pane.action_view("result")
            await s.pilot.pause()
            says(*views, f"{new['exercise.edit']} opens an editor, {new['exercise.grade']} grades")
            await pane.action_edit_here()
            pane.action_grade()
            pane.action_view("result")
            await s.until_shown(f"{new['item.next']} goes on")
            says(
                f"{new['item.solution']} shows the course",
                f"{new['exercise.view-after']} says what an interviewer asks",
            )
            pane.action_view("code")
            pane.editor.action_find()
            pane.query_one("#find").value = ""
            await s.until_shown(f"Enter next, {new['editor.leave']} closes")

    drive(story)


def test_with_every_key_changed_no_dialog_names_an_old_one(session: New, new: dict[str, str]) -> None:
    async def story() -> None:
        async with session(size=(140, 60)) as s:
            await s.app.push_screen(ConfirmScreen("Sure?"))
            await s.until_shown(f"Yes ({new['question.yes']})")
            assert f"Cancel ({new['question.no']})" in s.text()
            await s.app.push_screen(LegendScreen())
            await s.until_shown(f"{new['compiler.next-marked']} {new['compiler.marked-before']} ")
            assert "Esc" not in s.text() and "Tab " not in s.text()
            for action, words in (
                ("help", f"{new['list.select']} opens one"),
                ("tour", f"{new['home.carry-on']}. Below"),
                ("settings", f"{new['settings.dismiss']} closes"),
                ("keys", f"{new['list.select']} changes a key"),
                ("drill", f"({new['drill-setup.strict']} switches)"),
            ):
                await s.app.run_action(action)
                await s.until(lambda words=words: words in " ".join(s.text().split()))  # type: ignore[misc]
            s.app._start_drill(Wanted(PLAN, 1, strict=False))
            await s.until_shown(f"{new['drill.next']} begins")
            s.app.screen.action_back()  # type: ignore[attr-defined]
            await s.until_shown(f"{new['home.drill']} on Home comes back to it")

    drive(story)


def test_a_footer_that_stands_for_several_keys_names_them_when_one_is_changed(
    session: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "workspace" / ".triton-prep" / "keys.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("map.cell-left: u\nmap.back: f4\n", encoding="utf-8")

    async def story() -> None:
        async with session(size=(140, 40)) as s:
            screen = AccessMapScreen("vector_add", tmp_path / "x.py")
            monkeypatch.setattr(screen, "action_again", lambda: screen._arrived(stored("overrun")))
            await s.app.push_screen(screen)
            await s.until_shown("u j k l Cell")
            assert "F4 Back" in s.text() and "←→ Program" in s.text() and "hjkl" not in s.text()

    drive(story)


async def change(s: Session, action: str, key: str) -> None:
    """As a learner does, above the screen that is open."""
    below = s.app.screen
    await s.app.run_action("keys")
    await s.until_shown("changes a key")
    listed = s.app.screen.query_one("#actions")
    listed.highlighted = listed.get_option_index(action)  # type: ignore[attr-defined]
    await s.keys("enter", key)
    await s.until_shown(shown(key))
    await s.keys("escape")
    await s.until(lambda: s.app.screen is below)


def test_a_result_takes_a_key_that_is_changed_above_it(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.open(EXERCISE.id)
            file = s.desk.workspace.file(EXERCISE.exercise)
            await s.until_shown("g grades the file")
            await change(s, "exercise.grade", "f10")
            await s.until_shown("F10 grades the file")
            file.write_text(f"# fake: wrong_answer\n# cause: no_mask\n# see: {BUG.id}\n", encoding="utf-8")
            await s.keys("f10")
            await s.until_shown(f"More in {BUG.id} ({BUG.title}): l opens it")
            file.write_text("# mended\n", encoding="utf-8")
            await s.until_shown("changed since: F10 grades it again")
            await change(s, "exercise.see", "f12")
            await change(s, "exercise.grade", "f11")
            await s.until_shown(f"({BUG.title}): F12 opens it")
            await s.until_shown("changed since: F11 grades it again")
            await s.keys("f11")
            await s.until_shown("n goes on")
            await change(s, "item.next", "f10")
            await change(s, "item.solution", "f9")
            await s.until_shown("F10 goes on")
            assert "F9 shows the course's own solution" in s.text()

    drive(story)


def test_the_page_between_phases_takes_a_key_that_is_changed_above_it(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            s.app._start_drill(Wanted(PLAN, 1, strict=False))
            await s.until_shown("n begins")
            await change(s, "drill.next", "f10")
            await s.until_shown("F10 begins")
            screen: Any = s.app.screen
            for task in screen.sitting.tasks():
                screen.sitting.hand_in(task, {"lines": [1]}, 0.0)
            await screen._next_open()
            await s.until_shown("F10 ends the phase")
            await change(s, "drill.next", "f12")
            await s.until_shown("F12 ends the phase")
            await screen.show_task(screen.sitting.tasks()[0])
            await s.until_shown("F12 goes on")
            await change(s, "drill.next", "f10")
            await s.until_shown("F10 goes on")

    drive(story)


def test_the_views_of_an_exercise_take_a_key_that_is_changed_above_them(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            assert "F4 Code" in s.text()
            await change(s, "exercise.view-code", "f10")
            await s.until_shown("F10 Code")
            assert COURSE.item(EXERCISE.id) is s.app.screen.item  # type: ignore[attr-defined]

    drive(story)
