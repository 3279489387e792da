"""The tests of beside_a_gpu.py, in a process of their own: they fork an interpreter, and a process that has compiled with
Triton, as other tests do, cannot become one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).with_name("beside_a_gpu.py")


def test_what_the_interpreter_adds_to_a_grade_on_a_gpu() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(TESTS)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
