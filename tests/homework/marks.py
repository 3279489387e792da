"""Marks made by hand: what a grader could have said, for tests of what becomes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tutor.homework.assignment import Assignment, Exercise
from tutor.homework.marking import Marking, Result, mark_learner
from tutor.homework.submissions import Attempt, Content, Learner
from tutor.homework.work import Graded

DUE = datetime(2026, 12, 1, 12, tzinfo=UTC)


def verdict(status: str = "passed", **more: Any) -> dict[str, Any]:
    case = {"name": "n=1000", "status": "passed", "message": None, "seconds": 0.5}
    rows = (
        [case] if status == "passed" else [case, {**case, "name": "n=1001", "status": status, "message": "a[i] is 3"}]
    )
    diagnosis = {"cause": "missing_store_mask", "message": "The store has no mask at n=1001.", "line": 3}
    diagnosis |= {"concept": "masking", "see": "m03.bug.fill"}
    made = {"schema": 1, "exercise": "vector_add", "title": "Vector add", "file": "/store/abc.py", "status": status}
    made |= {"backend": "interpreter", "device": "CPU interpreter", "seed": 0, "verified": False, "cases": rows}
    made |= {"diagnosis": None if status == "passed" else diagnosis, "compile": None, "traffic": None, "timing": None}
    return {**made, "stages": [], "notes": [], "output": {"text": "I printed n=1001", "truncated": False}, **more}


def timed(percent: float | None, rank: str = "fast") -> dict[str, Any]:
    timing = {"median_us": 10.0, "solution_us": 8.0, "eager_us": 20.0, "rank": rank, "percent_of_limit": percent}
    return verdict(backend="cuda", verified=True, timing=timing)


def graded(value: dict[str, Any] | None, fault: str | None = None) -> Graded:
    return Graded("key", value, fault, 1.5)


def attempt(name: str = "", submitted: datetime = DUE, sha: str = "abc", **more: Any) -> Attempt:
    return Attempt(name, submitted, {"vector_add": Content(sha, "vector_add.py", Path("/store/abc.py"))}, **more)


def mark(
    shown: Graded,
    second: Graded | None = None,
    *attempts: Attempt,
    asked: Exercise | None = None,
    timing: bool = False,
    learner: str = "ana",
    **assignment: Any,
) -> Result:
    """One learner with one exercise; every attempt whose content is "abc" has the outcome; `second` is that of the hidden run."""
    outcomes = {("abc", "vector_add", "shown"): shown}
    if second:
        outcomes["abc", "vector_add", "hidden"] = second
    outcomes["bad", "vector_add", "shown"] = graded(verdict("wrong_answer"))
    asked = asked or Exercise(exercise="vector_add", points=4)
    marking = Marking(Assignment(exercises=(asked,), **assignment), (asked,), timing, outcomes)
    return mark_learner(Learner(learner, attempts or (attempt(),)), marking)
