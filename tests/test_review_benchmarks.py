"""Short versions of the benchmarks about review: the simulated learner, and kill -9 at random moments."""

from __future__ import annotations

import subprocess
import sys
from math import sqrt
from statistics import mean, median

import pytest

from benchmarks.review_simulation import Outcome, recall_table, simulate
from tests.conftest import REPOSITORY
from tutor.course.loader import load


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return simulate(load(), days=30, new=5, seed=3)


def test_recall_at_review_is_what_the_forgetting_curve_predicts_and_near_the_wanted_share(outcome: Outcome) -> None:
    rows = {name: (count, right, predicted) for name, count, right, predicted in recall_table(outcome.reviews)}
    for name, (count, right, predicted) in rows.items():
        assert abs(right - predicted) < 3.5 * sqrt(predicted * (1 - predicted) / count), name
    assert rows["5–14"][2] == pytest.approx(0.9, abs=0.01)
    assert rows["2–4"][2] == pytest.approx(0.9, abs=0.02)
    assert rows["all"][0] > 150


def test_intervals_grow_from_one_right_answer_to_the_next(outcome: Outcome) -> None:
    typical = [median(outcome.intervals[run]) for run in range(4)]
    assert typical[0] == 1
    assert typical == sorted(set(typical))


def test_the_load_follows_the_new_items_and_stays_bearable(outcome: Outcome) -> None:
    assert sum(outcome.fresh) == 150
    assert mean(outcome.load[-10:]) > mean(outcome.load[:5])
    assert max(outcome.load) < 8 * 5


def test_a_simulation_is_the_same_for_the_same_seed_and_another_for_another(outcome: Outcome) -> None:
    assert simulate(load(), days=30, new=5, seed=3).reviews == outcome.reviews
    assert simulate(load(), days=30, new=5, seed=4).reviews != outcome.reviews


def test_the_programs_cards_are_the_learners_memory(outcome: Outcome) -> None:
    cards = outcome.progress.cards()
    assert {item: card.stability for item, card in cards.items()} == pytest.approx(
        {item: memory.stability for item, memory in outcome.memories.items()}
    )


def test_kill_9_at_random_moments_of_a_review_loses_nothing_that_was_acknowledged() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.store_kill", "--rounds", "20", "--seed", "7"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 kills" in done.stdout
    assert "\n0 faults" in done.stdout
