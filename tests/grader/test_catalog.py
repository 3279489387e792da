from __future__ import annotations

import pytest

from grader.catalog import BrokenProblem, UnknownExercise, _stated, exercises, find
from grader.grade import load_problem


def test_every_exercise_has_stub_problem_and_solution_and_loads():
    assert len(exercises()) >= 20
    for files in exercises():
        assert files.stub.exists() and files.solution.exists()
        problem = load_problem(files)
        assert (problem.title, problem.entry, problem.hints) == (files.title, files.entry, files.hints)


def test_a_near_name_is_suggested():
    with pytest.raises(UnknownExercise, match="softmax"):
        find("sofmax")


def test_a_problem_file_without_literals_names_file_and_line(tmp_path):
    path = tmp_path / "problem.py"
    path.write_text("title = 'x'\nPROBLEM = Problem(title=title, entry='f', hints=('a', 'b', 'c'))\n")
    with pytest.raises(BrokenProblem, match=r"problem\.py:2"):
        _stated(path)
