"""From verdicts to points: what each exercise of each attempt earned, what lateness takes, which attempt counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tutor.homework.assignment import Assignment, Exercise
from tutor.homework.submissions import Attempt, Learner
from tutor.homework.work import Graded

DAY = 86_400.0
# what no verdict says, because nothing was graded
MISSING, UNREADABLE, REFUSED = "missing", "unreadable", "refused"


@dataclass(frozen=True)
class Mark:
    """One exercise of one attempt."""

    exercise: str
    points: float | None  # None: could not be graded, which is not the learner's doing
    most: float
    status: str  # the verdict's, or missing, unreadable, refused
    message: str = ""  # where there is no verdict
    shown: Mapping[str, Any] | None = None  # the verdict of the run that feedback shows
    hidden: Mapping[str, Any] | None = None  # and of the other
    speed_points: float | None = None  # None: not measured
    most_speed: float = 0.0  # 0 where speed cannot be measured
    seconds: float = 0.0  # that grading took
    file: str = ""

    @property
    def passed(self) -> bool:
        return self.status == "passed"


@dataclass(frozen=True)
class MarkedAttempt:
    attempt: Attempt
    marks: tuple[Mark, ...]
    late_seconds: float
    kept: float  # share of the points that lateness leaves

    @property
    def points(self) -> float | None:
        """None when a part could not be graded."""
        return None if any(mark.points is None for mark in self.marks) else rounded(self.kept * self.known)

    @property
    def known(self) -> float:
        return sum(mark.points or 0.0 for mark in self.marks)

    @property
    def most(self) -> float:
        return rounded(sum(mark.most for mark in self.marks))


@dataclass(frozen=True)
class Result:
    """One learner's homework."""

    learner: str
    counted: MarkedAttempt
    others: tuple[MarkedAttempt, ...]  # graded, not counted
    surplus: tuple[str, ...]  # attempts beyond the number allowed

    @property
    def points(self) -> float | None:
        return self.counted.points

    @property
    def full(self) -> bool:
        return self.points is not None and self.points >= self.counted.most

    @property
    def all_passed(self) -> bool:
        return all(mark.passed for mark in self.counted.marks)


def rounded(points: float) -> float:
    return round(points + 0.0, 4)


def allowed(learner: Learner, assignment: Assignment) -> tuple[Attempt, ...]:
    """The attempts that are graded at all."""
    within = learner.attempts[: assignment.attempts.most]
    return within if assignment.attempts.counts == "best" else within[-1:]


@dataclass(frozen=True)
class Marking:
    """What the marks of a class follow from."""

    assignment: Assignment
    asked: tuple[Exercise, ...]
    timed: bool  # whether speed can be measured here
    outcomes: Mapping[tuple[str, str, str], Graded]  # by content, exercise, run


def mark_learner(learner: Learner, marking: Marking) -> Result:
    assignment = marking.assignment
    marked = [_attempt(attempt, marking) for attempt in allowed(learner, assignment)]
    # an attempt that could not be graded may be the best one: it counts until that is known
    counted = max(marked, key=lambda one: (one.points is None, one.points or 0.0, one.attempt.submitted))
    surplus = tuple(attempt.name for attempt in learner.attempts[assignment.attempts.most :])
    return Result(learner.name, counted, tuple(one for one in marked if one is not counted), surplus)


def _attempt(attempt: Attempt, marking: Marking) -> MarkedAttempt:
    late, kept = lateness(attempt.submitted, marking.assignment)
    return MarkedAttempt(attempt, tuple(_mark(attempt, asked, marking) for asked in marking.asked), late, kept)


def lateness(submitted: datetime, assignment: Assignment) -> tuple[float, float]:
    """Seconds after the due time, 0 within the grace, and the share of the points that is kept."""
    if assignment.due is None:
        return 0.0, 1.0
    late = (submitted - assignment.due).total_seconds()
    if late <= 60 * assignment.late.grace_minutes:
        return 0.0, 1.0
    match assignment.late.policy:
        case "zero":
            return late, 0.0
        case "linear":
            return late, max(0.0, round(1 - assignment.late.lose_per_day / 100 * late / DAY, 6))
    return late, 1.0


def _mark(attempt: Attempt, asked: Exercise, marking: Marking) -> Mark:
    slug, content = asked.exercise, attempt.files.get(asked.exercise)
    most_speed = asked.speed_points if marking.timed else 0.0
    most = rounded(asked.points + most_speed)
    if attempt.refused is not None:
        return Mark(slug, 0.0, most, REFUSED, attempt.refused)
    if slug in attempt.problems:
        return Mark(slug, 0.0, most, UNREADABLE, attempt.problems[slug])
    if content is None:
        return Mark(slug, 0.0, most, MISSING, f"no {slug}.py was handed in")
    shown = marking.outcomes[content.sha256, slug, "shown"]
    hidden = marking.outcomes.get((content.sha256, slug, "hidden"))
    seconds = shown.seconds + (hidden.seconds if hidden else 0.0)
    if shown.verdict is None or (hidden is not None and hidden.verdict is None):
        fault = shown.fault or (hidden.fault if hidden else None) or ""
        return Mark(slug, None, most, "infrastructure_error", fault, seconds=seconds, file=content.name)
    points, speed = _earned(asked, marking, shown.verdict, hidden.verdict if hidden else None)
    last = hidden.verdict if hidden and hidden.verdict and shown.verdict["status"] == "passed" else shown.verdict
    return Mark(
        slug, rounded(points), most, last["status"], "", shown.verdict, hidden.verdict if hidden else None,
        speed, most_speed, seconds, content.name,
    )  # fmt: skip


def _earned(
    asked: Exercise, marking: Marking, shown: Mapping[str, Any], hidden: Mapping[str, Any] | None
) -> tuple[float, float | None]:
    """Points in all, and those for speed in them: none where nothing was measured.

    All cases or nothing: whether an answer comes from the kernel is known only once every case is right.
    """
    if shown["status"] != "passed":
        return 0.0, None
    if hidden is not None and hidden["status"] != "passed":
        return asked.points * (1 - marking.assignment.hidden.share), None
    percent = percent_of_limit(shown)
    if not marking.timed or percent is None:
        return asked.points, None
    speed = max((step.points for step in asked.speed if step.percent_of_limit <= percent), default=0.0)
    return asked.points + speed, speed


def percent_of_limit(verdict: Mapping[str, Any]) -> float | None:
    """None where nothing was timed, or too noisily to say."""
    timing = verdict.get("timing") or {}
    return None if timing.get("rank") in (None, "too_noisy", "not_believed") else timing.get("percent_of_limit")
