"""For the instructor: results.csv, times.csv and the summary, which holds everything but times."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from tutor.homework.assignment import Assignment, Exercise
from tutor.homework.marking import Mark, Result, percent_of_limit
from tutor.homework.work import Facts, is_verified


def results_csv(results: Sequence[Result], asked: Sequence[Exercise]) -> str:
    columns = ["learner", "score", "max_score", "submitted_at", "late_seconds", "kept", "attempt", "attention"]
    for one in asked:
        columns += [one.exercise, f"{one.exercise} status", f"{one.exercise} cause"]
    rows = []
    for result in results:
        counted = result.counted
        row: list[Any] = [result.learner, _number(counted.points), counted.most, counted.attempt.submitted.isoformat()]
        row += [int(counted.late_seconds), counted.kept, counted.attempt.name, "; ".join(attention(result))]
        for mark in counted.marks:
            row += [_number(mark.points), mark.status, cause(mark) or ""]
        rows.append(row)
    return _csv([columns, *rows])


def times_csv(results: Sequence[Result]) -> str:
    rows: list[list[Any]] = [["learner", "exercise", "grading_seconds", "median_us", "percent_of_limit"]]
    for result in results:
        for mark in result.counted.marks:
            timing = (mark.shown or {}).get("timing") or {}
            share = percent_of_limit(mark.shown) if mark.shown else None
            rows.append([result.learner, mark.exercise, round(mark.seconds, 2), timing.get("median_us"), share])
    return _csv(rows)


def summary(
    results: Sequence[Result], asked: Sequence[Exercise], assignment: Assignment, facts: Facts
) -> dict[str, Any]:
    """`--json`. Scores are null where they are not known; `attention` lists what an instructor must look at."""
    return {
        "schema": 1,
        "title": assignment.title,
        "backend": facts.backend,
        "device": facts.device,
        "versions": dict(facts.versions),
        "verified": is_verified(assignment, facts),
        "hidden_run": assignment.hidden.seed is not None,
        "exercises": [
            {"exercise": one.exercise, "points": one.points, "speed_points": one.speed_points} for one in asked
        ],
        "learners": [_learner(result) for result in results],
        "attention": [{"learner": result.learner, "what": what} for result in results for what in attention(result)],
        "notes": _notes(results, asked, assignment, facts),
    }


def attention(result: Result) -> list[str]:
    """What needs a person: a grade that was lost, a speed that could not be ranked, a grade that is not verified."""
    found = []
    for mark in result.counted.marks:
        if mark.points is None:
            found.append(f"{mark.exercise}: could not be graded ({mark.message[:200]}): run the command again")
        elif mark.most_speed and mark.passed and mark.speed_points is None:
            found.append(f"{mark.exercise}: speed not measured or too noisy: 0 of {mark.most_speed:g} points for it")
        if unverified(mark):
            found.append(f"{mark.exercise}: passed, but could not be replayed: graded unverified")
    return found


def unverified(mark: Mark) -> bool:
    shown = mark.shown or {}
    return mark.passed and shown.get("backend") == "cuda" and shown.get("verified") is False


def cause(mark: Mark) -> str | None:
    """The name of the mistake, where the diagnosis has one. What is remarked beside a pass is none."""
    for verdict in (mark.shown, mark.hidden):
        if verdict and verdict.get("status") != "passed" and (found := (verdict.get("diagnosis") or {}).get("cause")):
            return str(found)
    return None


def _notes(results: Sequence[Result], asked: Sequence[Exercise], assignment: Assignment, facts: Facts) -> list[str]:
    notes = []
    if facts.backend != "cuda":
        notes.append("Graded on the interpreter: not verified by replay, and nothing was timed.")
        speed = sum(one.speed_points for one in asked)
        if speed:
            notes.append(f"Points for speed ({speed:g}) are left out of every total: they need a GPU.")
    elif not is_verified(assignment, facts):
        notes.append("Not verified by replay: the assignment says `verified: never`.")
    names = {
        str(row.get("name")) for r in results for m in r.counted.marks for row in (m.shown or {}).get("cases") or ()
    }
    for one in asked:
        unknown = [name for name in one.hidden_cases if names and name not in names]
        if unknown:
            notes.append(
                f"{one.exercise}: no case is called {', '.join(unknown)}: hidden_cases must name cases exactly."
            )
    return notes


def _learner(result: Result) -> dict[str, Any]:
    counted = result.counted
    return {
        "learner": result.learner,
        "score": counted.points,
        "max_score": counted.most,
        "submitted_at": counted.attempt.submitted.isoformat(),
        "late_seconds": int(counted.late_seconds),
        "kept": counted.kept,
        "attempt": counted.attempt.name or None,
        "exercises": [_exercise(mark) for mark in counted.marks],
        "other_attempts": [{"attempt": one.attempt.name, "score": one.points} for one in result.others],
        "surplus_attempts": list(result.surplus),
        "notes": list(counted.attempt.notes),
    }


def _exercise(mark: Mark) -> dict[str, Any]:
    return {
        "exercise": mark.exercise,
        "points": mark.points,
        "max_points": mark.most,
        "status": mark.status,
        "cause": cause(mark),
        "hidden_status": (mark.hidden or {}).get("status"),
        "verified": (mark.shown or {}).get("verified"),
        "file": mark.file or None,
        "sha256": (mark.shown or {}).get("sha256"),
        "message": mark.message or None,
    }


def _number(value: float | None) -> Any:
    return "" if value is None else value


def _csv(rows: Sequence[Sequence[Any]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    for row in rows:
        writer.writerow(["" if cell is None else _inert(cell) for cell in row])
    return stream.getvalue()


def _inert(cell: Any) -> Any:
    """A learner's name must not become a formula in a spreadsheet."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
