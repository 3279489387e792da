"""The tour of the first start, and that Home has one next thing to do whatever has been done."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import COURSE, EXERCISE, LESSON, QUIZ
from tutor.course.course import kind_of
from tutor.screens.home import HomeScreen
from tutor.screens.tour import SETTING, TourScreen
from tutor.widgets.desk import Desk

New = Callable[..., Session]


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (140, 40)])
def test_the_tour_goes_over_the_real_screens_and_records_nothing(session: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        s = session(size=size)
        s.app.offers_tour = True
        async with s:
            await s.until_shown("First time here?")
            await s.keys("enter")
            await s.until_shown("tour, 1 of 6")
            for kind, item in (("A lesson", LESSON), ("A quiz", QUIZ), ("An exercise", EXERCISE)):
                await s.keys("enter")
                await s.until_shown(kind)
                await s.until(lambda item=item: s.app.screen_stack[-2].item is item)  # type: ignore[misc]
            await s.keys("p")
            await s.until_shown("A quiz")
            await s.keys("n", "n", "n")
            await s.until_shown("That is all")
            assert "⏎ Begin" in s.text()
            await s.keys("enter")
            await s.until(lambda: isinstance(s.app.screen, HomeScreen))
            assert s.desk.progress.states() == {} and s.desk.progress.resume() is None
            assert s.desk.progress.setting(SETTING)

    drive(story)


def test_esc_skips_it_and_help_plays_it_again(session: New) -> None:
    async def story() -> None:
        s = session(size=(110, 40))
        s.app.offers_tour = True
        async with s:
            await s.until_shown("First time here?")
            await s.keys("escape")
            await s.until(lambda: isinstance(s.app.screen, HomeScreen))
            await s.keys("question_mark", "t")
            await s.until_shown("tour, 1 of 6")
            await s.keys("escape")
            await s.until(lambda: not isinstance(s.app.screen, TourScreen))

    drive(story)


def test_home_offers_the_next_thing_when_everything_is_done(new_desk: Callable[[], Desk]) -> None:
    async def story() -> None:
        desk = new_desk()
        for item in COURSE.items():
            desk.progress.record_page(item.id, 0, finished=True)
            desk.progress.record_answer(item.id, kind_of(item), correct=True, score=1.0, seconds=1.0, detail={})
        async with Session(desk) as s:
            assert "▶ All done: a timed mock interview" in s.text()
            await s.keys("enter")
            await s.until_shown("Strict")

    drive(story)


def test_a_workspace_that_cannot_be_written_still_has_a_next_thing(new_desk: Callable[[], Desk]) -> None:
    async def story() -> None:
        desk = new_desk()
        desk.workspace.writable = False
        async with Session(desk, notices=("It cannot be written.",)) as s:
            assert "Start here" in s.text()
            await s.keys("enter", "escape", "r")
            assert "Continue" in s.text()

    drive(story)
