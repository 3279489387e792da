from __future__ import annotations

from pathlib import Path

import pytest

from tutor import answers
from tutor.course.loader import load
from tutor.course.model import Bug, Match, Mend, Open, Quiz


@pytest.fixture
def bug(small_course: Path) -> Bug:
    item = load(small_course / "modules").item("m01.bug.mask")
    assert isinstance(item, Bug)
    return item


@pytest.mark.parametrize(("chosen", "score"), [({1, 2}, 1.0), ({1}, 0.5), ({0, 1}, 0.0), ({0}, 0.0), ({0, 1, 2}, 0.5)])
def test_several_right_options_must_all_be_ticked(small_course: Path, chosen: set[int], score: float) -> None:
    quiz = load(small_course / "modules").item("m01.quiz.b")
    assert isinstance(quiz, Quiz)
    mark = answers.mark_quiz(quiz, chosen)
    assert (mark.correct, mark.score) == (chosen == {1, 2}, score)


def test_a_match_shows_the_right_side_in_another_order(small_course: Path) -> None:
    item = load(small_course / "modules").item("m01.match.words")
    assert isinstance(item, Match)
    order = answers.shuffled_right(item)
    assert sorted(order) == [0, 1, 2]
    assert order != (0, 1, 2)
    assert answers.mark_match(item, {0: 0, 1: 1, 2: 2}).correct
    assert answers.mark_match(item, {0: 0, 1: 2}).score == pytest.approx(1 / 3)


def test_an_open_answer_passes_from_70_percent(small_course: Path) -> None:
    item = load(small_course / "modules").item("m01.open.why")
    assert isinstance(item, Open)
    assert not answers.mark_open(item, [0]).correct  # 2 of 3 points
    assert answers.mark_open(item, [0, 1, 1]).score == 1.0


def test_the_graded_file_has_the_imports_and_lines_map_back(bug: Bug) -> None:
    source = answers.bug_source(bug)
    assert source.startswith("import torch\nimport triton\nimport triton.language as tl\n")
    line = source.split("\n").index("    tl.store(x)") + 1
    assert answers.submission_line(bug, line) == 2
    assert answers.mark_bug_line(bug, 2).correct
    assert not answers.mark_bug_line(bug, 1).correct


def test_a_mend_replaces_inserts_and_deletes_lines(bug: Bug) -> None:
    assert "    tl.store(x, mask=m)\n" in answers.mended_source(bug)
    assert (
        answers.mended_source(bug, {2: "    a\n    b"}, imports=False) == "def kernel(x):\n    a\n    b\n    return x\n"
    )
    assert answers.mended_source(bug, {2: ""}, imports=False) == "def kernel(x):\n    return x\n"


def test_a_typed_line_takes_the_indentation_of_the_old_one(bug: Bug) -> None:
    assert answers.indented(bug, 2, "tl.store(x, mask=m)") == "    tl.store(x, mask=m)"
    assert answers.indented(bug, 2, "  as typed") == "  as typed"
    assert answers.indented(bug, 2, "") == ""


def test_the_same_mend_may_be_spaced_otherwise(bug: Bug) -> None:
    assert answers.same_mend(bug, {2: "    tl.store(x,mask = m)  # mine"})
    assert not answers.same_mend(bug, {2: "    tl.store(x, mask=n)"})
    assert not answers.same_mend(bug, {2: "    tl.store("})
    assert isinstance(bug.mends[0], Mend)
