"""The recipes of docs/homework, each run step by step in a folder of its own; and the formats that they hand on."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest
import yaml

from tests.conftest import REPOSITORY
from tests.homework import gradescope_format
from tests.homework.conftest import fill
from tests.homework.marks import graded, mark, timed, verdict
from tutor.homework.assignment import Exercise, Late
from tutor.homework.results import gradescope, junit, told

RECIPES = REPOSITORY / "docs" / "homework"
ASSIGNMENT = """\
title: Week 1
due: 2026-12-01T12:00:00Z
late: {policy: linear, lose_per_day: 50}
exercises: [{exercise: vector_add, points: 3}, {exercise: row_sum, points: 1}]
"""
GOOD = "# fine\n"
BAD = "# fake: wrong_answer\n# cause: missing_mask\n"


@pytest.fixture
def tools(tmp_path: Path, environment: dict[str, str]) -> dict[str, str]:
    """What the recipes call: the command from this checkout; installers that write down what they were asked."""
    folder = tmp_path / "bin"
    called = tmp_path / "called"
    scripts = {"triton-prep": f'exec "{sys.executable}" -m tutor "$@"'}
    scripts |= {name: f'echo "{name} $*" >> "{called}"' for name in ("apt-get", "sudo", "pip")}
    for name, line in scripts.items():
        fill(folder, {name: f"#!/bin/bash\n{line}\n"})
        (folder / name).chmod(0o755)
    return {**environment, "PATH": f"{folder}:{environment['PATH']}", "CALLED": str(called)}


def bash(script: str | Path, environment: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    named = [str(script)] if isinstance(script, Path) else ["-e", "-o", "pipefail", "-c", script]
    return subprocess.run(
        ["bash", *named], env=environment, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def autograder(folder: Path, tools: dict[str, str], submission: dict[str, str]) -> dict[str, str]:
    """Gradescope's folders, with a python and a triton-prep where setup.sh puts them."""
    fill(
        folder,
        {"source/assignment.yaml": ASSIGNMENT, **{f"submission/{name}": text for name, text in submission.items()}},
    )
    (folder / "venv" / "bin").mkdir(parents=True)
    (folder / "venv" / "bin" / "python").symlink_to(sys.executable)
    shutil.copy(Path(tools["PATH"].split(":")[0]) / "triton-prep", folder / "venv" / "bin")
    return {**tools, "AUTOGRADER": str(folder)}


def test_gradescope_grades_a_submission_that_it_says_is_late(tools: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "autograder"
    env = autograder(folder, tools, {"my/vector_add.py": GOOD, "row_sum.py": BAD})
    metadata = {"id": 1, "created_at": "2026-12-02T04:00:00.365935-08:00", "users": [{"name": "Ana"}]}
    (folder / "submission_metadata.json").write_text(json.dumps(metadata))  # late by a day
    done = bash(RECIPES / "gradescope" / "run_autograder", env, folder)
    assert done.returncode == 0, done.stderr
    found = gradescope_format.parsed((folder / "results" / "results.json").read_bytes())
    assert found.score == pytest.approx(1.5, abs=1e-3)
    assert "50 % of the points are kept" in found.output
    by_name = {test.name: test for test in found.tests}
    assert (by_name["vector_add"].score, by_name["vector_add"].max_score) == (3.0, 3.0)
    assert (by_name["row_sum"].status, by_name["row_sum: n=1001"].status) == ("failed", "failed")
    assert "The store has no mask." in by_name["row_sum"].output


def test_gradescope_is_given_no_score_where_there_is_no_grade(tools: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "autograder"
    env = autograder(folder, tools, {"vector_add.py": "# die\n"})
    done = bash(RECIPES / "gradescope" / "run_autograder", env, folder)
    assert "ended with exit code 3" in done.stderr
    assert "score" not in json.loads((folder / "results" / "results.json").read_bytes())
    (folder / "source" / "assignment.yaml").write_text("points: 3\n")
    (folder / "results" / "results.json").unlink()
    done = bash(RECIPES / "gradescope" / "run_autograder", env, folder)
    assert done.returncode != 0
    assert "assignment.yaml:1" in done.stderr
    assert not (folder / "results" / "results.json").exists()


def test_gradescopes_image_is_set_up_from_the_wheel_in_the_zip(tools: dict[str, str], tmp_path: Path) -> None:
    """A stand-in for the wheel: installing PyTorch takes minutes."""
    folder = tmp_path / "autograder"
    wheel = folder / "source" / "triton_prep-9.9-py3-none-any.whl"
    wheel.parent.mkdir(parents=True)
    info = "triton_prep-9.9.dist-info"
    files = {
        "stand_in.py": "import sys\ndef main(): print('doctor?', sys.argv[1:])\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: triton-prep\nVersion: 9.9\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[console_scripts]\ntriton-prep = stand_in:main\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    env = {**tools, "AUTOGRADER": str(folder), "PIP_NO_INDEX": "1", "PIP_EXTRA_INDEX_URL": ""}
    done = bash(RECIPES / "gradescope" / "setup.sh", env, folder)
    assert done.returncode == 0, done.stderr
    assert "doctor? ['doctor']" in done.stdout
    assert "libseccomp2" in Path(tools["CALLED"]).read_text()


def reported(encoded: str) -> tuple[float, float]:
    """Points as `classroom-resources/autograding-grading-reporter` counts them (src/notify-classroom.js)."""
    results = json.loads(base64.b64decode(encoded))
    assert results["status"] in ("pass", "fail", "error")
    return sum(test["score"] for test in results["tests"]), results["max_score"]


@pytest.mark.parametrize(("text", "points"), [(GOOD, 4), (BAD, 3)])
def test_the_workflow_hands_the_points_to_github_classroom(
    tools: dict[str, str], tmp_path: Path, text: str, points: float
) -> None:
    workflow = yaml.safe_load((RECIPES / "github" / "classroom.yml").read_text())
    steps = {step["name"]: step for step in workflow["jobs"]["grade"]["steps"]}
    assignment = ASSIGNMENT.replace("due: 2026-12-01", "due: 2036-12-01")
    repository = fill(
        tmp_path / "ana-week-1",
        {".github/assignment.yaml": assignment, "01-tiny/vector_add.py": GOOD, "01-tiny/row_sum.py": text},
    )
    (tmp_path / "temp").mkdir()
    files = {
        "GITHUB_OUTPUT": tmp_path / "output",
        "GITHUB_STEP_SUMMARY": tmp_path / "summary",
        "RUNNER_TEMP": tmp_path / "temp",
    }
    env = {**tools, **{name: str(path) for name, path in files.items()}}
    for name, step in steps.items():
        if "run" in step:
            done = bash(step["run"], env, repository)
            assert done.returncode == 0, (name, done.stderr)
    assert "pip install triton-prep" in Path(tools["CALLED"]).read_text()
    name, _, value = (tmp_path / "output").read_text().rstrip("\n").partition("=")
    (variable,) = steps["Report"]["env"]
    assert steps["Report"]["env"][variable] == f"${{{{ steps.{steps['Grade']['id']}.outputs.{name} }}}}"
    assert variable == f"{steps['Report']['with']['runners'].upper()}_RESULTS"  # where the reporter looks
    assert reported(value) == (points, 4)
    assert "# Week 1" in (tmp_path / "summary").read_text()


def test_a_learner_grades_before_pushing_and_is_stopped_where_it_falls_short(
    tools: dict[str, str], tmp_path: Path
) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    workspace = fill(
        tmp_path / "work", {"assignment.yaml": ASSIGNMENT, "01-tiny/vector_add.py": GOOD, "01-tiny/row_sum.py": BAD}
    )
    env = {**tools, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    subprocess.run(["git", "init", "-q", str(workspace)], check=True, env=env)
    hook = workspace / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    shutil.copy(RECIPES / "git" / "pre-push", hook)
    inside = workspace / "01-tiny"
    done = bash(hook, env, inside)
    assert done.returncode == 1
    assert "The store has no mask." in done.stdout
    (inside / "row_sum.py").write_text(GOOD)
    assert bash(hook, env, inside).returncode == 0
    assert (workspace / ".triton-prep" / "homework" / "learners" / "work" / "feedback.md").is_file()


def marks() -> list[tuple[str, object, Exercise]]:
    """Every kind of mark that there is."""
    asked = Exercise(exercise="vector_add", points=4)
    hidden = Exercise(exercise="vector_add", points=4, hidden_cases=("n=1001",))
    odd = verdict(
        "wrong_answer", cases=[{"name": "n\x00\x1b[1m", "status": "wrong_answer", "message": "]]> \ud800 <b>"}]
    )
    return [
        ("passed", mark(graded(verdict())), asked),
        ("wrong", mark(graded(verdict("wrong_answer"))), asked),
        ("hidden case", mark(graded(verdict("wrong_answer"))), hidden),
        ("hidden run", mark(graded(verdict()), graded(verdict("wrong_answer"))), asked),
        ("no cases", mark(graded(verdict("import_error", cases=[]))), asked),
        ("beside the cases", mark(graded(verdict("not_triton", cases=verdict()["cases"]))), asked),
        ("timed", mark(graded(timed(80.0)), timing=True), asked),
        ("unknown", mark(graded(None, "lost")), asked),
        ("late", mark(graded(verdict()), late=Late(policy="none")), asked),
        ("odd text", mark(graded(odd), learner="<&\x07 ana"), asked),
    ]


@pytest.mark.parametrize("name", [name for name, _, _ in marks()])
def test_gradescope_and_junit_files_are_as_their_formats_say(name: str) -> None:
    xmlschema = pytest.importorskip("xmlschema", reason="xmlschema is not installed")
    result, asked = next((result, asked) for one, result, asked in marks() if one == name)
    said = [told.tell(one, asked) for one in result.counted.marks]  # type: ignore[attr-defined]
    made = gradescope.results_json(result, said, "Homework", 1.0)  # type: ignore[arg-type]
    text = json.dumps(made, ensure_ascii=False).encode("utf-8", "replace")  # as files are written
    if name == "unknown":
        with pytest.raises(msgspec.ValidationError, match="a score is required"):
            gradescope_format.parsed(text)
    else:
        gradescope_format.parsed(text)
    schema = xmlschema.XMLSchema(str(REPOSITORY / "tests" / "data" / "junit.xsd"))
    schema.validate(junit.junit_xml(result.learner, said).encode("utf-8", "replace"))  # type: ignore[attr-defined]
