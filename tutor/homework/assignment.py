"""An assignment as values: what its YAML may say. modules/homework.schema.json is generated from these types."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from tutor.course.loader import CourseError, CourseErrors, modules_folder
from tutor.course.model import Base
from tutor.course.typed_yaml import json_schema, load_typed

Points = Annotated[float, Meta(ge=0, le=1000)]
Seed = Annotated[int, Meta(ge=0, lt=2**31)]
Moment = Annotated[datetime, Meta(tz=True, description="with a time zone, as 2026-12-01T23:59:00+01:00")]


class SpeedStep(Base, frozen=True, kw_only=True):
    """So many points in all from this share of the hardware's limit on. They need a measured time: a GPU."""

    percent_of_limit: Annotated[float, Meta(gt=0, le=100)]
    points: Points


class Exercise(Base, frozen=True, kw_only=True):
    exercise: str  # its name, such as vector_add
    points: Points = 1
    speed: tuple[SpeedStep, ...] = ()
    hidden_cases: tuple[str, ...] = ()  # names of cases whose names and values feedback does not show

    @property
    def speed_points(self) -> float:
        return max((step.points for step in self.speed), default=0.0)


class Late(Base, frozen=True, kw_only=True):
    policy: Literal["none", "zero", "linear"] = "none"  # none: late work counts in full
    grace_minutes: Annotated[float, Meta(ge=0)] = 0
    lose_per_day: Annotated[float, Meta(gt=0, le=100, description="percent of the score, for linear")] = 10


class Attempts(Base, frozen=True, kw_only=True):
    most: Annotated[int, Meta(ge=1, le=100)] = 100  # attempts after that many, in the order of time, do not count
    counts: Literal["best", "last"] = "best"


class Hidden(Base, frozen=True, kw_only=True):
    """A second run on values that learners cannot know: every case again, drawn from another seed."""

    seed: Seed | None = None  # none: no second run
    share: Annotated[float, Meta(ge=0, le=1, description="of an exercise's points, lost when only this run fails")] = 1


class Assignment(Base, frozen=True, kw_only=True):
    title: str = "Homework"
    exercises: tuple[Exercise, ...] = ()  # empty: every exercise that somebody handed in, one point each
    due: Moment | None = None
    late: Late = Late()
    attempts: Attempts = Attempts()
    seed: Seed = 0  # of the run that feedback shows
    hidden: Hidden = Hidden()
    verified: Literal["auto", "always", "never"] = "auto"  # auto: on a GPU
    timing: Literal["auto", "never"] = "auto"  # auto: on a GPU
    backend: Literal["auto", "cuda", "interpreter"] = "auto"
    target: str = "sm_90"
    time_limit: Annotated[float, Meta(gt=0, le=3600, description="seconds of one call")] | None = None
    total_limit: Annotated[float, Meta(gt=0, le=86400, description="seconds of one grade")] = 900


def load_assignment(file: Path) -> Assignment:
    """Raises CourseErrors, which name file, line and what to write; all faults at once."""
    assignment = load_typed(file, Assignment, "exercises", "exercise", may_be_empty=True)
    errors = _rule_errors(file, assignment)
    if errors:
        raise CourseErrors(errors)
    return assignment


def _rule_errors(file: Path, assignment: Assignment) -> tuple[CourseError, ...]:
    from grader.catalog import UnknownExercise, find
    from tutor.course.lines import Positions

    errors: list[CourseError] = []
    positions = Positions(file)

    def say(path: tuple[str | int, ...], item: str, message: str, advice: str) -> None:
        errors.append(CourseError(str(file), positions.line(path), item, message, advice))

    seen: set[str] = set()
    for number, asked in enumerate(assignment.exercises):
        path = ("exercises", number, "exercise")
        try:
            find(asked.exercise)
        except UnknownExercise as error:
            message, _, advice = str(error).partition(": ")
            say(path, asked.exercise, message, advice)
        if asked.exercise in seen:
            say(path, asked.exercise, "is asked for twice", "keep one of them")
        seen.add(asked.exercise)
        shares = [step.percent_of_limit for step in asked.speed]
        points = [step.points for step in asked.speed]
        if shares != sorted(set(shares)) or points != sorted(points):
            say(
                (*path[:2], "speed"),
                asked.exercise,
                "the steps must rise",
                "write the slowest first, more points after",
            )
    if assignment.late.policy != "none" and assignment.due is None:
        say(("late",), "", f"late work cannot be {assignment.late.policy} without a date", "add `due:`")
    if assignment.hidden.seed is not None and assignment.hidden.seed == assignment.seed:
        say(("hidden", "seed"), "", "the hidden seed is the public one", "write another number")
    if not re.fullmatch(r"sm_\d+|gfx\w+", assignment.target):
        say(("target",), "", f"unknown target {assignment.target!r}", "write sm_80, sm_90, sm_100 or gfx942")
    for key, line in positions.repeated_keys():
        errors.append(CourseError(str(file), line, "", f"{key!r} is given twice here", "keep one of them"))
    return tuple(errors)


def schema_text() -> str:
    return json_schema(Assignment, "A homework assignment")


def schema_file() -> Path:
    return modules_folder() / "homework.schema.json"


if __name__ == "__main__":
    schema_file().write_text(schema_text(), encoding="utf-8")
