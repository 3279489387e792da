"""Every kind of item can be answered by keyboard and by mouse, and the answer is kept."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, EXERCISE, LESSON, MATCH, OPEN, PREDICT, QUIZ, SEVERAL, TWO_MENDS, WALK
from tutor.answers import shuffled_right

New = Callable[..., Session]


def test_a_lesson_is_paged_with_space_and_counts_as_read_on_its_last_page(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(LESSON.id)
            await s.keys("space")
            assert "Then a[i+1]" in s.text() and not s.desk.progress.state(LESSON.id).passed
            for _ in range(10):
                if "The last page ends with out[n]." not in s.text():
                    await s.keys("space")
            assert "The last page ends with out[n]." in s.text()
            assert s.desk.progress.state(LESSON.id).passed
            await s.keys("space")
            assert QUIZ.question.split("`")[0] in s.text()

    drive(story)


def test_a_quiz_is_answered_by_number_by_enter_and_by_a_click(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(QUIZ.id)
            await s.keys("2")
            assert "Not right" in s.text() and "kernel[grid] binds a grid" in s.text()
            assert not s.desk.progress.state(QUIZ.id).passed
            await s.keys("r", "j", "k", "enter")
            assert "Right." in s.text() and "Remember: kernel[grid] binds" in s.text()
            assert s.desk.progress.state(QUIZ.id).passed
            await s.keys("r")
            await s.click_text("It fails with")
            assert "Not right" in s.text()
            assert [attempt.correct for attempt in s.desk.progress.attempts(QUIZ.id)] == [False, True, False]

    drive(story)


@pytest.mark.parametrize("mouse", [False, True])
def test_a_quiz_with_several_answers_takes_ticks(session: New, mouse: bool) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(SEVERAL.id)
            if mouse:
                await s.click_text("1 x[i]")
                await s.click_text("3 y[j]")
                assert s.text().count("[x]") == 2
                await s.click_text("Answer")
            else:
                await s.keys("space", "j", "j", "space", "enter")
            assert "Right." in s.text()
            assert s.desk.progress.state(SEVERAL.id).passed

    drive(story)


@pytest.mark.parametrize("mouse", [False, True])
def test_a_bug_is_picked_mended_and_graded(session: New, mouse: bool) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(BUG.id)
            await s.keys("enter")
            assert "Line 1 is not where it goes wrong" in s.text()
            if mouse:
                await s.click_text("tl.store(")
            else:
                await s.keys(*["j"] * 12, "enter")
            assert "Line 13 it is" in s.text()
            await s.keys("backspace")
            await s.type(", mask=mask)")
            await s.click_text("Grade the mended code") if mouse else await s.keys("enter")
            await s.until_shown("Mended: every case passes.")
            assert "x + y, mask=mask)" in s.text() and BUG.explain in s.text()
            assert s.desk.progress.state(BUG.id).passed

    drive(story)


def test_a_wrong_mend_says_what_the_grader_found_and_can_be_tried_again(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(BUG.id)
            await s.keys(*["j"] * 12, "enter")
            await s.type("  # fake: wrong_answer")
            await s.keys("enter")
            await s.until_shown("Not yet: wrong answer")
            assert "In case n=1001" in s.text() and "a[i] is 3" in s.text()
            assert not s.desk.progress.state(BUG.id).passed
            await s.keys("end", *["backspace"] * len("wrong_answer"))
            await s.type("passed")
            await s.keys("enter")
            await s.until_shown("Mended")

    drive(story)


def test_a_bug_with_two_lines_is_graded_when_both_are_mended(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(TWO_MENDS.id)
            await s.keys("j", "enter", *["backspace"] * 2)
            await s.type("0]")
            await s.keys("enter")
            assert "1 more line to mend" in s.text() and "a = x[0]" in s.text()
            await s.keys("j", "enter")
            assert "several lines allowed" in s.text()
            await s.keys("ctrl+end", "enter")
            await s.type("b += a")
            await s.keys("f6")
            await s.until_shown("Mended")
            assert s.desk.progress.attempts(TWO_MENDS.id)[0].detail["edits"]["2"] == "    a = x[0]"

    drive(story)


def test_giving_up_on_a_bug_is_asked_and_recorded(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(BUG.id)
            await s.keys("s", "n")
            assert not s.desk.progress.state(BUG.id).gave_up
            await s.keys("s", "y")
            assert "x + y, mask=mask)" in s.text()
            assert s.desk.progress.state(BUG.id).gave_up and not s.desk.progress.state(BUG.id).passed

    drive(story)


@pytest.mark.parametrize("mouse", [False, True])
def test_matching_pairs_can_be_undone_and_checked(session: New, mouse: bool) -> None:
    async def story() -> None:
        order = shuffled_right(MATCH)
        async with session() as s:
            await s.open(MATCH.id)
            await s.keys("enter", "enter")
            assert "1 a grid[0]" in s.text()
            await s.keys("u")
            assert "1   grid[0]" in s.text()
            for left, pair in enumerate(MATCH.pairs):
                if mouse:
                    await s.click_text(pair.left)
                    await s.click_text(pair.right)
                else:
                    await s.keys("home", *["j"] * left, "enter", "home", *["j"] * order.index(left), "enter")
            await s.click_text("Check") if mouse else await s.keys("enter")
            assert "All right." in s.text()
            assert s.desk.progress.state(MATCH.id).passed

    drive(story)


def test_a_walkthrough_marks_lines_and_changes_its_table(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(WALK.id)
            assert "▶3" in s.text() and "offs[0] 0" in s.text()
            await s.keys("right")
            assert "▶4" in s.text() and "▸ x[i]    [1, 2][0]" in s.text()
            assert s.desk.progress.state(WALK.id).passed
            await s.keys("left")
            assert "▶3" in s.text()

    drive(story)


def test_a_prediction_shows_the_measurement(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(PREDICT.id)
            await s.click_text("nearly all")
            assert "Measured: 0.97 of copy[0]" in s.text() and "NVIDIA H200" in s.text()
            assert s.desk.progress.state(PREDICT.id).passed

    drive(story)


@pytest.mark.parametrize("mouse", [False, True])
def test_an_open_question_keeps_the_draft_and_the_score(session: New, mouse: bool) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(OPEN.id)
            await s.type("a[i] n")
            await s.click_text("Show the model") if mouse else await s.keys("f6")
            assert "offsets past x[n - 1]" in s.text()
            if mouse:
                await s.click_text("names x[n")
                await s.click_text("names other")
                await s.click_text("Record my score")
            else:
                await s.keys("space", "j", "space", "enter")
            assert "3 of 3 points" in s.text() and "And for y[i][j]?" in s.text()
            assert s.desk.progress.attempts(OPEN.id)[0].detail["draft"] == "a[i] n"

    drive(story)


def test_hints_come_one_by_one_and_are_recorded(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("h")
            assert "Hint 1 of 3" in s.text() and "Hint 2" not in s.text()
            await s.keys("h")
            assert "Hint 2 of 3" in s.text()
            assert s.desk.progress.state(EXERCISE.id).hints == 2
            await s.keys("escape")
            assert "Hint" in s.text() and "Hint 1 of 3" not in s.text()

    drive(story)


def test_an_edit_can_be_undone_and_a_line_can_become_several(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(TWO_MENDS.id)
            await s.keys("j", "enter", "f8", "enter")
            await s.type("b = 1")
            await s.keys("f6")
            assert "✎" in s.text() and "b = 1" in s.text()
            await s.keys("u")
            assert "✎" not in s.text() and "b = 1" not in s.text()

    drive(story)


def test_wrapped_options_go_on_under_their_own_text(session: New) -> None:
    async def story() -> None:
        async with session(size=(40, 24)) as s:
            await s.open(OPEN.id)
            await s.keys("f6")
            lines = s.text().split("\n")
            first = next(index for index, line in enumerate(lines) if "[ ] " in line)
            start = lines[first].index("[ ] ")
            following = lines[first + 1]
            assert following[start : start + 4] in ("    ", "[ ] ")

    drive(story)
