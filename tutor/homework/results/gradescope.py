"""Gradescope's results.json (gradescope-autograders.readthedocs.io, "Autograder Specifications", as of 2026)."""

from __future__ import annotations

from typing import Any

from tutor.homework.marking import Result
from tutor.homework.results.told import Told, heading

MOST_OUTPUT = 20_000  # characters of one test


def results_json(result: Result, told: list[Told], title: str, seconds: float) -> dict[str, Any]:
    """A test for each exercise, which holds its points, followed by one for each case, which holds none.

    A result that is not known has no score: Gradescope then says that the autograder failed, as it did.
    """
    tests: list[dict[str, Any]] = []
    for number, one in enumerate(told, start=1):
        tests.append(_exercise(one, str(number)))
        for place, case in enumerate(one.cases, start=1):
            if case.status == "skipped":
                continue
            tests.append({
                "name": f"{one.exercise}: {case.name}", "number": f"{number}.{place}",
                "status": case.status, "output": _text(case.message), "output_format": "text", "visibility": "visible",
            })  # fmt: skip
    found: dict[str, Any] = {
        "output": _text("\n".join(heading(result, title))),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "execution_time": round(seconds, 1),
        "tests": tests,
    }
    if result.points is not None:
        found["score"] = result.points
    return found


def _exercise(one: Told, number: str) -> dict[str, Any]:
    test: dict[str, Any] = {
        "name": one.exercise,
        "number": number,
        "max_score": one.most,
        "status": "passed" if one.status == "passed" else "failed",
        "output": _text("\n".join([one.words, *(line.text for line in one.lines)])),
        "output_format": "text",
        "visibility": "visible",
    }
    if one.points is not None:
        test["score"] = one.points
    return test


def _text(text: str) -> str:
    return text if len(text) <= MOST_OUTPUT else text[:MOST_OUTPUT] + "\n… (cut)"
