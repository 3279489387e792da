"""Runs the tests that course items cite, in one pytest process, and reads its JUnit report."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Outcome:
    status: Literal["passed", "failed", "skipped"]
    message: str = ""


def run_evidence(tests: Sequence[str], root: Path) -> dict[str, Outcome]:
    """`tests` are "tests/evidence/test_m04.py::test_shift"; those that pytest does not report are absent."""
    present = [test for test in tests if (root / test.partition("::")[0]).is_file()]
    if not present:
        return {}
    if importlib.util.find_spec("pytest") is None:
        return dict.fromkeys(present, Outcome("failed", "pytest is not installed: pip install 'triton-prep[dev]'"))
    # Whole files are collected: a name that is not there must not keep the others from running.
    files = sorted({test.partition("::")[0] for test in present})
    wanted = [test for test in present if _defines(root, test)]
    count = str(min(8, os.cpu_count() or 1))
    workers = ["-n", count] if importlib.util.find_spec("xdist") is not None and len(files) > 1 else []
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    with tempfile.TemporaryDirectory(prefix="triton-prep-check-") as folder:
        report = Path(folder) / "report.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            *workers,
            *wanted,
        ]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if not report.is_file():
            text = (done.stdout + done.stderr).strip()[-2000:]
            return dict.fromkeys(present, Outcome("failed", f"pytest did not finish:\n{text}"))
        return _read(report)


def _defines(root: Path, test: str) -> bool:
    name, _, function = test.partition("::")
    return f"def {function}(" in (root / name).read_text(encoding="utf-8")


def _read(report: Path) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        name = f"{file}::{case.get('name', '').partition('[')[0]}"
        outcome = _outcome(case)
        before = outcomes.get(name)
        # One failing parameter fails the claim; one that ran outweighs one that was skipped.
        rank = {"failed": 2, "passed": 1, "skipped": 0}
        if before is None or rank[outcome.status] > rank[before.status]:
            outcomes[name] = outcome
    return outcomes


def _outcome(case: ElementTree.Element) -> Outcome:
    for tag in ("failure", "error"):
        found = case.find(tag)
        if found is not None:
            return Outcome("failed", (found.text or found.get("message") or "").strip()[-2000:])
    skipped = case.find("skipped")
    if skipped is not None:
        return Outcome("skipped", skipped.get("message") or "no reason given")
    return Outcome("passed")
