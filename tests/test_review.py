"""What is due and in which order, mastery, streaks and best times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tests.app.sample_course import BUG, COURSE, EXERCISE, MATCH, PREDICT, QUIZ, SEVERAL
from tutor.course.course import Course, kind_of
from tutor.course.model import Item, Module, Quiz
from tutor.mastery import best_times, concepts, streak
from tutor.progress import Progress, minutes_of
from tutor.review import agenda, day_words, due_by_module, load_ahead, next_best, scheduled_cards
from tutor.standing import standing

NOON = datetime(2026, 3, 2, 12).timestamp()
Answer = Callable[..., None]


class Learner:
    """Answers on chosen days; `on(day)` moves the clock."""

    def __init__(self, course: Course = COURSE) -> None:
        self.course = course
        self.now = NOON
        self.progress = Progress.open(None, aliases=course.aliases, minutes=minutes_of(course), clock=lambda: self.now)

    def on(self, day: float) -> Learner:
        self.now = NOON + day * 86400
        return self

    def answers(self, item: Item, correct: bool = True, **more: object) -> Learner:
        values = {"score": float(correct), "seconds": 60.0, **more}
        self.progress.record_answer(item.id, kind_of(item), correct=correct, **values)  # type: ignore[arg-type]
        return self


def test_what_was_answered_comes_back_and_exercises_come_last() -> None:
    learner = Learner()
    for item in (EXERCISE, QUIZ, BUG, MATCH):
        learner.answers(item)
    assert agenda(COURSE, learner.progress).due == ()
    assert agenda(COURSE, learner.progress).next_words == "in 2 days (Wed 4 Mar) (4 items)"
    day = agenda(COURSE, learner.on(2).progress)
    assert set(day.questions) == {QUIZ, BUG, MATCH}
    assert day.due[-1] == EXERCISE
    assert day.words == "3 questions (about 6 min) and 1 exercise (about 2 min)"
    assert due_by_module(COURSE, learner.progress) == {"m01": 4}


def many(count: int) -> Course:
    items = tuple(
        Quiz(id=f"m01.quiz.n{number:02}", title="t", question="q", options=QUIZ.options, concept="masking")
        for number in range(count)
    )
    return Course((Module(id="m01", title="t", blurb="b", probes="p", items=items),))


def test_the_order_is_drawn_from_the_day_and_stays_as_items_are_done() -> None:
    course = many(20)
    learner = Learner(course)
    for item in course.items():
        learner.answers(item)
    first = agenda(course, learner.on(2).progress).due
    assert first != course.items()
    assert agenda(course, learner.progress).due == first
    learner.answers(first[3])
    assert agenda(course, learner.progress).due == first[:3] + first[4:]
    learner.on(3)
    assert [item for item in agenda(course, learner.progress).due if item != first[3]] != list(first[:3] + first[4:])


def test_a_limit_takes_what_is_most_likely_forgotten() -> None:
    course = many(6)
    learner = Learner(course)
    for day, item in enumerate(course.items()):
        learner.on(day).answers(item, correct=day == 4)
    day = agenda(course, learner.on(6).progress, limit=3)
    assert {item.id for item in day.due} == {f"m01.quiz.n0{number}" for number in range(3)}
    assert day.left_over == 3


def test_the_day_begins_at_midnight_not_after_so_many_hours() -> None:
    learner = Learner().on(0.4).answers(QUIZ, correct=False)  # 21:36
    assert agenda(COURSE, learner.progress).due == ()
    assert agenda(COURSE, learner.on(0.8).progress).due == (QUIZ,)  # 07:12 the next morning


def test_items_that_left_the_course_or_cannot_be_marked_are_never_due() -> None:
    learner = Learner()
    learner.progress.record_answer("m01.quiz.gone", "quiz", correct=False, score=0.0)
    learner.progress.record_answer("m01.open.mask", "open", correct=False, score=0.0)
    assert agenda(COURSE, learner.on(30).progress).due == ()


def test_what_is_due_comes_before_what_is_new() -> None:
    learner = Learner().answers(QUIZ)
    status = standing(COURSE, learner.progress)
    assert next_best(agenda(COURSE, learner.progress), status).kind == "item"
    best = next_best(agenda(COURSE, learner.on(2).progress), status)
    assert (best.kind, best.words) == ("review", "Review 1 question (about 2 min)")


def test_mastery_is_the_last_score_times_the_chance_of_recall_over_all_items() -> None:
    course = many(4)
    learner = Learner(course)
    learner.answers(course.items()[0]).answers(course.items()[1], correct=False, score=0.5)
    (concept,) = concepts(course, learner.progress)
    assert (concept.mastery, concept.answered, concept.items) == (pytest.approx((1 + 0.5) / 4), 2, 4)
    assert concept.of_answered == pytest.approx((1 + 0.5) / 2)
    (later,) = concepts(course, learner.on(40).progress)
    assert 0.1 < later.mastery < concept.mastery
    learner.answers(course.items()[1])
    assert concepts(course, learner.progress)[0].mastery > later.mastery


def test_a_streak_is_kept_until_a_whole_day_has_passed_without_an_answer() -> None:
    learner = Learner()
    for day in (0, 1, 2, 5, 6):
        learner.on(day).answers(QUIZ).answers(QUIZ)
    today = learner.progress.today()
    attempts = learner.progress.attempts()
    assert (streak(attempts, today).days, streak(attempts, today).longest) == (2, 3)
    assert streak(attempts, today).today == 2
    assert streak(attempts, today + timedelta(1)).days == 2
    assert streak(attempts, today + timedelta(2)).days == 0
    assert streak((), today).longest == 0


def test_best_times_are_of_right_answers_and_of_measured_kernels() -> None:
    learner = Learner()
    learner.answers(QUIZ, seconds=50).answers(QUIZ, seconds=20).answers(QUIZ, correct=False, seconds=3)
    learner.answers(EXERCISE, detail={"timing": {"median_us": 12.5}}).answers(EXERCISE, detail={"median_us": 11.0})
    learner.answers(SEVERAL, correct=False).answers(MATCH, seconds=0.1).answers(MATCH, seconds=9000)
    best = best_times(learner.progress.attempts())
    assert set(best) == {QUIZ.id, EXERCISE.id}
    assert (best[QUIZ.id].seconds, best[QUIZ.id].median_us) == (20, None)
    assert (best[EXERCISE.id].seconds, best[EXERCISE.id].median_us) == (None, 11.0)


def test_help_counts_on_its_own_day_only() -> None:
    learner = Learner()
    learner.progress.record_hint(BUG.id, 1)
    learner.answers(BUG, seconds=20)
    learner.on(3).answers(BUG, seconds=20)
    learner.progress.record_give_up(PREDICT.id)
    learner.answers(PREDICT, seconds=20)
    assert [attempt.rating for attempt in learner.progress.attempts(BUG.id)] == [4, 2]
    assert learner.progress.cards()[PREDICT.id].rating == 1
    learner.progress.record_solution_seen(MATCH.id)
    learner.answers(MATCH, seconds=20)
    assert learner.progress.cards()[MATCH.id].rating == 1
    assert not learner.progress.state(MATCH.id).gave_up


def test_the_week_ahead_counts_what_is_overdue_for_today() -> None:
    learner = Learner().answers(QUIZ).on(1).answers(MATCH).on(2.4).answers(SEVERAL)
    ahead = load_ahead(scheduled_cards(COURSE, learner.on(3).progress), learner.progress.today())
    assert [count for _, count in ahead] == [2, 1, 0, 0, 0, 0, 0]


def test_days_are_said_in_words() -> None:
    day = Learner().progress.today()
    assert [day_words(day + timedelta(days), day) for days in (-3, 0, 1, 9)] == [
        "today",
        "today",
        "tomorrow",
        "in 9 days (Wed 11 Mar)",
    ]
