from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Run


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text("# map: matmul\n")
    return str(file)


def test_a_map_is_printed_with_its_grids_and_facts(command: Run, kernel: str) -> None:
    done = command("map", "vector_add", "--file", kernel)
    assert done.returncode == 0 and done.stderr == ""
    assert "matmul_kernel on 4 programs" in done.stdout
    assert " 0 " + "0" * 32 + "1" * 8 in done.stdout
    assert "Neighbouring lanes are 70 elements apart (strided)." in done.stdout
    assert "1.76 × the least" in done.stdout and "\x1b" not in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 80


def test_one_program_and_one_case_can_be_named(command: Run, kernel: str) -> None:
    done = command("map", "vector_add", "--file", kernel, "--program", "3", "--case", "17x33x65")
    assert done.returncode == 0, done.stderr
    assert "Program 3: stores 144 elements" in done.stdout and "case 17x33x65" in done.stdout
    done = command("map", "vector_add", "--file", kernel, "--program", "9")
    assert done.returncode == 2 and done.stdout == "" and "the programs are 0 to 3" in done.stderr


def test_json_is_the_map_alone_and_a_fault_exits_1(command: Run, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("# map: overrun\n")
    done = command("map", "vector_add", "--file", str(file), "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["bad"]["index"] == 1025
    assert "! out of bounds: line 9" in command("map", "vector_add", "--file", str(file)).stdout


def test_what_cannot_be_mapped_is_wrong_usage(command: Run, tmp_path: Path) -> None:
    done = command("map", "vector_add")
    assert done.returncode == 2 and done.stdout == "" and "write the kernel" in done.stderr
    done = command("map", "vector_add", "--file", str(tmp_path / "f.py"), "--solutions")
    assert done.returncode == 2 and "--file" in done.stderr
