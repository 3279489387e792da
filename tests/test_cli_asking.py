from __future__ import annotations

import json

import pytest

from tests.conftest import Run


@pytest.mark.parametrize(
    ("item", "answer", "code"),
    [
        ("m01.quiz.a", "1\n", 0),
        ("m01.quiz.a", "2\n", 1),
        ("m01.quiz.a", "nine\n1,2\n7\n\n1\n", 0),
        ("m01.quiz.b", "2,3\n", 0),
        ("m01.quiz.b", "3 2\n", 0),
        ("m01.quiz.b", "2\n", 1),
        ("m01.quiz.b", "1,2,3\n", 1),
        ("m01.predict.speed", "2\n", 0),
        ("m01.open.why", "\n1,2\n", 0),
        ("m01.open.why", "\n2\n", 1),
        ("m01.open.why", "\n0\n", 1),
        ("m01.bug.mask", "2\ntl.store(x, mask=m)\n", 0),
        ("m01.bug.mask", "1\n2\ntl.store(x, mask=m)\n", 0),
        ("m01.bug.mask", "2\ntl.store(x)  # fake: out_of_bounds\n", 1),
        ("m01.bug.mask", "?\n", 1),
    ],
)
def test_an_answer_from_a_pipe_is_marked(command: Run, item: str, answer: str, code: int) -> None:
    done = command("quiz", item, stdin=answer)
    assert done.returncode == code, done.stdout + done.stderr


def test_every_option_shows_its_why(command: Run) -> None:
    done = command("quiz", "m01.quiz.a", stdin="2\n")
    assert "1. ✓ right: Yes [indeed]." in done.stdout
    assert "2. ✗ wrong (yours): No." in done.stdout
    assert "Square brackets hold the grid." in done.stdout


def test_matching_takes_numbers_and_letters(command: Run) -> None:
    shown = command("show", "m01.match.words").stdout
    letters = {line[3:]: line[0] for line in shown.splitlines() if line[1:3] == ". "}
    right = [letters["how many programs [n]"], letters["which lanes"], letters["how far apart"]]
    assert command("quiz", "m01.match.words", stdin=f"1{right[0]} 2{right[1]} 3{right[2]}\n").returncode == 0
    done = command("quiz", "m01.match.words", stdin=f"1{right[1]}, 2={right[0]}, 3 {right[2]}\n")
    assert done.returncode == 1
    assert "1 of 3 pairs are right." in done.stdout


@pytest.mark.parametrize("item", ["m01.quiz.a", "m01.bug.mask", "m01.open.why", "m01.match.words"])
def test_the_end_of_the_input_ends_the_question(command: Run, item: str) -> None:
    done = command("quiz", item, stdin="")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(command("progress", "--json").stdout)["items"] == []


def test_a_module_asks_all_of_its_questions(command: Run) -> None:
    done = command("quiz", "m01", stdin="1\n2,3\n1a\n2\n")
    assert done.returncode == 1  # one pair of the match is not enough
    assert json.loads(command("progress", "--json").stdout)["done"] == 3


def test_the_mended_line_keeps_the_indentation_of_the_line_it_replaces(command: Run) -> None:
    done = command("quiz", "m01.bug.mask", stdin="2\ntl.store(x, mask=m)\n")
    assert "Right: mended." in done.stdout
    assert "The store needs a mask." in done.stdout


def test_without_a_grader_a_mend_is_compared_with_the_authors(command: Run) -> None:
    done = command("quiz", "m01.bug.mask", stdin="2\ntl.store(x,mask = m) # mine\n", FAKE_GRADER_SILENT="1")
    assert done.returncode == 0, done.stderr
    other = command("quiz", "m01.bug.mask", stdin="2\ntl.store(x, mask=other)\n", FAKE_GRADER_SILENT="1")
    assert other.returncode == 3
    assert "no module named torch" in other.stderr


@pytest.mark.parametrize(("item", "advice"), [("m01.lesson.launch", "show"), ("m01.exercise.row-sum", "grade row_sum")])
def test_what_cannot_be_asked_says_what_to_use(command: Run, item: str, advice: str) -> None:
    done = command("quiz", item)
    assert done.returncode == 2
    assert advice in done.stderr
