"""benchmarks.homework_gpus: what a run that is cut leaves, and what is said of runs. No GPU, and a stand-in grader."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.homework_gpus_table import compared, faults_beside, run_file, surprises
from tests.conftest import FAKE_GRADER, REPOSITORY
from tests.homework.conftest import fill

LIMIT = 60.0


def test_a_run_that_is_ended_keeps_what_it_has_and_goes_on_later(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TRITON_PREP_GRADER", FAKE_GRADER)
    files = {f"{n:03}-right/vector_add.py": f"# {n}\n{'# slow once' if n == 3 else ''}\n" for n in range(6)}
    fill(tmp_path / "class", files)
    command = [sys.executable, "-m", "benchmarks.homework_gpus", "--out", str(tmp_path), "--devices", "0,1"]
    command += ["--workers", "1"]
    process = subprocess.Popen(command, cwd=REPOSITORY)
    until = time.monotonic() + LIMIT
    while len(_run(tmp_path).get("grades", ())) < 5:  # what comes in is kept while the slow one is under way
        assert time.monotonic() < until
        time.sleep(0.05)
    assert _run(tmp_path)["cut"]
    process.send_signal(signal.SIGTERM)
    assert process.wait(LIMIT) == 0
    cut = _run(tmp_path)
    assert (cut["cut"], len(cut["grades"]), cut["of"]) == (True, 5, 6)
    assert len((tmp_path / "journal-0-1.jsonl").read_text().splitlines()) == 5
    assert sum(cut["by_gpu"].values()) == 5
    assert subprocess.run([*command, "--resume"], cwd=REPOSITORY, timeout=LIMIT, check=False).returncode == 0
    whole = _run(tmp_path)
    assert (whole["cut"], len(whole["grades"])) == (False, 6)
    assert whole["grades"].items() >= cut["grades"].items()
    assert whole["seconds"] > cut["seconds"]


def _run(root: Path) -> dict[str, Any]:
    file = run_file(root, "0,1")
    return json.loads(file.read_text()) if file.exists() else {}


def grade(name: str, status: str, gpu: str, ended: float, us: list[float] | None = None) -> dict[str, Any]:
    facts = {"exercise": "vector_add", "cause": None, "message": None, "device": "H200", "versions": {}}
    return {
        "submission": name,
        "status": status,
        "gpu": gpu,
        "ended": ended,
        "seconds": 5,
        "waited": 1,
        "us": us,
    } | facts


def found(*grades: dict[str, Any], of: int | None = None, cut: bool = False) -> dict[str, Any]:
    by_gpu = {one["gpu"]: 1 for one in grades}
    facts = {"devices": "0,1", "workers": 2, "said": "", "seconds": 60, "date": "", "busy_percent": {}}
    rates = {"a_minute": 2 * len(grades), "a_minute_steady": None}
    kept = {one["submission"]: one for one in grades}
    return {**facts, **rates, "grades": kept, "by_gpu": by_gpu, "of": of or len(grades), "cut": cut}


def test_what_a_fault_did_to_the_others_is_told_for_each_gpu() -> None:
    grades = [
        grade("000-right", "passed", "0", 100),
        grade("001-faults", "crashed", "0", 103),
        grade("002-right", "crashed", "1", 104),
        grade("003-right", "passed", "1", 108),
        grade("004-right", "passed", "1", 120),
    ]
    run = found(*grades)
    assert faults_beside(run) == [
        "GPU 0: 1 submissions that fault it. Graded meanwhile: 2 right submissions (1 passed) on the other GPUs, "
        "1 right submissions (all passed) on this one."
    ]
    assert surprises(run) == ["002-right on GPU 1: vector_add crashed (None): None"]
    assert surprises(found(grades[0], of=2, cut=True)) == []
    assert len(surprises(found(grades[0], of=2))) == 1


def test_runs_agree_when_statuses_are_alike_and_spreads_overlap(tmp_path: Path) -> None:
    def write(name: str, *spreads: list[float]) -> None:
        grades = [grade(f"{n:03}-right", "passed", "0", 100 + n, spread) for n, spread in enumerate(spreads)]
        run_file(tmp_path, name).write_text(json.dumps(found(*grades)))

    write("0", [10, 9, 11], [10, 9, 11])
    write("0,1", [10.5, 10, 11.5], [10, 9, 11])
    write("single", [10.5, 10, 11.5], [13, 12, 14])
    lines, agree = compared(tmp_path, ["0", "0,1"])
    assert agree and "Timed in both: 2; spreads (p20 to p80) that overlap: 2." in lines[-1]
    lines, agree = compared(tmp_path, ["0", "0,1", "single"])
    assert not agree
    assert "overlap: 1." in lines[-1] and lines[-1].endswith("Apart: vector_add (1 of 2).")
