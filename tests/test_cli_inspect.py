from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run

KERNEL = "def k():\n    x = tl.load(x_ptr)\n    tl.store(out_ptr, x)\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(KERNEL)
    return file


def test_all_stages_name_the_line_and_what_matters(command: Run, kernel: Path) -> None:
    done = command("inspect", "vector_add", "--file", str(kernel), "--stage", "all")
    assert done.returncode == 0 and done.stderr == ""
    lines = done.stdout.split("\n")
    assert [line for line in lines if line.startswith("-- ")] == ["-- TTIR", "-- PTX", "-- SASS"]
    assert "   2     %2 = tt.load %p[2]    <- load of a tensor, masked" in lines
    assert "26 registers" in done.stdout


def test_json_holds_one_stage_or_all_of_them(command: Run, kernel: Path) -> None:
    for stage, ids in (("ptx", ["ptx"]), ("sass", ["sass"]), ("all", ["ttir", "ptx", "sass"])):
        done = command("inspect", "vector_add", "--file", str(kernel), "--stage", stage, "--json")
        data = json.loads(done.stdout)
        assert done.returncode == 0 and data["schema"] == 1
        assert [found["id"] for found in data["kernels"][0]["stages"]] == ids
        assert all(found["text"] for found in data["kernels"][0]["stages"])


def test_what_does_not_compile_names_file_and_line_and_exits_1(command: Run, kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("x_ptr)", "x_ptr)  # fake: compile_error"))
    done = command("inspect", "vector_add", "--file", str(kernel), "--stage", "all")
    assert done.returncode == 1 and done.stdout == ""
    assert f"{kernel}:2: NameError('x[i]')" in done.stderr
