"""The file under an old format, a full disk, two processes, a move. `data/progress-schema-1.sqlite3` was written by the
program that knew format 1."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tutor import progress_file
from tutor.progress import SCHEMA_VERSION, Progress
from tutor.schedule import AGAIN, EASY, GOOD, HARD

OLD_FILE = REPOSITORY / "tests" / "data" / "progress-schema-1.sqlite3"
MINUTES = {"m01.quiz.a": 2, "m01.quiz.b": 2}
ALIASES = {"m01.quiz.was-b": "m01.quiz.b"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD_FILE, tmp_path / "progress.sqlite3"))


def opened(file: Path) -> Progress:
    return Progress.open(file, aliases=ALIASES, minutes=MINUTES)


def answer(progress: Progress, item: str) -> None:
    progress.record_answer(item, "quiz", correct=True, score=1.0, seconds=60)


def test_an_old_file_is_brought_up_to_date_with_cards_replayed_from_its_attempts(old: Path) -> None:
    progress = opened(old)
    cards = progress.cards()
    assert progress.query("PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert {item: (card.reviews, card.lapses, card.rating) for item, card in cards.items()} == {
        "m01.quiz.a": (3, 0, GOOD),  # wrong, then 20 s, then 100 s of two minutes
        "m01.quiz.b": (2, 0, HARD),  # its first answer has the old id; the second took 500 s
        "m01.bug.mask": (1, 0, HARD),  # right at the second try
        "m01.exercise.vector-add": (1, 0, HARD),  # a miss first; the same file three days later does not count
        "m01.match.words": (1, 0, HARD),  # after a hint
        "m01.exercise.row-sum": (1, 0, AGAIN),  # after giving up
    }
    ratings = [attempt.rating for attempt in reversed(progress.attempts("m01.quiz.a"))]
    assert ratings == [AGAIN, GOOD, EASY, GOOD]
    assert (cards["m01.quiz.a"].reviewed - cards["m01.quiz.b"].reviewed).days == 1
    assert len(progress.attempts()) == 13
    assert progress.state("m01.lesson.launch").passed
    assert (progress.setting("theme"), progress.resume()) == ("nord", "m01.quiz.b")


def test_the_old_file_is_kept_beside_the_new_one_and_said(old: Path) -> None:
    progress = opened(old)
    kept = old.with_name("progress.sqlite3.schema-1")
    assert str(kept) in progress.notices[0]
    original = sqlite3.connect(f"{OLD_FILE.as_uri()}?immutable=1", uri=True)  # nothing is to appear beside it
    with closing(original), closing(sqlite3.connect(kept)) as database:
        assert list(database.iterdump()) == list(original.iterdump())
    assert opened(old).notices == ()


def test_a_card_grows_on_as_if_the_file_had_always_been_new(old: Path, tmp_path: Path) -> None:
    migrated = opened(old)
    afresh = opened(tmp_path / "new.sqlite3")
    for attempt in reversed(migrated.attempts()):
        afresh.clock = lambda at=attempt.at: at  # type: ignore[misc]
        afresh.record_answer(
            attempt.item_id,
            attempt.kind,
            correct=attempt.correct,
            score=attempt.score,
            seconds=attempt.seconds,
            detail=attempt.detail,
        )
    for item in ("m01.quiz.a", "m01.quiz.b", "m01.bug.mask", "m01.exercise.vector-add"):
        assert afresh.cards()[item] == migrated.cards()[item]


def test_several_processes_bring_the_same_file_up_to_date_once(old: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        all_cards = list(pool.map(lambda _: opened(old).cards(), range(8)))
    assert all(cards == all_cards[0] for cards in all_cards)
    assert len(all_cards[0]) == 6
    assert opened(old).notices == ()


def test_a_process_that_was_second_finds_the_work_done(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(old)
    seen = iter([1])  # what it read before the other one had finished
    actual = progress_file._version
    monkeypatch.setattr(progress_file, "_version", lambda connection: next(seen, None) or actual(connection))
    second = opened(old)
    assert (second.notices, second.path) == ((), old)
    assert len(second.cards()) == 6


def test_what_fails_halfway_leaves_the_old_file(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("tutor.progress_file._rate_old_attempts", full)
    progress = opened(old)
    assert "disk is full" in progress.notices[0]
    monkeypatch.undo()
    with sqlite3.connect(old) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
    database.close()
    assert len(opened(old).cards()) == 6


def test_a_full_disk_ends_neither_the_session_nor_what_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "progress.sqlite3"
    progress = Progress.open(file)
    heard: list[str] = []
    progress.on_notice = heard.append
    answer(progress, "m01.quiz.kept")
    pages = progress.query("PRAGMA page_count")[0][0]
    progress._connection.execute(f"PRAGMA max_page_count = {pages}")  # what SQLite then says is what a full disk gives
    for number in range(200):
        progress.record_answer(f"m01.quiz.n{number:03}", "quiz", correct=True, score=1.0, detail={"long": "x" * 200})
    assert len(heard) == 1
    assert "full" in heard[0]
    assert "safe there" in heard[0]
    assert len(progress.states()) == 201
    unkept = progress.parting()
    assert unkept is not None
    assert "m01.quiz.n199" not in unkept or "more" in unkept
    kept = Progress.open(file)
    assert kept.notices == ()
    assert len(kept.states()) + len(set(progress.unkept)) == 201
    assert kept.state("m01.quiz.kept").passed
    assert not set(kept.states()) & set(progress.unkept)


def test_a_process_at_its_limit_of_file_size_says_so_once_and_goes_on(tmp_path: Path) -> None:
    """RLIMIT_FSIZE gives a real failed write, in the middle of the log."""
    file = tmp_path / "progress.sqlite3"
    answer(Progress.open(file), "m01.quiz.kept")
    source = f"""
import resource
from pathlib import Path
from tutor.progress import Progress
progress = Progress.open(Path({str(file)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
kept = 0
for number in range(100):
    progress.record_answer(f"m01.quiz.n{{number:03}}", "quiz", correct=True, score=1.0, detail={{"long": "x" * 1000}})
    kept += progress.path is not None
print(kept, len(progress.notices), len(progress.states()), len(progress.unkept))
"""
    done = subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    kept, notices, states, unkept = map(int, done.stdout.split())
    assert 0 < kept < 100
    assert (notices, states, unkept) == (1, 101, 100 - kept)
    again = Progress.open(file)
    assert again.notices == ()
    assert len(again.states()) == kept + 1


def test_two_programs_at_once_see_each_others_answers_and_cards(tmp_path: Path) -> None:
    one, two = Progress.open(tmp_path / "p.sqlite3"), Progress.open(tmp_path / "p.sqlite3")
    answer(one, "m01.quiz.a")
    answer(two, "m01.quiz.b")
    for each in (one, two):
        assert set(each.cards()) == {"m01.quiz.a", "m01.quiz.b"}
    two.record_answer("m01.quiz.a", "quiz", correct=False, score=0.0)
    assert one.state("m01.quiz.a").attempts == 2
    assert one.cards() == two.cards()


def test_a_workspace_that_moves_takes_its_progress_along(tmp_path: Path) -> None:
    before, after = tmp_path / "here", tmp_path / "there" / "deep"
    progress = Progress.open(before / ".triton-prep" / "progress.sqlite3")
    progress.record_answer("m01.quiz.a", "quiz", correct=True, score=1.0)
    progress.close()
    after.parent.mkdir()
    before.rename(after)
    moved = Progress.open(after / ".triton-prep" / "progress.sqlite3")
    assert moved.notices == ()
    assert moved.state("m01.quiz.a").passed
    answer(moved, "m01.quiz.b")
    assert len(moved.cards()) == 2
    assert str(tmp_path).encode() not in (after / ".triton-prep" / "progress.sqlite3").read_bytes()


def test_every_commit_waits_for_the_disk(tmp_path: Path) -> None:
    progress = Progress.open(tmp_path / "p.sqlite3")
    assert progress.query("PRAGMA journal_mode") == [("wal",)]
    assert progress.query("PRAGMA synchronous") == [(2,)]  # FULL


def test_what_can_be_read_and_not_written_is_shown_all_the_same(old: Path) -> None:
    """A directory where the log should be: SQLite can open the file, and cannot write beside it."""
    old.with_name("progress.sqlite3-wal").mkdir()
    before = old.read_bytes()
    progress = opened(old)
    assert "What is there is shown" in progress.notices[0]
    assert progress.state("m01.quiz.a").passed
    assert len(progress.cards()) == 6
    answer(progress, "m01.quiz.c")
    assert progress.parting() == "Not kept, because the progress file could not be written: m01.quiz.c."
    assert old.read_bytes() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_old_file_in_a_place_that_cannot_be_written_is_left(old: Path) -> None:
    old.parent.chmod(0o555)
    try:
        assert "only until you leave" in opened(old).notices[0]
    finally:
        old.parent.chmod(0o755)
    assert old.read_bytes() == OLD_FILE.read_bytes()
