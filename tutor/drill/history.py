"""What earlier answers say about a learner's concepts: the weights of the next drill."""

from __future__ import annotations

from tutor.course.course import Course
from tutor.drill.draw import History
from tutor.progress import Progress

NEWEST = 0.6  # the share of the newest answer to an item; the answers before it have the rest, and so on
HINTED = 0.8


def mastery(course: Course, progress: Progress) -> dict[str, float]:
    """By concept, 0 to 1: the mean over its answered items of their scores, newer answers counting more."""
    items = {item.id: item for item in course.items()}
    states = progress.states()
    scores: dict[str, float] = {}
    for attempt in reversed(progress.attempts()):
        if attempt.item_id in items:
            before = scores.get(attempt.item_id)
            scores[attempt.item_id] = attempt.score if before is None else before + NEWEST * (attempt.score - before)
    concepts: dict[str, list[float]] = {}
    for item_id, score in scores.items():
        state = states.get(item_id)
        hinted = state is not None and (state.hints or state.gave_up)
        concepts.setdefault(items[item_id].concept, []).append(score * HINTED if hinted else score)
    return {concept: sum(values) / len(values) for concept, values in concepts.items() if concept}


def history(course: Course, progress: Progress, last: tuple[str, ...] = ()) -> History:
    """`last` holds the items of the drill before."""
    return History(mastery(course, progress), frozenset(last))
