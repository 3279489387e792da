"""How well the course is known: by concept, in days kept up, in times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta

from tutor.course.course import Course, kind_of
from tutor.progress import Attempt, Progress
from tutor.review import scheduled_cards
from tutor.schedule import LEFT_OPEN_SECONDS, SCHEDULED, UNREAD_SECONDS, retrievability


@dataclass(frozen=True)
class Concept:
    name: str
    mastery: float  # 0 to 1
    answered: int
    items: int

    @property
    def of_answered(self) -> float:
        """The mastery of what was answered, at least one item: how weak a topic is, not how much of it is new."""
        return self.mastery * self.items / self.answered


@dataclass(frozen=True)
class Streak:
    days: int  # days in a row with an answer, up to today or, when today has none yet, yesterday
    longest: int
    today: int  # answers today


@dataclass(frozen=True)
class Best:
    """An item's best times; None where there is none."""

    seconds: float | None = None  # the quickest right answer; not for exercises, where nobody sees when work began
    median_us: float | None = None  # the fastest measured kernel that passed, on a GPU


def concepts(course: Course, progress: Progress) -> tuple[Concept, ...]:
    """Weakest first. The mastery of an item is the score of its last answer times the chance, by FSRS, that it would be
    right today; 0 when it was never answered. The mastery of a concept is the mean over its items."""
    today, cards = progress.today(), scheduled_cards(course, progress)
    scores: dict[str, float] = {}
    for attempt in progress.attempts():  # newest first
        scores.setdefault(attempt.item_id, attempt.score)
    shares: dict[str, list[float]] = {}
    answered: dict[str, int] = {}
    for item in course.items():
        if kind_of(item) not in SCHEDULED or not item.concept:
            continue
        known = item.id in cards and item.id in scores
        share = scores[item.id] * retrievability(cards[item.id], today) if known else 0.0
        shares.setdefault(item.concept, []).append(share)
        answered[item.concept] = answered.get(item.concept, 0) + known
    found = [Concept(name, sum(each) / len(each), answered[name], len(each)) for name, each in shares.items()]
    return tuple(sorted(found, key=lambda concept: (concept.mastery, concept.name)))


def streak(attempts: Iterable[Attempt], today: date) -> Streak:
    days = sorted({date.fromisoformat(attempt.day) for attempt in attempts if attempt.day})
    longest = run = 0
    last: date | None = None
    for day in days:
        run = run + 1 if last is not None and day - last == timedelta(days=1) else 1
        longest, last = max(longest, run), day
    kept = last is not None and today - last <= timedelta(days=1)
    return Streak(run if kept else 0, longest, sum(attempt.day == today.isoformat() for attempt in attempts))


def best_times(attempts: Iterable[Attempt]) -> dict[str, Best]:
    best: dict[str, Best] = {}
    for attempt in attempts:
        if not attempt.correct:
            continue
        old = best.get(attempt.item_id, Best())
        told = attempt.kind != "exercise" and UNREAD_SECONDS <= attempt.seconds <= LEFT_OPEN_SECONDS
        seconds = attempt.seconds if told else None
        best[attempt.item_id] = Best(_least(old.seconds, seconds), _least(old.median_us, _median(attempt)))
    return {item_id: each for item_id, each in best.items() if each != Best()}


def _median(attempt: Attempt) -> float | None:
    timing = attempt.detail.get("timing") or {}
    median = attempt.detail.get("median_us") or (timing.get("median_us") if isinstance(timing, dict) else None)
    return float(median) if median else None


def _least(one: float | None, other: float | None) -> float | None:
    present = [value for value in (one, other) if value is not None]
    return min(present) if present else None
