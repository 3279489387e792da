"""The served app in a real browser: keys reach it at once, a quiz and a grade are kept, the tab leaves nothing behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import FAKE_GRADER, REPOSITORY

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_browser_takes_a_quiz_and_grades_an_exercise(tmp_path: Path) -> None:
    pytest.importorskip("playwright", reason="playwright is not installed")
    from benchmarks.browser import browse

    assert CHROMIUM is not None
    picture = tmp_path / "page.png"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRITON_PREP")}
    seen = browse(CHROMIUM, picture, {**environment, "PYTHONPATH": str(REPOSITORY), "TRITON_PREP_GRADER": FAKE_GRADER})
    assert seen["processes_of_the_tab"] == 2 and seen["left_when_closed"] == 0
    assert seen["requests_elsewhere"] == []
    assert picture.stat().st_size > 10_000
