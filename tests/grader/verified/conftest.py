from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grader.catalog import find
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.verdict import Verdict
from grader.verified import verify
from grader.warm import Warm
from tests.grader.verified.replaying import HereProcess, Table


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    warm = Warm("offline")
    yield Judge({"offline": warm}, "no GPU")
    warm.close()


@pytest.fixture
def grade(judge: Judge):
    def make(slug: str, source: str | None = None, **options: Any) -> Grade:
        files = find(slug)
        problem = judge.problem(files)
        text = files.solution.read_text() if source is None else source
        verdict = Verdict(slug, problem.title, f"{slug}.py", "", 0, "offline", "no GPU", {}, status="passed")
        verdict.cases = [{"name": case.name, "status": "passed"} for case in problem.cases]
        submission = Submission(files, f"{slug}.py", text.encode())
        return Grade(
            submission,
            problem,
            Options(**options),
            "offline",
            lambda event: None,
            lambda: False,
            verdict,
            judge.drawings,
        )

    return make


@pytest.fixture
def replayed(judge: Judge, grade: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Verify a submission, its kernels carried out as the table says; returns the verdict."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))

    def run(slug: str, table: Table, source: str | None = None) -> Verdict:
        monkeypatch.setattr(
            verify, "start_replayer", lambda judge, grade, buffers, **_: HereProcess(table, buffers, tmp_path)
        )
        under_way = grade(slug, source)
        verify.verify(judge, under_way)
        return under_way.verdict

    return run
