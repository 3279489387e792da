from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tutor.progress import SCHEMA_VERSION, Progress


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "progress.sqlite3"


def answer(progress: Progress, item: str = "m01.quiz.a", *, correct: bool = True) -> None:
    progress.record_answer(item, "quiz", correct=correct, score=float(correct), seconds=2.5, detail={"chosen": [1]})


def test_an_answer_is_there_after_reopening(file: Path) -> None:
    answer(Progress.open(file))
    again = Progress.open(file)
    (attempt,) = again.attempts()
    assert (attempt.item_id, attempt.kind, attempt.correct, attempt.seconds) == ("m01.quiz.a", "quiz", True, 2.5)
    assert attempt.detail == {"chosen": [1]}
    assert attempt.at > 1_700_000_000
    assert again.state("m01.quiz.a").passed


def test_a_later_wrong_answer_does_not_take_back_a_pass(file: Path) -> None:
    progress = Progress.open(file)
    answer(progress, correct=False)
    assert not progress.state("m01.quiz.a").passed
    answer(progress, correct=True)
    answer(progress, correct=False)
    state = progress.state("m01.quiz.a")
    assert (state.passed, state.best, state.attempts) == (True, 1.0, 3)
    assert [attempt.correct for attempt in progress.attempts("m01.quiz.a", limit=2)] == [False, True]


def test_pages_hints_giving_up_and_settings_are_kept(file: Path) -> None:
    progress = Progress.open(file)
    progress.record_page("m01.lesson.a", 2)
    progress.record_hint("m01.exercise.x", 2)
    progress.record_hint("m01.exercise.x", 1)
    progress.record_give_up("m01.exercise.x")
    progress.set_setting("theme", "light")
    progress.set_resume("m01.lesson.a")
    again = Progress.open(file)
    assert again.state("m01.lesson.a").position == 2
    assert not again.state("m01.lesson.a").passed
    assert again.state("m01.exercise.x").hints == 2
    assert again.state("m01.exercise.x").gave_up
    assert again.setting("theme") == "light"
    assert again.resume() == "m01.lesson.a"
    again.record_page("m01.lesson.a", 3, finished=True)
    again.record_page("m01.lesson.a", 0)
    assert again.state("m01.lesson.a").passed
    assert again.state("m01.lesson.a").position == 0


def test_what_is_unknown_is_simply_new(file: Path) -> None:
    progress = Progress.open(file)
    assert progress.state("m99.quiz.gone").attempts == 0
    assert progress.resume() is None
    assert progress.setting("theme", "dark") == "dark"


def test_an_old_id_counts_for_the_item_that_has_it_as_an_alias(file: Path) -> None:
    before = Progress.open(file)
    answer(before, "m01.quiz.old")
    before.set_resume("m01.quiz.old")
    after = Progress.open(file, aliases={"m01.quiz.old": "m01.quiz.new"})
    answer(after, "m01.quiz.new", correct=False)
    state = after.state("m01.quiz.new")
    assert (state.passed, state.attempts) == (True, 2)
    assert after.state("m01.quiz.old") == state
    assert len(after.attempts("m01.quiz.new")) == 2
    assert after.resume() == "m01.quiz.new"


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_kept_aside_and_a_new_one_started(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    progress = Progress.open(file)
    assert "damaged" in progress.notices[0]
    (kept,) = file.parent.glob("progress.sqlite3.corrupt-*")
    assert kept.name in progress.notices[0]
    assert kept.read_bytes() == content
    answer(progress)
    assert Progress.open(file).notices == ()
    assert Progress.open(file).state("m01.quiz.a").passed


def test_a_file_of_a_newer_program_is_left_as_it_is(file: Path) -> None:
    first = Progress.open(file)
    answer(first)
    first.close()  # a write-ahead log that is still open would reach the file at some later moment
    with sqlite3.connect(file) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    database.close()
    before = file.read_bytes()
    progress = Progress.open(file)
    assert "newer triton-prep" in progress.notices[0]
    answer(progress, "m01.quiz.b")
    progress.close()
    assert file.read_bytes() == before


def test_a_place_that_cannot_be_written_gives_progress_in_memory(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    progress = Progress.open(blocked / "progress.sqlite3")
    assert "only until you leave" in progress.notices[0]
    assert progress.path is None
    answer(progress)
    assert progress.state("m01.quiz.a").passed


def test_a_disk_that_fails_later_keeps_the_session_going(file: Path) -> None:
    progress = Progress.open(file)
    answer(progress, "m01.quiz.a")
    progress._connection.execute("PRAGMA query_only = ON")  # what SQLite then says is what a read-only disk gives
    answer(progress, "m01.quiz.b")
    assert "no longer" in progress.notices[-1]
    assert progress.state("m01.quiz.a").passed
    assert progress.state("m01.quiz.b").passed


def test_two_at_once_lose_nothing(file: Path) -> None:
    def many(name: str) -> None:
        progress = Progress.open(file)
        for _ in range(25):
            answer(progress, f"m01.quiz.{name}")
        progress.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(many, ["a", "b", "a", "b"]))
    progress = Progress.open(file)
    assert progress.state("m01.quiz.a").attempts == 50
    assert progress.state("m01.quiz.b").attempts == 50


def test_kill_9_right_after_an_answer_loses_nothing(file: Path) -> None:
    source = f"""
from pathlib import Path
from tutor.progress import Progress
progress = Progress.open(Path({str(file)!r}))
for number in range(1000):
    progress.record_answer("m01.quiz.a", "quiz", correct=True, score=1.0)
    print(number + 1, flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", source], cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 20:
            os.kill(process.pid, signal.SIGKILL)
            break
    told = [int(line)] + [int(rest) for rest in process.stdout if rest.endswith("\n")]
    process.wait()
    process.stdout.close()
    progress = Progress.open(file)
    assert progress.notices == ()
    assert progress.state("m01.quiz.a").attempts >= told[-1]
