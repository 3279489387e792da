"""GitHub Classroom: what each runner hands to `classroom-resources/autograding-grading-reporter@v1`.

In a workflow: `echo "result=$(base64 -w0 classroom.json)" >> "$GITHUB_OUTPUT"`.
"""

from __future__ import annotations

from typing import Any

from tutor.homework.marking import Result, rounded
from tutor.homework.results.told import Told


def classroom_json(result: Result, told: list[Told], seconds: dict[str, float]) -> dict[str, Any]:
    """A test for each exercise; the reporter adds up their scores, so what lateness takes is a test of its own."""
    tests = [_test(one, seconds.get(one.exercise, 0.0)) for one in told]
    lost = rounded(result.counted.known * (1 - result.counted.kept))
    if lost:
        late = {"name": "handed in late", "status": "fail", "message": f"{lost:g} points lost", "test_code": ""}
        tests.append({**late, "filename": "", "line_no": 0, "duration": 0, "score": -lost})
    error = any(one.points is None for one in told)
    status = "error" if error else "pass" if all(test["status"] == "pass" for test in tests) else "fail"
    return {"version": 1, "status": status, "max_score": result.counted.most, "tests": tests}


def _test(one: Told, seconds: float) -> dict[str, Any]:
    status = "error" if one.points is None else "pass" if one.status == "passed" else "fail"
    return {
        "name": one.exercise,
        "status": status,
        "message": None if status == "pass" else "\n".join([one.words, *(line.text for line in one.lines)]),
        "test_code": f"triton-prep grade {one.exercise}",
        "filename": "",
        "line_no": 0,
        "duration": round(1000 * seconds),
        "score": one.points or 0,
    }
