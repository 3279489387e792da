"""review, progress, export and import as commands."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Run
from tutor.progress import Progress

Past = Callable[..., Progress]
ASKED = ("m01.quiz.a", "m01.quiz.b", "m01.match.words", "m01.predict.speed")
RIGHT = {
    "m01.quiz.a": "1\n",
    "m01.quiz.b": "2,3\n",
    "m01.predict.speed": "2\n",
    "m01.bug.mask": "2\ntl.store(x, mask=m)\n",
}


@pytest.fixture
def answered(work: Path) -> Past:
    """Items answered right so many days ago, in the workspace of `command`."""

    def record(*items: str, days: float = 3) -> Progress:
        progress = Progress.open(work / ".triton-prep" / "progress.sqlite3", clock=lambda: time.time() - days * 86400)
        for item in items:
            progress.record_answer(item, item.split(".")[1], correct=True, score=1.0, seconds=60)
        progress.close()
        return progress

    return record


def test_nothing_is_due_at_first_and_the_reason_is_said(command: Run, work: Path) -> None:
    done = command("review")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Nothing is due. What you answer comes back here")
    assert command("review", "--list").returncode == 0


def test_what_is_due_is_asked_and_comes_back_later(command: Run, answered: Past) -> None:
    answered("m01.quiz.a", "m01.bug.mask", "m01.exercise.row-sum")
    due = json.loads(command("review", "--json").stdout)
    assert due["due"][-1]["exercise"] == "row_sum"
    stdin = "".join(RIGHT[each["id"]] for each in due["due"][:-1])
    done = command("review", "--plain", stdin=stdin)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 of 2 · Tiny module" in done.stdout
    assert "2 of 2 right." in done.stdout
    assert "Counts as good: comes back in" in done.stdout
    assert "Sum: triton-prep reset row_sum, then triton-prep grade row_sum" in done.stdout
    left = json.loads(command("review", "--json").stdout)
    assert [each["id"] for each in left["due"]] == ["m01.exercise.row-sum"]


def test_a_wrong_answer_counts_as_again_and_ends_in_1(command: Run, answered: Past) -> None:
    answered("m01.quiz.a")
    done = command("review", stdin="2\n")
    assert done.returncode == 1
    assert "Counts as again: comes back tomorrow." in done.stdout
    assert "The next review is tomorrow (1 item)." in done.stdout


def test_when_the_input_ends_the_rest_stays_due_and_the_answers_are_kept(command: Run, answered: Past) -> None:
    answered("m01.quiz.a", "m01.quiz.b")
    first = json.loads(command("review", "--json").stdout)["due"][0]["id"]
    done = command("review", stdin=RIGHT[first])
    assert done.returncode == 1
    assert done.stderr == "Stopped after 1 of 2. The others stay due.\n"
    assert [each["id"] for each in json.loads(command("review", "--json").stdout)["due"]] != [first]


def test_the_list_and_the_limit(command: Run, answered: Past) -> None:
    answered(*ASKED)
    listed = command("review", "--list", "--limit", "3").stdout
    assert listed.startswith("Due: 3 questions (about 6 min). Left for later: 1 more.")
    assert len(listed.splitlines()) == 4
    assert command("review", "--limit", "0").returncode == 2


def test_json_and_list_make_nothing_on_disk(command: Run, work: Path) -> None:
    command("review", "--json")
    command("review", "--list")
    command("progress", "--json")
    assert not work.exists()


def test_grading_an_exercise_that_is_due_moves_it_on(command: Run, answered: Past, work: Path) -> None:
    answered("m01.exercise.vector-add")
    file = work / "01-tiny" / "vector_add.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text("# mine\n")
    assert command("grade", "vector_add").returncode == 0
    assert json.loads(command("review", "--json").stdout)["due"] == []


def test_progress_gains_reviews_concepts_streak_and_times(command: Run, answered: Past) -> None:
    answered("m01.quiz.a", days=1)
    answered("m01.quiz.b", days=3)
    command("quiz", "m01.predict.speed", stdin="2\n")
    found = json.loads(command("progress", "--json").stdout)
    assert (found["schema"], found["done"], found["attempts"]) == (1, 3, 3)
    assert found["streak"] == {"days": 2, "longest": 2, "answers_today": 1}
    assert found["review"]["due"] == 1
    assert found["next_best"] == {"kind": "review", "item": None, "words": "Review 1 question (about 2 min)"}
    by_id = {each["id"]: each for each in found["items"]}
    assert (by_id["m01.quiz.a"]["best_seconds"], by_id["m01.quiz.a"]["rating"]) == (60, "good")
    text = command("progress").stdout
    assert "Right answers, each at its quickest: 60 s on average." in text
    assert "3 answers, 1 today; 2 days in a row, 2 at most." in text
    assert "Due: 1 question (about 2 min)\n     triton-prep review" in text


def test_an_export_goes_to_another_workspace_and_nothing_is_lost(command: Run, answered: Past, tmp_path: Path) -> None:
    answered("m01.quiz.a", "m01.quiz.b")
    assert command("export", "progress", "mine.json").returncode == 0
    other = str(tmp_path / "other")
    done = command("import", "mine.json", "--workspace", other)
    assert (done.returncode, done.stdout) == (0, "2 of 2 attempts were new; 2 items changed.\n")
    again = command("import", "mine.json", "--workspace", other)
    assert again.stdout == "Everything in it was here already (2 attempts).\n"
    piped = command("import", "-", "--workspace", str(tmp_path / "third"), stdin=command("export", "progress").stdout)
    assert piped.stdout.startswith("2 of 2 attempts were new")
    due = command("review", "--json", "--workspace", other)
    assert len(json.loads(due.stdout)["due"]) == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "missing.json"), "cannot be read"),
        (("import", "bad.json"), "Nothing was imported"),
        (("export", "everything"), "export anki FILE"),
        (("export", "anki"), "An Anki deck is a file"),
        (("export", "progress", "bad.json/x.json"), "cannot be written"),
        (("export", "anki", "bad.json/x.apkg"), "cannot be written"),
    ],
)
def test_wrong_usage_ends_in_2_and_says_what_to_do(
    command: Run, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "bad.json").write_text('{"schema": 1}')
    done = command(*arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert said in done.stderr


def test_an_anki_deck_is_written_and_without_the_package_it_says_what_to_install(command: Run, tmp_path: Path) -> None:
    pytest.importorskip("genanki")
    done = command("export", "anki", "deck.apkg")
    assert (done.returncode, (tmp_path / "deck.apkg").is_file()) == (0, True)
    assert done.stderr.startswith("3 cards: deck.apkg.")
    (tmp_path / "genanki.py").write_text("raise ImportError")
    without = command("export", "anki", "other.apkg", PYTHONPATH=f"{tmp_path}:{Path(__file__).parents[1]}")
    assert without.returncode == 3
    assert "pip install genanki" in without.stderr


def test_a_newer_file_is_left_alone_by_an_import(command: Run, answered: Past, work: Path) -> None:
    answered("m01.quiz.a")
    command("export", "progress", "mine.json")
    file = work / ".triton-prep" / "progress.sqlite3"
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    before = file.read_bytes()
    done = command("import", "mine.json")
    assert done.returncode == 3
    assert "newer triton-prep" in done.stderr
    assert file.read_bytes() == before
