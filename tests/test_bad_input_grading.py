"""What learners really hand in, through the real grader: the right status, the right exit code, nothing lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from grader import catalog
from tests.conftest import REPOSITORY
from tutor import batch
from tutor.commands.grading import exit_code
from tutor.grading import Event, GradeRequest, VerdictReady

pytestmark = pytest.mark.xdist_group("submissions")  # one worker: the grader imports torch
Grade = Callable[..., "subprocess.CompletedProcess[str]"]
SOLUTION = (catalog.find("vector_add").solution).read_text(encoding="utf-8")
ENTRY = catalog.find("vector_add").entry


@pytest.fixture
def grade(tmp_path: Path) -> Grade:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON")}
    environment = {**kept, "PYTHONPATH": str(REPOSITORY), "TRITON_PREP_WORKSPACE": str(tmp_path / "work")}
    environment["TRITON_PREP_CACHE"] = str(tmp_path / "cache")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tutor", "grade", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run


@dataclass(frozen=True)
class Submission:
    source: str
    status: str
    said: str = ""


SUBMISSIONS = {
    "syntax error": Submission("def add(:\n", "import_error", '"line": 1'),
    "no entry function": Submission("import torch\n", "import_error", ENTRY),
    "wrong signature": Submission(f"def {ENTRY}(x):\n    return x\n", "import_error", ENTRY),
    "sys.exit at import": Submission("import sys\nsys.exit(0)\n", "import_error", "exit"),
    "failing import": Submission("import not_a_module_at_all\n", "import_error", "not_a_module_at_all"),
    "infinite loop": Submission("while True:\n    pass\n", "timeout"),
    "segfault": Submission(
        f"{SOLUTION}\n\ndef {ENTRY}(x, y):\n    import ctypes\n    ctypes.string_at(0)\n", "crashed"
    ),
    "100 MB of printing": Submission(f"for _ in range(1000):\n    print('x' * 100_000)\n{SOLUTION}", "passed"),
}


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Event]:
    """All of them, one after another, by one grader: none may hurt the next."""
    folder = tmp_path_factory.mktemp("submissions")
    files = {name: folder / f"{number}.py" for number, name in enumerate(SUBMISSIONS)}
    for name, file in files.items():
        file.write_text(SUBMISSIONS[name].source)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("TRITON_PREP_GRADER", raising=False)
        patch.delenv("TRITON_INTERPRET", raising=False)
        results = batch.run([job(file) for file in files.values()])
    assert all(file.read_text() == SUBMISSIONS[name].source for name, file in files.items())
    return dict(zip(files, results, strict=True))


def job(file: Path) -> batch.Job:
    return lambda grader: grader.grade(GradeRequest("vector_add", file, backend="interpreter"))


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_whatever_is_handed_in_gets_its_status_and_exit_code(events: dict[str, Event], name: str) -> None:
    event, wanted = events[name], SUBMISSIONS[name]
    assert isinstance(event, VerdictReady), event
    assert event.verdict["status"] == wanted.status, event.verdict
    assert exit_code(event) == (0 if wanted.status == "passed" else 1)
    assert wanted.said in json.dumps(event.verdict)


def test_100_mb_of_printing_is_cut(events: dict[str, Event]) -> None:
    event = events["100 MB of printing"]
    assert isinstance(event, VerdictReady)
    assert event.verdict["output"]["truncated"]
    assert len(json.dumps(event.verdict)) < 1_000_000


@pytest.mark.parametrize("kind", ["missing", "directory", "not UTF-8"])
def test_what_is_no_readable_file_is_wrong_input(grade: Grade, tmp_path: Path, kind: str) -> None:
    file = tmp_path / "mine.py"
    if kind == "directory":
        file.mkdir()
    elif kind == "not UTF-8":
        file.write_bytes(b"x = '\xff\xfe'\n")
    done = grade("vector_add", "--file", str(file))
    assert done.returncode == 2
    assert str(file) in done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_exercise_suggests_the_nearest_without_starting_a_grader(grade: Grade) -> None:
    done = grade("vectoradd")
    assert done.returncode == 2
    assert "vector_add" in done.stderr


def test_a_workspace_that_cannot_be_written_still_grades_a_file(grade: Grade, tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("")
    file = tmp_path / "mine.py"
    file.write_text(SOLUTION)
    done = grade("vector_add", "--file", str(file), "--workspace", str(tmp_path / "in-the-way" / "work"))
    assert done.returncode == 0, done.stderr
    assert "not kept" in done.stderr
