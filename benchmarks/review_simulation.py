"""A simulated learner of 60 days: does the review do what FSRS predicts?

    .venv/bin/python benchmarks/review_simulation.py [--days 60] [--seed 0] [--new 6]

The learner meets `--new` items a day, in the course's order, and every day answers what `tutor.review.agenda` says is
due. Whether an answer is right is drawn from a memory that is kept here, apart from the program: the forgetting curve
R(t) = (1 + F t/S)^-d of FSRS 6, written out, with a stability S that grows by FSRS's own update. What the program's
cards and its agenda do with those answers is what is measured: reviews a day, the share that was right at reviews
beside the predicted share and the wanted 0.9, and the intervals. Time taken is drawn too, so that all four ratings
occur. It shows that the program schedules as FSRS means it; nothing here is a measurement of people.

An item that was forgotten has a stability under a day and comes back after one, the least there is: the chance is below
0.9 by then. Long runs of right answers without long intervals are hard items that had been forgotten before.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import mean, median

import fsrs

from tutor.course.course import Course, kind_of
from tutor.course.loader import load
from tutor.course.model import Item
from tutor.progress import Progress, minutes_of
from tutor.review import agenda
from tutor.schedule import AGAIN, SCHEDULED, scheduler

DECAY = 0.1542
FACTOR = 0.9 ** (-1 / DECAY) - 1
START = datetime(2026, 1, 5, 12).timestamp()
DAY = 86400.0


@dataclass(frozen=True)
class Review:
    day: int
    elapsed: int  # days since the item was last answered
    predicted: float  # chance of a right answer, by the learner's own memory
    right: bool
    repetition: int  # the first review is 1


@dataclass
class Memory:
    """What the learner truly retains of one item: stability in days, from the answers given; not the program's card."""

    history: list[tuple[int, fsrs.Rating]] = field(default_factory=list)
    stability: float = 0.0
    difficulty: float = 0.0

    def chance(self, day: int) -> float:
        return float((1 + FACTOR * (day - self.history[-1][0]) / self.stability) ** -DECAY)

    def learn(self, day: int, rating: int) -> None:
        """By FSRS's own update, in its own moments: only the curve above is this file's."""
        self.history.append((day, fsrs.Rating(rating)))
        card = fsrs.Card(card_id=0, due=_moment(0))
        for when, given in self.history:
            card, _ = scheduler().review_card(card, given, _moment(when))
        assert card.stability is not None
        assert card.difficulty is not None
        self.stability, self.difficulty = card.stability, card.difficulty


@dataclass
class Outcome:
    reviews: list[Review]
    load: list[int]  # reviews on each day
    fresh: list[int]  # new items on each day
    intervals: dict[int, list[int]]  # days until due, by how often in a row the item was right
    memories: dict[str, Memory]
    progress: Progress


def simulate(course: Course, *, days: int, new: int, seed: int) -> Outcome:
    chance = random.Random(seed)
    moment = [START]
    progress = Progress.open(None, minutes=minutes_of(course), clock=lambda: moment[0])
    unseen = [item for item in course.items() if kind_of(item) in SCHEDULED]
    memories: dict[str, Memory] = {}
    outcome = Outcome([], [], [], {}, memories, progress)
    in_a_row: dict[str, int] = {}

    def answer(item: Item, day: int, right: bool) -> None:
        moment[0] += 1.0
        minutes = item.minutes * 60
        seconds = chance.choice([0.2, 0.2, 0.6, 0.6, 0.6, 1.2]) * minutes  # fast, usual, slow
        progress.record_answer(item.id, kind_of(item), correct=right, score=float(right), seconds=min(seconds, 1700))
        memory = memories.setdefault(item.id, Memory())
        memory.learn(day, progress.attempts(item.id, limit=1)[0].rating or AGAIN)
        in_a_row[item.id] = in_a_row.get(item.id, 0) + 1 if right else 0
        card = progress.cards()[item.id]
        outcome.intervals.setdefault(in_a_row[item.id], []).append((card.due - card.reviewed).days)

    for day in range(days):
        moment[0] = START + day * DAY
        due = agenda(course, progress).due
        for item in due:
            memory = memories[item.id]
            predicted = memory.chance(day)
            right = chance.random() < predicted
            elapsed = day - memory.history[-1][0]
            outcome.reviews.append(Review(day, elapsed, predicted, right, len(memory.history)))
            answer(item, day, right)
        today, unseen = unseen[:new], unseen[new:]
        for item in today:
            answer(item, day, chance.random() < 0.8)
        outcome.load.append(len(due))
        outcome.fresh.append(len(today))
    return outcome


def recall_table(reviews: Sequence[Review]) -> list[tuple[str, int, float, float]]:
    """Rows of days elapsed: reviews, share right, share predicted."""
    rows = []
    for name, low, high in (("1", 1, 1), ("2–4", 2, 4), ("5–14", 5, 14), ("15 and more", 15, 10**6), ("all", 0, 10**6)):
        part = [review for review in reviews if low <= review.elapsed <= high]
        if part:
            rows.append(
                (name, len(part), mean(review.right for review in part), mean(review.predicted for review in part))
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--new", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    outcome = simulate(load(), days=options.days, new=options.new, seed=options.seed)
    print(f"{options.days} days, {options.new} new items a day while there are any, seed {options.seed}\n")
    print("days      new  reviews a day: mean  most")
    for week in range(0, options.days, 10):
        part, fresh = outcome.load[week : week + 10], sum(outcome.fresh[week : week + 10])
        print(f"{week + 1:2}–{week + len(part):2}  {fresh:7}  {mean(part):19.1f}  {max(part):4}")
    print("\ndays since last   reviews  right  predicted")
    for name, count, right, predicted in recall_table(outcome.reviews):
        print(f"{name:15}  {count:8}  {right:5.3f}  {predicted:9.3f}")
    print("\nright in a row   answers  median interval, days")
    for run, days in sorted(outcome.intervals.items()):
        print(f"{run:14}  {len(days):8}  {median(days):21.0f}")


def _moment(day: int) -> datetime:
    return datetime(2026, 1, 5, tzinfo=UTC) + timedelta(days=day)


if __name__ == "__main__":
    main()
