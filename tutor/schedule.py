"""When an item comes back: FSRS over whole local days, rated by what happened and never by how it felt.

How one answer is rated (`rate`):

- wrong, or right on a day on which its solution was shown after giving up: **Again**
- right, but a hint was shown that day, or a first try inside the answer was wrong (score below 1): **Hard**
- right, but it took longer than the item's `minutes`: **Hard**
- right, at the first try, without help, within a quarter of its `minutes`: **Easy**
- right otherwise: **Good**

Time does not count where it says nothing: under two seconds (nobody has read the question: a pipe), over half an hour
(the screen was left open), and for exercises (nobody sees when the writing began). A pass of the very file that passed
last time is no recall and is not rated.

How a day is rated (`day_rating`): the first right answer settles it. Misses before it make it Hard where a miss does
not show the answer (bugs, exercises), and Again where it does (quizzes, predictions, matches). So each item is reviewed
at most once a day, and its card is a function of its attempts alone: replaying them gives the same card everywhere.

The scheduler has no learning steps (what was wrong comes back the next day, not minutes after its explanation was
read), its published default parameters, a desired retention of 0.9, and no fuzzing, so that it is deterministic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    import fsrs

AGAIN, HARD, GOOD, EASY = 1, 2, 3, 4
RATING_WORDS = {AGAIN: "again", HARD: "hard", GOOD: "good", EASY: "easy"}
SCHEDULED = frozenset({"quiz", "bug", "match", "predict", "exercise"})
FOUND_BY_TRYING = frozenset({"bug", "exercise"})  # kinds whose answer a miss does not show
UNAIDED, HINTED, GAVE_UP = 0, 1, 2

DESIRED_RETENTION = 0.9
USUAL_MINUTES = 2
FAST_SHARE = 0.25
UNREAD_SECONDS, LEFT_OPEN_SECONDS = 2.0, 1800.0


class Card(msgspec.Struct, frozen=True):  # a struct: quicker to define than a dataclass, and Home waits for it
    item_id: str
    stability: float  # days until the chance of recall has fallen to 0.9
    difficulty: float  # 1 to 10
    due: date
    reviewed: date
    rating: int  # of the last day that counted
    reviews: int  # days that counted
    lapses: int  # Again after the first review


def rate(
    kind: str,
    *,
    correct: bool,
    score: float,
    seconds: float,
    minutes: float = USUAL_MINUTES,
    helped: int = UNAIDED,
    unchanged: bool = False,
) -> int | None:
    """AGAIN to EASY; None when the answer says nothing about memory."""
    if kind not in SCHEDULED:
        return None
    if not correct:
        return AGAIN
    if unchanged:
        return None
    if helped == GAVE_UP:
        return AGAIN
    if helped == HINTED or score < 1.0:
        return HARD
    if kind == "exercise" or not UNREAD_SECONDS <= seconds <= LEFT_OPEN_SECONDS:
        return GOOD
    if seconds > 60 * minutes:
        return HARD
    return EASY if seconds <= FAST_SHARE * 60 * minutes else GOOD


def day_rating(kind: str, answers: Iterable[tuple[bool, int | None]]) -> int | None:
    """`answers` of one item on one day, oldest first: right or not, and how it was rated. None: nothing counted."""
    missed = False
    for right, rating in answers:
        if rating is None:
            continue
        if right:
            most = EASY if not missed else HARD if kind in FOUND_BY_TRYING else AGAIN
            return min(rating, most)
        missed = True
    return AGAIN if missed else None


def card_of(item_id: str, kind: str, answers: Sequence[tuple[str, bool, int | None]]) -> Card | None:
    """Replays an item's answers (local day as an ISO date, right or not, rating), in any order of days."""
    days: dict[str, list[tuple[bool, int | None]]] = {}
    for day, right, rating in answers:
        days.setdefault(day, []).append((right, rating))
    reviews = [(date.fromisoformat(day), rated) for day in sorted(days) if (rated := day_rating(kind, days[day]))]
    return card_after(item_id, reviews)


def card_after(item_id: str, reviews: Sequence[tuple[date, int]]) -> Card | None:
    """The card after one rating a day, oldest first; None before the first."""
    if not reviews:
        return None
    import fsrs

    card = fsrs.Card(card_id=0, due=_moment(reviews[0][0]))
    for day, rating in reviews:
        card, _ = scheduler().review_card(card, fsrs.Rating(rating), _moment(day))
    assert card.stability is not None
    assert card.difficulty is not None
    day, rating = reviews[-1]
    lapses = sum(each == AGAIN for _, each in reviews[1:])
    return Card(item_id, card.stability, card.difficulty, card.due.date(), day, rating, len(reviews), lapses)


def retrievability(card: Card, today: date) -> float:
    """The chance, by FSRS, of a right answer today: 1 on the day of the review, 0.9 after `stability` days."""
    import fsrs

    known = fsrs.Card(
        card_id=0,
        state=fsrs.State.Review,
        stability=card.stability,
        difficulty=card.difficulty,
        due=_moment(card.due),
        last_review=_moment(card.reviewed),
    )
    return float(scheduler().get_card_retrievability(known, _moment(today)))


@cache
def scheduler() -> fsrs.Scheduler:
    import fsrs

    return fsrs.Scheduler(
        desired_retention=DESIRED_RETENTION, learning_steps=(), relearning_steps=(), enable_fuzzing=False
    )


def _moment(day: date) -> datetime:
    """FSRS counts days between moments: midnights, written as if they were UTC, make them calendar days."""
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
