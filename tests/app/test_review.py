"""Home says what is due, `r` goes through it, and the result is kept."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, EXERCISE, MATCH, QUIZ, SEVERAL
from tutor.course.course import kind_of
from tutor.course.model import Item
from tutor.review import agenda
from tutor.widgets.desk import Desk

New = Callable[[], Desk]
SIZES = [(80, 24), (40, 12)]


def past(desk: Desk, *items: Item, days: float = 3) -> Desk:
    """As if `items` had been answered right so many days ago."""
    desk.progress.clock = lambda: time.time() - days * 86400
    for item in items:
        desk.progress.record_answer(item.id, kind_of(item), correct=True, score=1.0, seconds=60)
    desk.progress.clock = time.time
    return desk


@pytest.mark.parametrize("size", SIZES)
def test_home_puts_what_is_due_first_and_counts_it_by_module(new_desk: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with Session(past(new_desk(), QUIZ, SEVERAL), size) as s:
            assert "▶ Review: 2 questions (about" in s.text()
            assert "due 2" in s.text()
            await s.keys("enter")
            assert "Review 1/2, 2 left" in s.text()
            await s.keys("escape")
            assert "due 2" in s.text()
            await s.keys("c")
            assert "First a[i]" in s.text()

    drive(story)


@pytest.mark.parametrize("size", SIZES)
def test_r_goes_through_what_is_due_and_says_when_it_comes_back(new_desk: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        desk = past(new_desk(), QUIZ, SEVERAL)
        order = agenda(desk.course, desk.progress).due
        async with Session(desk, size) as s:
            await s.keys("r")
            for number, item in enumerate(order, 1):
                assert f"Review {number}/2" in s.text()
                if item == QUIZ:
                    await s.keys("1")
                    assert "✓ back in" in s.text()
                else:
                    await s.keys("space", "enter")  # one of two right ones
                    assert "✗ back tomorrow" in s.text()
                await s.keys("n")
            assert "1 of 2 right." in s.text()
            assert "Which of x[i]?" in s.text()
            assert "The next review is tomorrow (1 item)." in " ".join(s.text().split())
            await s.keys("escape")
            assert "Review:" not in s.text()
            assert desk.progress.resume() is None  # a review leaves the place in the course as it is

    drive(story)


def test_skipping_leaves_items_due_and_p_goes_back(new_desk: New) -> None:
    async def story() -> None:
        async with Session(past(new_desk(), QUIZ, SEVERAL)) as s:
            await s.keys("r", "n", "p")
            assert "Review 1/2, 2 left" in s.text()
            await s.keys("p")
            assert "This is the first item of the" in s.text()
            await s.keys("n", "n")
            assert "Nothing was answered." in s.text()
            assert "2 items still due" in s.text()

    drive(story)


def test_giving_up_in_a_review_counts_as_forgotten(new_desk: New) -> None:
    async def story() -> None:
        desk = past(new_desk(), BUG)
        async with Session(desk) as s:
            await s.keys("r", "s")
            assert "It counts as forgotten" in s.text()
            await s.keys("y")
            await s.until(lambda: desk.progress.cards()[BUG.id].lapses == 1)
            assert "✗ back tomorrow" in s.text()
            assert "The author's mend is shown" in s.text()

    drive(story)


def test_an_exercise_that_is_due_says_how_to_begin_again(new_desk: New) -> None:
    async def story() -> None:
        desk = past(new_desk(), EXERCISE)
        async with Session(desk) as s:
            await s.keys("r")
            await s.until_shown("x puts the stub back")
            assert not s.app.screen.query("Toast") and s.text().index("Due again") < s.text().index("Write kernel")

    drive(story)


def test_an_exercise_that_was_written_again_is_reviewed_and_the_old_file_is_not(new_desk: New) -> None:
    async def story() -> None:
        desk = new_desk()
        desk.workspace.file(EXERCISE.exercise).write_text("# right\n", encoding="utf-8")
        desk.progress.clock = lambda: time.time() - 5 * 86400
        desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0, detail={"sha256": "0" * 64})
        desk.progress.clock = time.time
        async with Session(desk) as s:
            await s.keys("r", "g")  # the stand-in grader calls every file 000…
            await s.until_shown("does not count as a review")
            assert not s.app.screen.query("Toast") and "vector_add: passed" in s.text()
            assert desk.progress.cards()[EXERCISE.id].reviews == 1
            assert "1 left" in s.text()
            desk.progress.transact(lambda database: database.execute("UPDATE attempt SET detail = '{}'"))
            await s.keys("g")
            await s.until(lambda: desk.progress.cards()[EXERCISE.id].reviews == 2)
            await s.until_shown("✓ back in")

    drive(story)


def test_when_nothing_is_due_r_says_when_it_will_be(new_desk: New) -> None:
    async def story() -> None:
        async with Session(new_desk()) as s:
            await s.keys("r")
            assert "Nothing is due yet" in s.text()
            past(s.desk, MATCH, days=0)
            await s.keys("r")
            await s.until(lambda: "in 2 days" in " ".join(s.text().split()))

    drive(story)


def test_stats_show_reviews_streak_and_concepts(new_desk: New) -> None:
    async def story() -> None:
        desk = past(new_desk(), QUIZ, days=1)
        past(desk, SEVERAL, days=0)
        async with Session(desk, (80, 60)) as s:
            await s.keys("t")
            assert "Nothing is due. Next review tomorrow (1 item)." in s.text()
            assert "2 answers, 1 today." in s.text()
            assert "Days in a row with an answer: 2, at most 2." in s.text()
            assert "60 s on average" in s.text()

    drive(story)


def test_a_full_disk_is_said_once_in_the_app_and_answers_go_on(new_desk: New) -> None:
    async def story() -> None:
        desk = new_desk()
        async with Session(desk) as s:
            desk.progress._connection.execute("PRAGMA query_only = ON")
            await s.open(QUIZ.id)
            await s.keys("1")
            await s.until_shown("can no longer be kept")
            assert desk.progress.state(QUIZ.id).passed
            await s.open(SEVERAL.id)
            await s.keys("space", "enter")
            assert len(desk.progress.notices) == 1
            assert QUIZ.id in (desk.progress.parting() or "")

    drive(story)
