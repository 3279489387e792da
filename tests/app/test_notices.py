"""Notices: they hide no result, go with a key once they were read, and can be read again."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, BUG_LINE, EXERCISE, MENDED_LINE, WALK
from tests.app.test_drill import begin
from tests.app.test_editor import code, edit, learner_file
from tutor.course.loader import CourseErrors
from tutor.drill import report
from tutor.screens import drill_setup
from tutor.screens.notices import NoticesScreen

New = Callable[..., Session]
NOTICE = "Something else went wrong."


def say(s: Session) -> None:
    s.app.notify(NOTICE, severity="error", timeout=600, markup=False)


def toasts(s: Session) -> list[str]:
    return [toast._notification.message for toast in s.app.screen.query("Toast")]  # type: ignore[attr-defined]


def test_a_key_takes_away_what_was_read_and_not_what_has_just_come(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            say(s)
            await s.until(lambda: toasts(s) == [NOTICE])
            s.app.read_by = time.monotonic() + 600  # as if it had just come
            await s.keys("j")
            assert NOTICE in s.text()
            s.app.read_by = time.monotonic() - 1
            await s.keys("j")
            await s.until(lambda: not toasts(s))
            await s.app.run_action("notices")
            await s.until(lambda: isinstance(s.app.screen, NoticesScreen))
            assert NOTICE in s.text()

    drive(story)


def test_what_is_said_again_is_shown_and_kept_once_and_a_last_step_is_no_notice(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            for _ in range(3):
                say(s)
            await s.until(lambda: toasts(s) == [NOTICE])
            await s.open(WALK.id)
            await s.keys(*["right"] * 4)
            assert "Step 2 of 2   the last: n goes on" in s.text()
            assert [one.text for one in s.app.said] == [NOTICE]

    drive(story)


def test_a_verdict_is_hidden_by_nothing_that_was_said_before(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            learner_file(s).write_text("# fake: wrong_answer\n", encoding="utf-8")
            say(s)
            await s.until(lambda: toasts(s) == [NOTICE])
            await s.keys("g")
            await s.until_shown("wrong answer")
            await s.until(lambda: not toasts(s))
            await s.open(BUG.id)
            say(s)
            await s.until(lambda: toasts(s) == [NOTICE])
            await s.keys(*["down"] * (BUG_LINE - 1), "enter")
            s.app.screen.query_one("#mend").value = MENDED_LINE  # type: ignore[attr-defined]
            await s.keys("enter")
            await s.until_shown("Mended")
            await s.until(lambda: not toasts(s))

    drive(story)


def test_what_another_program_saved_is_said_above_the_text_and_the_result_is_free(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await edit(s, "a\n")
            await s.until(lambda: s.app.screen.query_one("#editor-view").is_attached)
            learner_file(s).write_text("# fake: wrong_answer\n", encoding="utf-8")
            await s.until_shown("Another program saved vector_add.py")
            assert not toasts(s) and code(s).text == "# fake: wrong_answer\n"
            assert s.text().index("Another program") < s.text().index("# fake")
            await s.keys("f6")
            await s.until_shown("Cases: ")
            assert "Another program" not in s.text() and not toasts(s)
            await s.app.run_action("notices")
            await s.until_shown("Another program saved")

    drive(story)


def test_an_editor_that_cannot_be_started_is_named_above_the_text(session: New, monkeypatch) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")

    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("e")
            await s.until_shown("this is the built-in")
            assert not toasts(s)

    drive(story)


def test_plans_that_cannot_be_read_are_said_where_a_plan_would_be_described(
    session: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise CourseErrors(["drills.yaml:3: no such plan"])  # type: ignore[list-item]

    monkeypatch.setattr(drill_setup, "load_plans", broken)

    async def story() -> None:
        async with session(size=(40, 12)) as s:
            await s.keys("d")
            await s.until_shown("drills.yaml:3:")
            assert not toasts(s)

    drive(story)


def test_a_scorecard_that_cannot_be_written_is_said_where_it_was_awaited(
    session: New, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(sitting: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "write_report", full)

    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            screen.sitting.finish()
            await screen._enter()
            await s.until_shown("The scorecard cannot be written")
            assert not toasts(s) and "Writing" not in s.text()

    drive(story)
