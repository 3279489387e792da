"""`pytest --triton-prep` in a learner's folder, in a process of its own."""

from __future__ import annotations

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.conftest import STUB
from tests.homework.conftest import fill

pytest_plugins = ["pytester"]

INSTALLED = "triton_prep" in entry_points(group="pytest11").names
PLUGIN = () if INSTALLED else ("-p", "tutor.pytest_plugin")
# of a file that passes, the stand-in judges the first case alone
FILES = {
    "01-tiny/vector_add.py": "# fake: wrong_answer\n# cause: missing_mask\nopen('imported', 'w')\n",
    "01-tiny/row_sum.py": STUB.format(slug="row_sum"),
    "own/row_sum.py": "# fine\n",
    "test_own.py": "def test_own(): pass\n",
}


@pytest.fixture
def log(
    pytester: pytest.Pytester, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Path:
    """A learner's folder, in effect; what the stand-in grader is asked is written here."""
    file = tmp_path / "grader.log"
    for name, value in {**environment, "FAKE_GRADER_LOG": str(file)}.items():
        monkeypatch.setenv(name, value)
    fill(pytester.path, FILES)
    return file


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # xdist's own variables of this run are none of the inner one's
    return pytester.runpytest_subprocess(*PLUGIN, "-p", "no:cacheprovider", "-rs", *arguments)


def graded(log: Path) -> list[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    asked = [json.loads(line.partition(" ")[2]) for line in lines]
    return sorted(Path(one["file"]).parent.name + "/" + one["exercise"] for one in asked if one["op"] == "grade")


def test_nothing_happens_unless_it_is_asked_for(pytester: pytest.Pytester, log: Path) -> None:
    run(pytester).assert_outcomes(passed=1)
    assert not log.exists()


def test_a_test_for_each_case_and_the_diagnosis_where_one_fails(pytester: pytest.Pytester, log: Path) -> None:
    done = run(pytester, "--triton-prep")
    done.assert_outcomes(passed=5, failed=1, skipped=4)
    done.stdout.fnmatch_lines([
        "*vector_add: n=1001*",
        "wrong answer",
        "Why: missing mask",
        "*The store has no mask.*",
        "*line 2:  # cause: missing_mask",
        "*a?i? is 3*",
        "SKIPPED*not started: the file is still the stub",
        "SKIPPED*a case failed",
    ])  # fmt: skip
    assert graded(log) == ["01-tiny/vector_add", "own/row_sum"]
    assert not (pytester.path / "imported").exists()


def test_a_remark_beside_a_pass_is_no_failure_and_shown_on_demand(pytester: pytest.Pytester, log: Path) -> None:
    (pytester.path / "own" / "row_sum.py").write_text("# cause: wrong_device_current\n")
    done = run(pytester, "--triton-prep", "-rP", "own")
    done.assert_outcomes(passed=2, skipped=2)
    done.stdout.fnmatch_lines(["*remark*", "A remark beside the pass: wrong device current", "*line 1:*# cause*"])
    assert "Why" not in done.stdout.str()


def test_cases_are_chosen_and_the_first_failure_ends_it_as_for_any_test(pytester: pytest.Pytester, log: Path) -> None:
    run(pytester, "--triton-prep", "-k", "row_sum and 1000").assert_outcomes(passed=1, deselected=9)
    assert graded(log) == ["own/row_sum"]
    run(pytester, "--triton-prep", "-x").assert_outcomes(passed=1, failed=1, skipped=1)


def test_a_file_named_on_the_command_line_is_graded_and_not_imported(pytester: pytest.Pytester, log: Path) -> None:
    pytester.makeini("[pytest]\ntriton_prep = true\n")
    run(pytester, "01-tiny/vector_add.py").assert_outcomes(passed=2, failed=1, skipped=1)
    assert not (pytester.path / "imported").exists()


def test_workers_of_xdist_grade_nothing_twice(pytester: pytest.Pytester, log: Path) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    run(pytester, "--triton-prep", "-n", "2").assert_outcomes(passed=5, failed=1, skipped=4)
    assert graded(log) == ["01-tiny/vector_add", "own/row_sum"]


def test_no_grader_is_said_and_not_counted_as_a_mistake(
    pytester: pytest.Pytester, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_GRADER_SILENT", "1")
    done = run(pytester, "--triton-prep")
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines(["*no module named torch*"])


def test_what_no_case_shows_is_a_test_of_its_own(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the grader itself and the course."""
    for name in ("TRITON_PREP_GRADER", "TRITON_PREP_COURSE", "TRITON_PREP_COURSES"):
        monkeypatch.delenv(name, raising=False)
    fill(pytester.path, {"gelu.py": "import nothing_there\n"})
    done = run(pytester, "--triton-prep")
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["skipped"] >= 5
    assert "passed" not in outcomes
    done.stdout.fnmatch_lines(["*gelu: the whole*", "the file cannot be imported", "*No module named 'nothing_there'"])
    done.stdout.fnmatch_lines(["SKIPPED*not judged: the file cannot be imported"])
