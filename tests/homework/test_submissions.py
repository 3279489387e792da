from __future__ import annotations

import os
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.catalog import exercises, find
from tutor.homework.submissions import Learner, NoSubmissions, Store, read_submissions

ADD = b"def add(x, y):\n    return x\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "class"
    made.mkdir()
    return made


def put(path: Path, data: bytes = ADD) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def read(folder: Path) -> dict[str, Learner]:
    found = read_submissions(folder, exercises(), Store(folder.parent / "sources"))
    return {learner.name: learner for learner in found}


def files(learner: Learner) -> dict[str, str]:
    (attempt,) = learner.attempts
    return {slug: content.name for slug, content in attempt.files.items()}


def test_folders_archives_and_single_files_are_learners(folder: Path) -> None:
    put(folder / "ana" / "vector_add.py")
    put(folder / "ben" / "homework-1" / "vector_add.py")
    put(folder / "cyd.py")
    put(folder / "eva" / "upload.zip", b"")
    for name in ("dan.zip", "eva/upload.zip"):
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("hw/vector_add.py", ADD)
            archive.writestr("__MACOSX/hw/._vector_add.py", b"\xff")
    put(folder / "notes.txt")
    found = read(folder)
    assert list(found) == ["ana", "ben", "cyd", "dan", "eva"]
    assert files(found["ana"]) == {"vector_add": "vector_add.py"}
    assert files(found["ben"]) == {"vector_add": "homework-1/vector_add.py"}
    assert files(found["cyd"]) == {"vector_add": "cyd.py"}  # by the function that the exercise calls
    assert files(found["dan"]) == files(found["eva"]) == {"vector_add": "hw/vector_add.py"}
    contents = {learner.attempts[0].files["vector_add"].path.read_bytes() for learner in found.values()}
    assert contents == {ADD}
    assert len(list((folder.parent / "sources").iterdir())) == 1  # kept once


def test_a_workspace_an_archive_or_a_file_is_one_learner(folder: Path) -> None:
    files_of = find("vector_add")
    put(folder / files_of.module / "vector_add.py")
    assert [files(learner) for learner in read(folder).values()] == [{"vector_add": f"{files_of.module}/vector_add.py"}]
    assert list(read(put(folder / "me.py"))) == ["me"]


def test_the_name_of_a_file_comes_before_what_it_defines(folder: Path) -> None:
    put(folder / "ana" / "vector_add.py")
    put(folder / "ana" / "old" / "vector_add.py", b"x = 1\n")
    put(folder / "ana" / "mine.py")
    put(folder / "ben" / "mine.py")
    put(folder / "ben" / "yours.py")
    put(folder / "cyd" / "row_sum.py", ADD)  # called like another exercise: not for this one
    put(folder / "dan" / "a" / "vector_add.py")
    put(folder / "dan" / "b" / "vector_add.py")
    found = read(folder)
    assert files(found["ana"]) == {"vector_add": "vector_add.py"}
    assert (
        found["ben"].attempts[0].problems["vector_add"] == "several files define add (mine.py, yours.py): hand in one"
    )
    assert files(found["cyd"]) == {"row_sum": "row_sum.py"}
    assert "a/vector_add.py, b/vector_add.py" in found["dan"].attempts[0].problems["vector_add"]


def test_what_cannot_be_read_is_that_learners_own_result(folder: Path) -> None:
    put(folder / "ana" / "vector_add.py", ADD + b"# \xff\n")
    os.truncate(put(folder / "ben" / "vector_add.py"), 1 << 40)  # a terabyte of nothing
    (folder / "cyd").mkdir()
    os.mkfifo(folder / "cyd" / "vector_add.py")
    (folder / "dan").mkdir()
    (folder / "dan" / "vector_add.py").symlink_to(find("vector_add").solution)
    (folder / "eva").symlink_to("/etc")
    put(folder / "fay.zip", b"no zip")
    put(folder / "gus" / "vector_add.py")
    (folder / "hal" / "vector_add.py").mkdir(parents=True)
    os.mkfifo(folder / "ivy.py")
    found = read(folder)
    attempts = {name: learner.attempts[0] for name, learner in found.items()}
    assert attempts["ana"].problems == {"vector_add": "vector_add.py:3: not UTF-8 (byte 30): save the file as UTF-8"}
    assert "larger than 1 MiB" in attempts["ben"].problems["vector_add"]
    assert attempts["dan"].notes == ("vector_add.py is a symbolic link: not read",)
    assert attempts["cyd"].notes == ("vector_add.py is no plain file: not read",)
    assert "symbolic link" in str(attempts["eva"].refused)
    assert "no zip file" in str(attempts["fay"].refused)
    assert attempts["ivy"].refused == "ivy.py is no plain file"
    assert files(found["gus"])
    for name in ("cyd", "dan", "hal"):
        assert not attempts[name].files
        assert not attempts[name].refused


def test_attempts_are_in_the_order_of_time(folder: Path) -> None:
    for number, second in ((1, 300), (2, 100), (10, 200)):
        os.utime(put(folder / "ana" / f"attempt-{number}" / "vector_add.py"), (second, second))
    names = [(attempt.name, attempt.submitted.timestamp()) for attempt in read(folder)["ana"].attempts]
    assert names == [("attempt-2", 100), ("attempt-10", 200), ("attempt-1", 300)]


def test_times_come_from_the_table_then_the_folder_then_the_files(folder: Path) -> None:
    for name in ("ana", "ben", "cyd"):
        os.utime(put(folder / name / "vector_add.py"), (1000, 1000))
    put(folder / "ana" / "submitted_at", b"2026-12-01T10:00:00+01:00\n")
    put(folder / "ben" / "submitted_at", b"2026-12-01T10:00:00+01:00\n")
    put(folder / "submitted_at.csv", b"learner,time\nana,2026-12-02T08:00:00Z\n")
    times = {name: learner.attempts[0].submitted for name, learner in read(folder).items()}
    assert times["ana"] == datetime(2026, 12, 2, 8, tzinfo=UTC)
    assert times["ben"] == datetime(2026, 12, 1, 9, tzinfo=UTC)
    assert times["cyd"].timestamp() == 1000
    put(folder / "submitted_at.csv", b"ana,yesterday\n")
    with pytest.raises(NoSubmissions, match=r"submitted_at\.csv:1: 'yesterday' is no time"):
        read(folder)


def test_names_alike_do_not_share_a_folder_of_results(folder: Path) -> None:
    put(folder / "ana" / "vector_add.py")
    put(folder / "Ana.py")
    put(folder / "ana.zip", b"")
    put(Path(os.fsdecode(os.fsencode(folder) + b"/b\xff.py")))
    names = list(read(folder))
    assert len(names) == len({name.casefold() for name in names}) == 4
    assert "b\N{REPLACEMENT CHARACTER}" in names


def test_results_of_an_earlier_run_are_nobodys_work(folder: Path) -> None:
    put(folder / "ana" / "mine.py")
    for place in (folder, folder / "ana"):
        put(place / "homework-results" / "journal.jsonl", b"")
        put(place / "homework-results" / "sources" / "abc.py")
    found = read(folder)
    assert list(found) == ["ana"]
    assert files(found["ana"]) == {"vector_add": "mine.py"}


def test_nothing_to_grade_is_told(folder: Path) -> None:
    with pytest.raises(NoSubmissions, match="holds no submission"):
        read(folder)
    with pytest.raises(NoSubmissions, match="does not exist"):
        read(folder / "none")
