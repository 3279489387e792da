"""No process outlives its grader, and no scratch folder outlives its grade."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.grader.server import RealGrader


def descendants(pid: int) -> list[int]:
    try:
        children = [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [p for child in children for p in descendants(child)]


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    return soon(lambda: not any(map(alive, pids)))


def soon(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.05)
    return False


def command_of(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def test_killing_the_grader_in_the_middle_of_a_grade_leaves_nothing(tmp_path):
    grader = RealGrader()
    file = tmp_path / "vector_add.py"
    file.write_text("import subprocess\ndef add(x, y):\n    subprocess.Popen(['sleep', '600']).wait()\n")
    request = {"op": "grade", "id": 1, "exercise": "vector_add", "file": str(file), "backend": "interpreter"}
    grader.write(json.dumps(request))
    while (event := grader.read())["event"] != "stage" or event["name"] != "run":
        pass
    assert soon(lambda: any(command_of(p) == "sleep" for p in descendants(grader.process.pid)))
    processes = descendants(grader.process.pid)
    assert len(processes) >= 3
    runners = [p for p in processes if command_of(p) != "sleep"]
    grader.process.kill()
    grader.process.wait()
    assert gone(runners)


def test_a_lost_warm_process_is_said_and_the_grader_ends_so_that_it_is_started_again(tmp_path):
    grader = RealGrader()
    for process in descendants(grader.process.pid):
        os.kill(process, signal.SIGKILL)
    file = tmp_path / "vector_add.py"
    file.write_text("def add(x, y):\n    return x + y\n")
    verdict = grader.grade("vector_add", file)
    assert verdict["status"] == "infrastructure_error" and any("again" in note for note in verdict["notes"])
    assert grader.process.wait(120) == 3


def test_closing_stdin_ends_the_grader_and_its_warm_processes():
    grader = RealGrader()
    processes = descendants(grader.process.pid)
    assert len(processes) >= 2
    grader.close()
    assert gone(processes)


def test_scratch_folders_of_a_killed_grader_are_swept_a_day_later(tmp_path):
    old, new = tmp_path / "triton-prep-old", tmp_path / "triton-prep-new"
    for folder in (old, new):
        folder.mkdir()
    long_ago = time.time() - 90_000
    os.utime(old, (long_ago, long_ago))
    RealGrader(TMPDIR=str(tmp_path)).close()
    assert not old.exists() and new.exists()


def test_a_grade_removes_its_scratch_folder_and_the_learners_subprocesses(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    grader = RealGrader(TMPDIR=str(temporary))
    file = tmp_path / "vector_add.py"
    file.write_text("import subprocess\nsubprocess.Popen(['sleep', '601'])\ndef add(x, y):\n    return x + y\n")
    grader.grade("vector_add", file)
    assert not list(temporary.glob("triton-prep-*"))
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if b"sleep\x00601" in _read(p)]
    grader.close()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""
