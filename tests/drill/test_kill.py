"""A sample of benchmarks/drill_kill.py: kill -9 at random moments loses no answer and no time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

from tests.conftest import REPOSITORY


def test_nothing_is_lost_by_a_kill_at_a_random_moment(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.drill_kill", "--kills", "15", "--seed", str(random.randrange(1000))],
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("15 kills")
