"""Every rung in Triton is a submission that passes all cases of its exercise, and compiles for sm_90.

Those in Gluon are compiled only: test_gluon_rungs.py.
"""

from __future__ import annotations

import pytest

from benchmarks.ladders.settings import FOLDERS, rungs
from grader.catalog import exercises, find

SPILLS = {"attention_6_descriptors": 32}  # bytes a thread: it wants 255 registers for two programs a multiprocessor
RUNGS = [rung for ladder in FOLDERS for rung in rungs(ladder)]


def test_rungs_are_numbered_from_one_and_are_no_solutions():
    for ladder in FOLDERS:
        assert [rung.number for rung in rungs(ladder)] == list(range(1, len(rungs(ladder)) + 1))
        assert len(rungs(ladder)) >= 4
    assert not {e.solution for e in exercises()} & {rung.path for rung in RUNGS}
    for rung in RUNGS:
        assert find(rung.exercise).module == rung.path.parent.parent.name


SUBMISSIONS = [rung for rung in RUNGS if not rung.gluon]


@pytest.mark.parametrize("rung", SUBMISSIONS, ids=[rung.path.stem for rung in SUBMISSIONS])
def test_a_rung_passes_and_compiles(grader, rung):
    verdict = grader.grade(rung.exercise, rung.path)
    assert verdict["status"] == "passed", verdict["diagnosis"]
    skipped = [case["name"] for case in verdict["cases"] if case["status"] == "skipped"]
    assert all(any(name in note for note in verdict["notes"]) for name in skipped)  # by name
    assert verdict["compile"]
    allowed = SPILLS.get(rung.path.stem, 0)
    assert all(row["target"] == "sm_90" and row["spill_bytes"] <= allowed for row in verdict["compile"]), verdict


def test_the_grader_counts_both_reads_of_a_row(grader):
    """As the page of rms_norm's rung 3 says; at 1 x 8192 the weight is as long as the row."""
    ratios = [grader.grade("rms_norm", rungs("rms_norm")[at].path)["traffic"]["ratio"] for at in (1, 2)]
    assert [round(ratio, 2) for ratio in ratios] == [1.0, 1.33] == [1.0, round((2 + 1 + 1) / (1 + 1 + 1), 2)]
