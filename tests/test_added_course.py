"""A team's own modules beside the built-in course: one file, or a directory with exercises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import PROBLEM, STUB, Run

TEAM = """\
id: m21
title: Our kernels
blurb: What we ask.
probes: Ours.
items:
  - kind: quiz
    id: m21.quiz.ours
    title: Ours
    question: What does `kernel[grid](x)` do?
    options:
      - {text: Launches, why: Yes., correct: true}
      - {text: Indexes, why: No.}
  - kind: exercise
    id: m21.exercise.ours
    title: Ours
    exercise: team_add
    brief: Add.
"""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    root = tmp_path / "team"
    (root / "modules").mkdir(parents=True)
    (root / "modules" / "21-ours.yaml").write_text(TEAM, encoding="utf-8")
    folder = root / "exercises" / "21-ours" / "team_add"
    folder.mkdir(parents=True)
    (folder / "stub.py").write_text(STUB.format(slug="team_add"), encoding="utf-8")
    (folder / "problem.py").write_text(PROBLEM.format(slug="team_add"), encoding="utf-8")
    (root / "solutions" / "21-ours").mkdir(parents=True)
    (root / "solutions" / "21-ours" / "team_add.py").write_text("# ours\n", encoding="utf-8")
    return root


def test_an_added_course_stands_beside_the_built_in_one(command: Run, team: Path, work: Path) -> None:
    listed = command("--course", str(team), "list")
    assert listed.returncode == 0, listed.stderr
    assert "m01.bug.mask" in listed.stdout and "m21.quiz.ours" in listed.stdout
    assert "kernel[grid](x)" in command("--course", str(team), "show", "m21.quiz.ours").stdout
    assert command("--course", str(team), "init").returncode == 0
    assert "team_add" in (work / "21-ours" / "team_add.py").read_text()
    assert command("--course", str(team), "grade", "team_add", "--solutions").returncode == 0
    assert "m21" not in command("list").stdout


def test_check_of_a_path_checks_that_path_only(command: Run, team: Path, course_root: Path) -> None:
    (course_root / "modules" / "01-tiny.yaml").open("a").write(
        "gotchas: [{text: Mine, evidence: [test:tests/no.py::x]}]\n"
    )
    file = team / "modules" / "21-ours.yaml"
    checked = command("check", str(team), "--json")
    groups = {group["name"]: group for group in json.loads(checked.stdout)["groups"]}
    assert groups["schema, ids, pages, code width, evidence names"]["checked"] == 2
    assert groups["exercises prove themselves"]["checked"] == 1
    assert checked.returncode == 0, checked.stdout
    file.write_text(TEAM.replace("correct: true", "correct: false"))
    broken = command("check", str(file))
    assert broken.returncode == 1
    assert f"{file}:10: m21.quiz.ours: no option is right" in broken.stdout


def test_one_module_file_is_a_course_too(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "22-questions.yaml"
    file.write_text(TEAM.replace("m21", "m22")[: TEAM.index("  - kind: exercise")])
    assert "m22.quiz.ours" in command("--course", str(file), "list").stdout
    assert command("check", str(file), "--no-evidence").returncode == 0


@pytest.mark.parametrize("name", ["nowhere", "work"])
def test_a_folder_that_is_no_course_is_refused_with_what_belongs_there(command: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "work").mkdir()
    refused = command("--course", str(tmp_path / name), "list")
    assert refused.returncode == 2
    assert str(tmp_path / name) in refused.stderr and "modules/" in refused.stderr


def test_an_exercise_name_that_is_taken_is_refused(command: Run, team: Path) -> None:
    folder = team / "exercises" / "21-ours"
    (folder / "team_add").rename(folder / "vector_add")
    refused = command("--course", str(team), "hint", "vector_add")
    assert refused.returncode == 3 and "is an exercise already" in refused.stderr
