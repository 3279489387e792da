"""The built-in editor in the exercise and in a drill: typing, saving, other programs, the diff."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE
from tests.app.test_drill import PLAN, begin
from tutor.drill.plan import Phase, Pick, Plan
from tutor.screens.conflict import ConflictScreen
from tutor.screens.diff import DiffScreen
from tutor.screens.terminal import TritonPrepApp
from tutor.widgets.code_editor import CodeEditor
from tutor.widgets.editor import EditorView
from tutor.widgets.exercise import ExercisePane
from tutor.widgets.prose import CodeView

New = Callable[..., Session]
LIMIT = 60.0


@pytest.fixture(autouse=True)
def no_editor_of_the_learners(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)


def learner_file(s: Session) -> Path:
    return s.desk.workspace.file(EXERCISE.exercise)


def code(s: Session) -> CodeEditor:
    return next(found for screen in s.app.screen_stack for found in screen.query(CodeEditor))


async def open_with(s: Session, *keys: str) -> None:
    await s.keys(*keys)
    await s.until(lambda: isinstance(s.app.focused, CodeEditor), LIMIT)
    await s.pilot.pause()  # the cursor is put after the first layout


async def edit(s: Session, text: str, key: str = "E") -> CodeEditor:
    """Opens the editor on a file that holds `text`, the cursor at its end."""
    await s.open(EXERCISE.id)
    learner_file(s).write_text(text, encoding="utf-8")
    await open_with(s, key)
    code(s).move_cursor(code(s).document.end)
    return code(s)


async def until_saved(s: Session, text: str) -> None:
    await s.until(lambda: learner_file(s).read_text(encoding="utf-8") == text, LIMIT)


def test_what_is_typed_is_saved_graded_and_marked_where_it_is_wrong(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await edit(s, "import triton\n\n\ndef f(x):\n    pass\n", key="e")
            code(s).move_cursor((0, 0))
            await s.type("#")  # letters that are commands elsewhere are letters here
            await s.type("egnD")
            await until_saved(s, "#egnDimport triton\n\n\ndef f(x):\n    pass\n")
            await s.until_shown("saved")
            footer = s.text().split("\n")[-1]
            assert "F6 Grade" in footer and "Esc Leave" in footer and " n Next" not in footer
            code(s).move_cursor(code(s).document.end)
            await s.type("if x:")
            await s.keys("enter", "y", "enter")
            assert code(s).text.endswith("if x:\n    y\n    ")
            code(s).insert("# fake: wrong_answer\n# cause: missing_store_mask\n")
            await s.keys("f6")  # saves first, and shows the result
            await s.until_shown("wrong answer")
            await s.keys("f4")
            await s.until_shown("▶ Line 9: The store has no mask.")
            code(s).insert("\n\n", (0, 0))
            await s.until_shown("▶ Line 11: The store has no mask.")
            await s.keys("ctrl+g")
            assert code(s).cursor_location[0] == 10
            code(s).show("# right\n")
            await s.keys("f6")
            await s.until_shown("  n goes on")  # the result has the focus: n is no letter here
            assert "ends editing" not in s.text()
            await s.until(lambda: s.desk.progress.state(EXERCISE.id).passed, LIMIT)
            await s.keys("f4")
            assert "▶" not in s.text()

    drive(story)


def test_beside_the_result_on_a_wide_screen_the_editor_keeps_the_focus_and_says_how_to_go_on(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await edit(s, "# right\n")
            await s.keys("f6")
            await s.until_shown("Esc ends editing; then n goes on")
            assert s.app.focused is code(s)

    drive(story)


def test_enough_is_undone_and_tab_moves_the_lines_that_are_selected(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            area = await edit(s, "a = 1\nb = 2\n")
            area.select_all()
            await s.keys("tab")
            assert area.text == "    a = 1\n    b = 2\n"
            await s.keys("ctrl+underscore", "shift+tab")
            assert area.text == "# a = 1\n# b = 2\n"
            await s.keys("ctrl+z", "ctrl+z", "ctrl+z", "ctrl+z")
            assert area.text == "a = 1\nb = 2\n"
            await s.keys("ctrl+y")
            assert area.text == "    a = 1\n    b = 2\n"
            area.move_cursor((0, 0))
            await s.keys("f6", "f4", "f7")  # a text area would select with these
            assert area.selected_text == "" and area.text == "    a = 1\n    b = 2\n"

    drive(story)


def test_finding_goes_from_match_to_match_and_back_to_the_text(session: New) -> None:
    async def story() -> None:
        async with session(size=(40, 12)) as s:
            area = await edit(s, "mask = 1\nMask = 2\nx = mask\n")
            area.move_cursor((0, 0))
            await s.keys("ctrl+f")
            await s.type("mask")
            await s.until_shown("1 of 3")
            await s.keys("enter", "enter")
            await s.until_shown("3 of 3")
            assert area.selected_text == "mask" and area.cursor_location == (2, 8)
            await s.keys("down", "up")
            await s.until_shown("3 of 3")
            await s.type("s")
            await s.until_shown("not found")
            await s.keys("escape")
            assert s.app.focused is area

    drive(story)


def test_leaving_by_any_way_saves_at_once(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await edit(s, "a\n")
            await s.keys("b", "escape")
            assert learner_file(s).read_text() == "a\nb"
            await s.until(lambda: not s.app.screen.query(EditorView), LIMIT)
            assert s.app.screen.query_one("#code", CodeView).code == "a\nb"
            await open_with(s, "E")
            await s.until(lambda: code(s).cursor_location == (1, 1), LIMIT)  # where it was left
            await s.keys("c", "f2", "enter")  # to an item of the outline
            await s.until(lambda: not s.app.screen.query(EditorView), LIMIT)
            assert learner_file(s).read_text() == "a\nbc"
            await edit(s, "d\n")
            await s.keys("e", "ctrl+q")
        assert learner_file(s).read_text() == "d\ne"

    drive(story)


def test_a_closed_terminal_costs_nothing(session: New, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TritonPrepApp, "_end_at_once", lambda *_: None)

    async def story() -> None:
        async with session() as s:
            await edit(s, "a\n")
            code(s).insert("c", code(s).document.end)
            learner_file(s).write_text("b\na\n")  # at the same moment
            s.app._told_to_end(signal.SIGHUP)
            assert learner_file(s).read_text() == "b\na\nc"
            await s.until(lambda: s.app.return_value == 128 + signal.SIGHUP, LIMIT)
        assert learner_file(s).read_text() == "b\na\nc"

    drive(story)


def test_a_file_that_cannot_be_written_is_told_and_the_text_comes_back(
    session: New, new_desk: Callable[..., object]
) -> None:
    async def story() -> None:
        async with session() as s:
            await edit(s, "a\n")
            learner_file(s).chmod(0o444)
            await s.keys("b")
            await s.until_shown("NOT SAVED")
            await s.until(lambda: "it is read-only" in s.text().replace("\n", " "), LIMIT)
            await s.keys("escape")
            assert learner_file(s).read_text() == "a\n"
        async with Session(new_desk()) as s:  # type: ignore[arg-type]
            learner_file(s).chmod(0o644)
            await s.open(EXERCISE.id)
            await open_with(s, "E")
            assert code(s).text == "a\nb"
            await until_saved(s, "a\nb")

    drive(story)


def test_another_program_saves_the_file(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            area = await edit(s, "a\nb\nc\nd\n")
            s.app.screen.query_one(EditorView).diagnosed(2, "Wrong fill.")
            await s.until_shown("Line 2: Wrong fill.")
            learner_file(s).write_text("A\nb\nc\nd\n")
            await s.until(lambda: area.text == "A\nb\nc\nd\n", LIMIT)
            await s.until_shown("Another program saved")
            assert "Wrong fill." not in s.text()  # it was said of the text before
            await s.keys("ctrl+z")  # its text is an edit like others
            await until_saved(s, "a\nb\nc\nd\n")
            area.insert("e", area.document.end)
            learner_file(s).write_text("A\nb\nc\nd\n")  # before that was saved: both count
            await until_saved(s, "A\nb\nc\nd\ne")
            assert area.text == "A\nb\nc\nd\ne"

    drive(story)


@pytest.mark.parametrize(("key", "kept", "backup"), [("m", "a\nmine", "a\ntheirs"), ("t", "a\ntheirs", "a\nmine")])
def test_a_conflict_is_decided_by_the_learner(
    session: New, monkeypatch: pytest.MonkeyPatch, key: str, kept: str, backup: str
) -> None:
    guard = f"{ConflictScreen.__module__}.GUARD_SECONDS"
    monkeypatch.setattr(guard, 1e9)

    async def story() -> None:
        async with session() as s:
            area = await edit(s, "a\n")
            area.insert("mine", area.document.end)
            learner_file(s).write_text("a\ntheirs")
            await s.until(lambda: isinstance(s.app.screen, ConflictScreen), LIMIT)
            await s.until_shown("+ theirs")
            assert "- mine" in s.text()
            await s.keys(key)  # meant for the text
            assert isinstance(s.app.screen, ConflictScreen)
            monkeypatch.setattr(guard, 0.0)
            await s.keys("escape")  # later: nothing is written
            await s.until_shown("F6 or Esc asks again")
            assert learner_file(s).read_text() == "a\ntheirs" and area.text == "a\nmine"
            await s.keys("f6", key)
            await until_saved(s, kept)
            assert area.text == kept
            newest = s.desk.workspace.newest_backup(EXERCISE.exercise)
            assert newest is not None and newest.read_text() == backup

    drive(story)


def test_the_editor_that_is_named_cannot_take_the_terminal(session: New, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "true")

    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await edit(s, "a\n", key="e")
            await s.until_shown("No other program can take")
            await s.keys("escape")
            s.desk.progress.set_setting("editor", "built-in")
            await s.until(lambda: not s.app.screen.query(EditorView), LIMIT)
            await open_with(s, "e")

    drive(story)


def test_a_file_that_is_no_text_is_not_opened(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            learner_file(s).write_bytes(b"a\xff")
            await s.keys("E")
            await s.until_shown("is not UTF-8 text")
            assert not s.app.screen.query(EditorView)

    drive(story)


@pytest.mark.parametrize("size", [(80, 24), (140, 40)])
def test_the_diff_shows_the_solution_only_when_it_may_be_seen(session: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            await s.open(EXERCISE.id)
            stub = learner_file(s).read_text()
            learner_file(s).write_text(stub.replace("    pass\n", "    x = mine[0]\n"))
            await s.keys("D")
            screen = s.app.screen
            assert isinstance(screen, DiffScreen)
            await s.until_shown("change 1 of 1")
            assert "-     pass" in s.text() and "+     x = mine[0]" in s.text()
            assert [version.name for version in screen.versions] == ["stub"] and "after a pass" in s.text()
            await s.keys("n", "p", "escape")
            s.desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0)
            await s.keys("D", "v")
            await s.until_shown("- is the course's solution")
            await s.keys("escape")
            assert s.app.screen.query(ExercisePane)

    drive(story)


KERNEL = Plan(
    id="drills.plan.kernel",
    name="kernel",
    title="A kernel",
    about="One.",
    hire=PLAN.hire,
    phases=(
        Phase(name="kernel", minutes=5, script="Write it.", picks=(Pick(kinds=("exercise",)),), grading_runs=1),
        Phase(name="more", minutes=5, script="More.", picks=(Pick(kinds=("quiz",)),)),
    ),
)


def test_in_a_drill_the_time_locks_what_was_typed(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            s.desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0)
            s.desk.workspace.keep_backup(EXERCISE.exercise, b"# solved before the drill\n")
            screen = await begin(s, strict=True, plan=KERNEL)
            await s.keys("n", "E")
            await s.until(lambda: isinstance(s.app.focused, CodeEditor), LIMIT)
            assert screen.asked is not None
            task, file = screen.asked, screen.sitting.file(screen.asked)
            code(s).show("# fake: wrong_answer\n# cause: missing_store_mask\n")
            await s.keys("f6")
            await s.until_shown("wrong answer")
            assert screen.sitting.runs_left() == 0
            await s.keys("f4")
            assert "The store has no mask" not in s.text()  # a diagnosis is a hint
            await s.keys("escape")
            await s.until(lambda: not screen.query(EditorView), LIMIT)
            await s.keys("D")
            await s.until(lambda: isinstance(s.app.screen, DiffScreen), LIMIT)
            assert [version.name for version in s.app.screen.versions] == ["stub"]  # type: ignore[attr-defined]
            await s.keys("escape")
            await open_with(s, "E")
            code(s).show("# in time\n")
            await s.until(lambda: screen.sitting.state.sources.get(task.id) == "# in time\n", LIMIT)
            screen.sitting.state.anchor.elapsed += 320.0  # the time was up some seconds ago
            code(s).show("# late\n")
            await s.until(lambda: screen.sitting.state.phase == 1, LIMIT)
            await s.until(lambda: not screen.query(EditorView), LIMIT)
            assert file.read_text() == "# late\n"  # kept, and not counted
            assert screen.sitting.state.sources[task.id] == "# in time\n"

    drive(story)


def test_ending_a_phase_hands_in_what_was_typed_just_now(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s, strict=True, plan=KERNEL)
            await s.keys("n", "E")
            await s.until(lambda: isinstance(s.app.focused, CodeEditor), LIMIT)
            assert screen.asked is not None
            task = screen.asked
            await s.keys("ctrl+n")
            await s.until_shown("End the phase")
            code(s).show("# in time\n")
            await s.keys("y")
            await s.until(lambda: screen.sitting.state.phase == 1, LIMIT)
            assert screen.sitting.state.sources[task.id] == "# in time\n"

    drive(story)


def test_while_a_mend_is_typed_the_footer_names_the_key_that_works(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            await s.keys("n")
            assert screen.asked is not None and screen.asked.kind == "bug"
            assert "n Next" in s.text().split("\n")[-1]
            await s.keys("enter")
            await s.until(lambda: s.app.focused is not None and s.app.focused.id == "mend", LIMIT)
            footer = s.text().split("\n")[-1]
            assert "^n Next" in footer and " n Next" not in footer

    drive(story)
