from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import REPOSITORY


def loaded(statement: str, names: str) -> str:
    """Which of the packages a fresh Python has loaded after the statement."""
    source = f"import sys\n{statement}\nprint(*[name for name in {names.split()!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", source], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        "tutor.app",
        "tutor.cli",
        "tutor.check",
        "tutor.grading",
        "tutor.commands.asking",
        "tutor.commands.diagnosing",
        "tutor.commands.drilling",
        "tutor.commands.files",
        "tutor.commands.grading",
        "tutor.commands.homework",
        "tutor.commands.inspecting",
        "tutor.commands.interview",
        "tutor.commands.mending",
        "tutor.commands.exchanging",
        "tutor.commands.reading",
        "tutor.commands.reviewing",
        "tutor.commands.serving",
        "tutor.commands.standing",
        "tutor.commands.watching",
        "tutor.web.server",
    ],
)
def test_the_tutor_loads_neither_torch_nor_triton(module: str) -> None:
    assert loaded(f"import {module}", "torch triton numpy") == ""


@pytest.mark.parametrize("module", ["grader", "grader.server", "grader.catalog"])
def test_the_grader_loads_no_textual(module: str) -> None:
    assert loaded(f"import {module}", "textual tutor") == ""


def test_home_is_painted_without_the_scheduler() -> None:
    assert loaded("import tutor.app, tutor.screens.terminal, tutor.screens.home", "fsrs genanki markdown_it") == ""


def test_home_is_painted_without_the_drills() -> None:
    assert loaded("import tutor.app, tutor.screens.terminal, tutor.screens.home", "tutor.drill pygal") == ""


def test_the_catalog_loads_no_torch() -> None:
    assert loaded("import grader.catalog", "torch triton") == ""


def test_the_command_line_starts_without_the_app_and_without_yaml() -> None:
    assert loaded("import tutor.cli", "textual yaml watchfiles asyncio fsrs") == ""
