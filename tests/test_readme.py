"""README.md and CONTRIBUTING.md name only what exists, and the outputs they show are real."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.conftest import REPOSITORY
from tutor.answers import bug_source
from tutor.cli import app
from tutor.course.loader import load
from tutor.course.model import Bug

PAGES = ("README.md", "CONTRIBUTING.md")
FOLDERS = r"(?:modules|exercises|solutions|grader|tutor|tests|benchmarks|docs|\.ci)"


@cache
def page(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def code(name: str) -> list[str]:
    """Every fenced block and every `span` of a page."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", page(name), flags=re.M | re.S)
    rest = re.sub(r"^```.*?^```", "", page(name), flags=re.M | re.S)
    return fenced + re.findall(r"`([^`]+)`", rest)


@cache
def help_of(*command: str) -> str:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("name", PAGES)
def test_every_command_and_option_named_is_in_the_help(name: str) -> None:
    named = [
        (command, rest) for text in code(name) for command, rest in re.findall(r"triton-prep +([a-z]+)([^\n|#]*)", text)
    ]
    assert named
    for command, rest in named:
        assert re.search(rf"^ +{command} ", help_of(), flags=re.M), f"triton-prep {command}"
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in help_of(command), f"triton-prep {command} {option}"


@pytest.mark.parametrize("name", PAGES)
def test_every_path_named_exists(name: str) -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", page(name)) if "://" not in link]
    named = [
        path
        for text in code(name)
        for path in re.findall(rf"(?<![\w./~<-]){FOLDERS}/[\w./*-]*(?:::\w+)?(?![\w<…])", text)
        + re.findall(r"(?<![\w./~-])(?:[A-Z]\w+\.md|\w+\.(?:toml|txt)|Makefile)\b", text)
    ]
    assert links + named
    for path in links + named:
        file, _, test = path.partition("::")
        assert list(REPOSITORY.glob(file.rstrip("/."))), path
        if test:
            assert f"def {test}(" in (REPOSITORY / file).read_text(encoding="utf-8"), path


@pytest.mark.parametrize("name", PAGES)
def test_every_make_target_named_exists(name: str) -> None:
    targets = re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    named = [target for text in code(name) for target in re.findall(r"\bmake ([a-z]+)\b", text)]
    assert named
    assert set(named) <= set(targets)


def test_every_status_of_the_verdict_is_listed() -> None:
    from tutor.verdict_text import STATUS_WORDS

    assert {status for status in STATUS_WORDS if f"`{status}`" in page("README.md")} == set(STATUS_WORDS)


def transcripts(marker: str) -> list[tuple[str, str]]:
    """The commands of the console block after the marker, each with the output shown."""
    block = re.search(rf"<!-- tests/test_readme.py runs {re.escape(marker)} -->\n```console\n(.*?)^```", page("README.md"), re.M | re.S)  # fmt: skip
    assert block is not None
    return re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], flags=re.M)


def shown(command: str, folder: Path) -> str:
    """What a shell prints for the command, with triton-prep on the path and a workspace of its own."""
    script = folder / "bin" / "triton-prep"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tutor "$@"\n')
    script.chmod(0o755)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("TRITON")},
        "PATH": f"{script.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(REPOSITORY),
        "TRITON_PREP_WORKSPACE": str(folder / "work"),
        "CUDA_VISIBLE_DEVICES": "",  # the page shows a machine without a GPU
    }
    done = subprocess.run(["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    return done.stdout


def test_the_outputs_shown_are_real(tmp_path: Path) -> None:
    for command, output in transcripts("this"):
        assert shown(command, tmp_path) == output, f"README.md shows another output of: {command}"


def test_the_verdict_shown_is_real(tmp_path: Path) -> None:
    bug = load().item("m03.bug.fill")
    assert isinstance(bug, Bug)
    shown("triton-prep init", tmp_path)
    (tmp_path / "work" / "03-memory-and-masking" / "row_max.py").write_text(bug_source(bug), encoding="utf-8")
    for command, output in transcripts("this with m03.bug.fill as row_max.py"):
        assert shown(command, tmp_path) == output, f"README.md shows another output of: {command}"
