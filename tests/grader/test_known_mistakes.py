"""Each known mistake, as a submission, is not passed, and gets its own name, line, concept and course item."""

from __future__ import annotations

import pytest

from grader.catalog import exercises, find
from tests.grader.mistakes import KnownMistake, all_mistakes
from tests.grader.mistakes.listed import ITEMS, LISTED

RUN = [mistake for mistake in all_mistakes() if mistake.why_not_run is None and not mistake.needs_cuda]


@pytest.mark.parametrize("mistake", RUN, ids=[mistake.id for mistake in RUN])
def test_a_known_mistake_gets_its_status_name_line_and_item(submit, mistake: KnownMistake):
    source = mistake.text(find(mistake.exercise).solution.read_text())
    verdict = submit(mistake.exercise, source=source)
    diagnosis = verdict["diagnosis"] or {}
    assert verdict["status"] == mistake.status, diagnosis
    assert diagnosis["cause"] in mistake.causes, diagnosis
    assert diagnosis["concept"] and diagnosis["see"] in ITEMS, diagnosis
    if mistake.line is not None:
        assert diagnosis["line"] is not None, diagnosis
        assert mistake.line in source.splitlines()[diagnosis["line"] - 1], diagnosis
    row = next((row for row in verdict["cases"] if row["name"] == diagnosis.get("case")), None)
    if row is not None:
        assert row["status"] == verdict["status"], row


def test_every_listed_mistake_has_a_row_and_every_row_is_listed():
    numbers = {number for mistake in all_mistakes() for number in mistake.numbers}
    assert numbers == set(LISTED)


def test_no_two_mistakes_are_called_alike_and_every_exercise_is_there():
    ids = [mistake.id for mistake in all_mistakes()]
    assert len(ids) == len(set(ids))
    assert {mistake.exercise for mistake in RUN} <= {files.slug for files in exercises()}


def test_what_is_not_run_says_why():
    kinds = ("needs a GPU: ", "no exercise yet: ", "not a wrong answer: ")
    for mistake in all_mistakes():
        assert mistake.why_not_run is None or mistake.why_not_run.startswith(kinds), mistake.id
