"""Ratings from what happened, days from answers, cards from days."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pytest

from tutor.schedule import (
    AGAIN,
    EASY,
    GAVE_UP,
    GOOD,
    HARD,
    HINTED,
    UNAIDED,
    card_after,
    card_of,
    day_rating,
    rate,
    retrievability,
)

DAY = date(2026, 3, 1)


@pytest.mark.parametrize(
    ("kind", "correct", "score", "seconds", "helped", "rating"),
    [
        ("quiz", False, 0.0, 10, UNAIDED, AGAIN),
        ("quiz", False, 0.5, 10, HINTED, AGAIN),
        ("quiz", True, 1.0, 30, UNAIDED, EASY),  # a quarter of two minutes
        ("quiz", True, 1.0, 31, UNAIDED, GOOD),
        ("quiz", True, 1.0, 120, UNAIDED, GOOD),
        ("quiz", True, 1.0, 121, UNAIDED, HARD),
        ("quiz", True, 1.0, 0.1, UNAIDED, GOOD),  # from a pipe: the time says nothing
        ("quiz", True, 1.0, 7200, UNAIDED, GOOD),  # left open: neither does this
        ("bug", True, 0.5, 10, UNAIDED, HARD),  # right at the second try
        ("match", True, 1.0, 10, HINTED, HARD),
        ("exercise", True, 1.0, 1, UNAIDED, GOOD),
        ("exercise", True, 1.0, 9000, UNAIDED, GOOD),
        ("exercise", True, 1.0, 100, GAVE_UP, AGAIN),
        ("predict", True, 1.0, 10, UNAIDED, EASY),
        ("open", True, 1.0, 10, UNAIDED, None),  # marked by the learner: no rating from that alone
        ("lesson", True, 1.0, 10, UNAIDED, None),
    ],
)
def test_an_answer_is_rated_by_result_help_and_time(
    kind: str, correct: bool, score: float, seconds: float, helped: int, rating: int | None
) -> None:
    assert rate(kind, correct=correct, score=score, seconds=seconds, minutes=2, helped=helped) == rating


def test_the_file_that_passed_before_is_no_recall_but_a_miss_with_it_counts() -> None:
    assert rate("exercise", correct=True, score=1, seconds=0, unchanged=True) is None
    assert rate("exercise", correct=False, score=0, seconds=0, unchanged=True) == AGAIN


@pytest.mark.parametrize(
    ("kind", "answers", "rating"),
    [
        ("quiz", [(True, GOOD)], GOOD),
        ("quiz", [(False, AGAIN), (True, EASY)], AGAIN),  # a quiz shows its answer after a miss
        ("bug", [(False, AGAIN), (False, AGAIN), (True, EASY)], HARD),
        ("exercise", [(False, AGAIN), (True, GOOD), (False, AGAIN)], HARD),  # trying on after a pass costs nothing
        ("exercise", [(False, AGAIN)] * 20, AGAIN),
        ("exercise", [(False, AGAIN), (True, AGAIN)], AGAIN),  # after giving up
        ("exercise", [(True, None)], None),
        ("quiz", [(True, EASY), (False, AGAIN)], EASY),
    ],
)
def test_the_first_right_answer_settles_the_day(
    kind: str, answers: list[tuple[bool, int | None]], rating: int | None
) -> None:
    assert day_rating(kind, answers) == rating


def test_first_intervals_are_those_of_fsrs_6_in_whole_days() -> None:
    days = [(card_after("x", [(DAY, rating)]).due - DAY).days for rating in (AGAIN, HARD, GOOD, EASY)]
    assert days == [1, 1, 2, 8]  # its published first stabilities are 0.212, 1.2931, 2.3065 and 8.2956 days


def test_intervals_grow_when_right_and_fall_when_wrong() -> None:
    reviews, lengths = [(DAY, GOOD)], []
    for _ in range(5):
        card = card_after("x", reviews)
        lengths.append((card.due - card.reviewed).days)
        reviews.append((card.due, GOOD))
    assert lengths == sorted(set(lengths))
    assert lengths[-1] > 10 * lengths[0]
    fallen = card_after("x", [*reviews, (card_after("x", reviews).due, AGAIN)])
    assert (fallen.due - fallen.reviewed).days < lengths[-1] / 5
    assert (fallen.lapses, fallen.reviews) == (1, 7)


def test_on_the_day_it_is_due_the_chance_of_recall_is_about_nine_in_ten() -> None:
    card = card_after("x", [(DAY, EASY), (DAY + timedelta(8), GOOD)])
    assert retrievability(card, card.reviewed) == 1.0
    assert retrievability(card, card.due) == pytest.approx(0.9, abs=0.005)
    assert retrievability(card, card.due + timedelta(60)) < 0.85


def test_a_card_follows_from_the_answers_in_whatever_order_the_days_arrive() -> None:
    answers = [
        ((DAY + timedelta(2 * number)).isoformat(), number % 3 > 0, GOOD if number % 3 else AGAIN)
        for number in range(9)
    ]
    expected = card_of("x", "quiz", answers)
    for seed in range(5):
        mixed = list(answers)
        random.Random(seed).shuffle(mixed)
        assert card_of("x", "quiz", mixed) == expected
    assert card_of("x", "quiz", [(DAY.isoformat(), True, None)]) is None
