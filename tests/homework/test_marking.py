from __future__ import annotations

from datetime import timedelta

import pytest

from tests.homework.marks import DUE, attempt, graded, mark, timed, verdict
from tutor.homework.assignment import Attempts, Exercise, Hidden, Late, SpeedStep
from tutor.homework.results.tables import attention

PASSED, WRONG = graded(verdict()), graded(verdict("wrong_answer"))
QUICK = Exercise(
    exercise="vector_add",
    points=4,
    speed=(SpeedStep(percent_of_limit=50, points=1), SpeedStep(percent_of_limit=80, points=2)),
)


def test_an_exercise_counts_in_full_or_not_at_all() -> None:
    assert mark(PASSED).points == 4
    assert mark(WRONG).points == 0
    assert mark(PASSED).all_passed
    assert not mark(WRONG).all_passed


def test_a_hidden_run_that_fails_takes_its_share() -> None:
    assert mark(PASSED, WRONG).points == 0
    assert mark(PASSED, WRONG, hidden=Hidden(seed=7, share=0.25)).points == 3
    assert mark(PASSED, PASSED, hidden=Hidden(seed=7)).points == 4
    assert mark(PASSED, WRONG).counted.marks[0].status == "wrong_answer"


@pytest.mark.parametrize(
    ("late", "hours", "kept"),
    [
        (Late(policy="none"), 100, 1.0),
        (Late(policy="zero", grace_minutes=30), 0.5, 1.0),
        (Late(policy="zero", grace_minutes=30), 0.51, 0.0),
        (Late(policy="linear", lose_per_day=20), 12, 0.9),
        (Late(policy="linear", lose_per_day=20), -3, 1.0),
        (Late(policy="linear", lose_per_day=20), 500, 0.0),
    ],
)
def test_late_work_keeps_what_the_policy_leaves(late: Late, hours: float, kept: float) -> None:
    found = mark(PASSED, None, attempt(submitted=DUE + timedelta(hours=hours)), due=DUE, late=late)
    assert found.points == 4 * kept
    assert found.counted.kept == kept


def test_the_best_attempt_within_the_number_counts() -> None:
    times = [DUE + timedelta(hours=n) for n in range(4)]
    attempts = [
        attempt("1", times[0], "bad"),
        attempt("2", times[1]),
        attempt("3", times[2], "bad"),
        attempt("4", times[3]),
    ]
    best = mark(PASSED, None, *attempts, attempts=Attempts(most=3))
    assert (best.counted.attempt.name, best.points, best.surplus) == ("2", 4, ("4",))
    assert {one.attempt.name for one in best.others} == {"1", "3"}
    last = mark(PASSED, None, *attempts, attempts=Attempts(most=3, counts="last"))
    assert (last.counted.attempt.name, last.points) == ("3", 0)


@pytest.mark.parametrize(("percent", "points"), [(49.9, 4), (50, 5), (80, 6), (100, 6)])
def test_speed_earns_the_points_of_the_highest_step_reached(percent: float, points: float) -> None:
    found = mark(graded(timed(percent)), asked=QUICK, timing=True)
    assert (found.points, found.counted.most) == (points, 6)
    assert attention(found) == []


def test_speed_that_cannot_be_measured_is_in_no_total() -> None:
    found = mark(PASSED, asked=QUICK, timing=False)
    assert (found.points, found.counted.most, found.full) == (4, 4, True)


def test_speed_too_noisy_to_rank_is_left_to_a_person() -> None:
    found = mark(graded(timed(90, "too_noisy")), asked=QUICK, timing=True)
    assert (found.points, found.counted.most) == (4, 6)
    assert attention(found) == ["vector_add: speed not measured or too noisy: 0 of 2 points for it"]


def test_a_lost_grade_is_no_score_and_no_zero() -> None:
    for found in (mark(graded(None, "the grader died")), mark(PASSED, graded(None, "the grader died"))):
        assert found.points is None
        assert found.counted.marks[0].status == "infrastructure_error"
        assert "the grader died" in attention(found)[0]
    # a lost attempt may be the best one: the score is not known while it is
    lost = mark(graded(None, "gone"), None, attempt("1", sha="bad"), attempt("2"))
    assert lost.points is None


def test_what_was_refused_or_unreadable_or_missing_earns_nothing_and_says_so() -> None:
    refused = mark(PASSED, None, attempt(refused="the archive holds ../x"))
    unreadable = mark(PASSED, None, attempt(problems={"vector_add": "not UTF-8"}))
    missing = mark(PASSED, asked=Exercise(exercise="row_sum"))
    marks = [found.counted.marks[0] for found in (refused, unreadable, missing)]
    assert [one.status for one in marks] == ["refused", "unreadable", "missing"]
    assert [one.points for one in marks] == [0, 0, 0]
    assert marks[0].message == "the archive holds ../x"


def test_a_gpu_grade_that_could_not_be_replayed_is_told() -> None:
    found = mark(graded(verdict(backend="cuda", verified=False)))
    assert attention(found) == ["vector_add: passed, but could not be replayed: graded unverified"]
