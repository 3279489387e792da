"""`--sanitize`: the smallest cases under NVIDIA's compute-sanitizer, its report translated to the learner's line."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.case_runner import Outcome
from grader.failures import Unavailable

if TYPE_CHECKING:
    from grader.grade import Grade

LIMIT = 180  # seconds
CASES = 3
REPORT = re.compile(r"Invalid __global__ (read|write|atomic) of size (\d+) bytes")
PLACE = re.compile(r"\bin (?P<file>[\w./-]+\.py):(?P<line>\d+)")


def command() -> str | None:
    found = shutil.which("compute-sanitizer")
    usual = "/usr/local/cuda/bin/compute-sanitizer"
    return found or (usual if os.path.exists(usual) else None)


def sanitize(grade: Grade) -> None:
    """Sets the verdict to out_of_bounds when the sanitizer finds an access outside an allocation."""
    tool = command()
    if tool is None:
        raise Unavailable("compute-sanitizer is not here: install the CUDA toolkit, or leave out --sanitize")
    sizes = sorted(((grade.values(c).size, i) for i, c in enumerate(grade.problem.cases)), key=lambda pair: pair[0])
    chosen = [i for size, i in sizes if size][:CASES]
    with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
        file = Path(folder) / Path(grade.submission.file).name
        file.write_bytes(grade.submission.source)
        request = {
            "file": str(file),
            "exercise": grade.problem.slug,
            "cases": chosen,
            "seed": grade.options.seed,
        }
        environment = {
            **os.environ,
            "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",  # each tensor an allocation of its own: the check is exact
            "TRITON_CACHE_DIR": folder,
            "TRITON_INTERPRET": "0",
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        call = [
            tool,
            "--tool",
            "memcheck",
            "--print-limit",
            "1",
            sys.executable,
            "-m",
            "grader.sanitize_child",
            json.dumps(request),
        ]
        try:
            done = subprocess.run(
                call, capture_output=True, text=True, timeout=LIMIT, env=environment, cwd=folder, check=False
            )
        except subprocess.TimeoutExpired:
            grade.verdict.notes.append(f"compute-sanitizer did not end within {LIMIT} s")
            return
    outcome = translated(done.stdout + done.stderr)
    if outcome is None:
        clean = "ERROR SUMMARY: 0 errors" in done.stdout
        grade.verdict.notes.append(
            "compute-sanitizer: no invalid access" if clean else f"compute-sanitizer ended with {done.returncode}"
        )
        return
    case = grade.problem.cases[chosen[0]]
    grade.verdict.first_failure(case, grade.values(case), outcome)
    grade.verdict.notes.append("found by compute-sanitizer")


def translated(report: str) -> Outcome | None:
    """The first invalid access of a report as an outcome; None when there is none."""
    found = REPORT.search(report)
    if found is None:
        return None
    rest = report[found.end() : found.end() + 2000]
    place = PLACE.search(rest)
    block = re.search(r"by thread \(\d+,\d+,\d+\) in block \((\d+),(\d+),(\d+)\)", rest)
    kind = "load" if found[1] == "read" else "store"
    outcome = Outcome("out_of_bounds", f"{kind} outside its tensor", cause=f"out_of_range_{kind}")
    if block:
        outcome = replace(outcome, program_id=tuple(int(n) for n in block.groups()))
    if place:
        outcome = replace(outcome, line=int(place["line"]))
    return outcome
