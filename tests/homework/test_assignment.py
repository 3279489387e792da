from __future__ import annotations

from pathlib import Path

import pytest

from tutor.course.loader import CourseErrors
from tutor.homework.assignment import Assignment, load_assignment, schema_file, schema_text

GOOD = """\
title: Reductions
due: 2026-12-01T23:59:00+01:00
late: {policy: linear, grace_minutes: 15, lose_per_day: 20}
attempts: {most: 3, counts: last}
exercises:
  - {exercise: row_sum, points: 2, speed: [{percent_of_limit: 60, points: 1}, {percent_of_limit: 85, points: 2}]}
  - {exercise: softmax, hidden_cases: ["1×1"]}
hidden: {seed: 77, share: 0.5}
verified: auto
time_limit: 5
"""


def load(tmp_path: Path, text: str) -> Assignment:
    file = tmp_path / "a.yaml"
    file.write_text(text, encoding="utf-8")
    return load_assignment(file)


def test_a_whole_assignment_and_an_empty_one(tmp_path: Path) -> None:
    found = load(tmp_path, GOOD)
    assert [(one.exercise, one.points, one.speed_points) for one in found.exercises] == [
        ("row_sum", 2, 2),
        ("softmax", 1, 0),
    ]
    assert found.due is not None
    assert found.due.utcoffset() is not None
    assert load(tmp_path, "# everything as it is\n") == Assignment()


def test_every_fault_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    bad = """\
title: Reductions
due: tomorrow
exercises:
  - {exercise: row_sum, points: -1}
  - {exercise: softmax, pionts: 3}
  - {points: 3}
late:
  policy: never
"""
    with pytest.raises(CourseErrors) as caught:
        load(tmp_path, bad)
    assert [error.line for error in caught.value.errors] == [4, 5, 6, 2, 8]
    text = str(caught.value)
    assert "a.yaml:5: softmax: unknown key 'pionts'; write 'points'" in text
    assert "'exercise' is missing" in text


def test_what_the_types_cannot_say_is_told_with_its_line_too(tmp_path: Path) -> None:
    bad = """\
exercises:
  - exercise: row_summ
  - {exercise: softmax, speed: [{percent_of_limit: 80, points: 1}, {percent_of_limit: 60, points: 2}]}
  - exercise: softmax
late: {policy: zero}
hidden: {seed: 0}
target: h100
title: a
title: b
"""
    with pytest.raises(CourseErrors) as caught:
        load(tmp_path, bad)
    lines = {error.line: error.message for error in caught.value.errors}
    assert set(lines) == {2, 3, 4, 5, 6, 7, 9}
    assert "row_sum" in str(caught.value)
    assert "twice" in lines[4]


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "text", "due: 2026-12-01T23:59:00\n", "\0"])
def test_what_is_no_assignment_has_a_line_and_no_traceback(tmp_path: Path, text: str) -> None:
    with pytest.raises(CourseErrors, match=r"a\.yaml:\d"):
        load(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CourseErrors, match=r"none\.yaml"):
        load_assignment(tmp_path / "none.yaml")


def test_the_schema_for_editors_is_the_one_that_the_types_give() -> None:
    assert schema_file().read_text(encoding="utf-8") == schema_text(), "python -m tutor.homework.assignment"
