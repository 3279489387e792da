from __future__ import annotations

import os
from pathlib import Path

import pytest

from tutor.homework.journal import InUse, Journal
from tutor.homework.work import Graded

VERDICT = {"status": "passed", "cases": []}


def test_a_grade_is_on_the_disk_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "out" / "journal.jsonl"
    journal = Journal(file)
    synced: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(file.read_bytes()))
    graded = Graded("one", VERDICT, None, 1.25, 0.5, "GPU-abc")
    journal.add(graded)
    assert [b'"one"' in content for content in synced] == [True]
    journal.close()
    assert Journal(file).graded == {"one": graded}


def test_a_journal_of_a_version_without_gpus_in_it_is_still_read(tmp_path: Path) -> None:
    file = tmp_path / "journal.jsonl"
    file.write_text('{"key": "one", "seconds": 1.5, "verdict": {"status": "passed"}}\n')
    assert Journal(file).graded == {"one": Graded("one", {"status": "passed"}, None, 1.5)}


def test_a_lost_grade_is_not_kept(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    journal.add(Graded("one", None, "the grader died"))
    journal.close()
    assert Journal(tmp_path / "journal.jsonl").graded == {}


@pytest.mark.parametrize(
    "tail",
    [b'{"key": "two", "verd', b"\0\0\0\n", b'{"key": 1}\n', b"[]\n", b'{"key": "two", "seconds": 1, "verdict": {}}\n'],
)
def test_what_a_cut_left_is_taken_off_and_the_rest_kept(tmp_path: Path, tail: bytes) -> None:
    file = tmp_path / "journal.jsonl"
    journal = Journal(file)
    journal.add(Graded("one", VERDICT))
    journal.close()
    with file.open("ab") as stream:
        stream.write(tail)
    journal = Journal(file)
    assert set(journal.graded) == {"one"}
    journal.add(Graded("three", VERDICT))
    journal.close()
    assert set(Journal(file).graded) == {"one", "three"}


def test_one_run_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.jsonl")
    with pytest.raises(InUse, match="another homework run"):
        Journal(tmp_path / "journal.jsonl")
    journal.close()
    Journal(tmp_path / "journal.jsonl").close()
