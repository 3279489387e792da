from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.catalog import find
from tests.grader.server import RealGrader


@pytest.fixture(scope="session")
def grader() -> Iterator[RealGrader]:
    server = RealGrader()
    yield server
    server.close()


@pytest.fixture
def submit(grader: RealGrader, tmp_path: Path):
    """Grade the reference solution of an exercise after replacing pieces of its text."""

    def run(exercise: str, *changes: tuple[str, str], source: str | None = None, **options):
        text = find(exercise).solution.read_text() if source is None else source
        for old, new in changes:
            assert old in text, f"{old!r} is not in the solution any more"
            text = text.replace(old, new)
        file = tmp_path / f"{exercise}.py"
        file.write_text(text)
        return grader.grade(exercise, file, **options)

    return run
