"""Real grades of submissions that fight the runner or whoever unpacks them: each its own result, and nobody else's."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from benchmarks.homework_class import Expected, everything
from grader.catalog import find
from grader.process_tree import children
from tests.conftest import REPOSITORY

pytest.importorskip("triton")

LIMIT = 12.0  # seconds of a call; the solution takes hundredths of one, on a machine that does nothing else
LONG = ("hangs-at-import",)  # the grader's own limit for an import is half a minute


def test_hostile_submissions_stop_and_touch_nobody_else(tmp_path: Path) -> None:
    folder, out, temporary = tmp_path / "class", tmp_path / "out", tmp_path / "tmp"
    folder.mkdir()
    temporary.mkdir()
    expected = []
    for number, sent in enumerate(one for one in everything() if one.kind == "hostile" and one.name not in LONG):
        name = f"{number:02}-{sent.name}"
        sent.make(folder / name)
        expected.append(Expected(name, sent.exercise, sent.statuses, 0.0))
    (folder / "zoe").mkdir()
    (folder / "zoe" / "vector_add.py").write_bytes(find("vector_add").solution.read_bytes())
    expected.append(Expected("zoe", "vector_add", ("passed",), 1.0))
    assignment = tmp_path / "a.yaml"
    assignment.write_text(f"exercises: [{{exercise: vector_add}}]\nbackend: interpreter\ntime_limit: {LIMIT}\n")
    arguments = ["homework", str(folder), "--assignment", str(assignment), "--out", str(out), "--workers", "1"]
    before, family = set(os.listdir(tempfile.gettempdir())), children(os.getpid())
    done = subprocess.run(
        [sys.executable, "-m", "tutor", *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode in (1, 3), done.stderr
    rows = {row["learner"]: row for row in csv.DictReader((out / "results.csv").open(encoding="utf-8"))}
    statuses = {one.learner: rows[one.learner]["vector_add status"] for one in expected}
    wrong = {
        one.learner: (statuses[one.learner], one.statuses)
        for one in expected
        if statuses[one.learner] not in one.statuses
    }
    assert wrong == {}
    for name, status in statuses.items():
        assert rows[name]["score"] == {"passed": "1.0", "infrastructure_error": ""}.get(status, "0.0")
        assert (out / "learners" / name / "results.json").stat().st_size < 100_000
    assert set(children(os.getpid())) <= set(family)  # what they started has ended with them
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("triton-prep-was")]
    assert not list(temporary.glob("triton-prep-*"))
    assert not (folder.parent / "x.py").exists()
    assert sum(path.stat().st_size for path in (out / "sources").iterdir()) < 1 << 20
