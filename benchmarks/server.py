"""A grader of one's own as a subprocess, spoken to in its protocol, and what its processes hold."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


class GraderServer:
    """`python -m grader serve`. Use it as a context manager."""

    def __init__(self, **environment: str) -> None:
        started = time.perf_counter()
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        self.ready = self.read()
        self.start_seconds = time.perf_counter() - started
        self.number = 0

    def __enter__(self) -> GraderServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended
            self.process.stdin.close()
        self.process.wait(30)
        self.errors.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def read(self) -> dict[str, Any]:
        """The next event. Raises RuntimeError when the grader has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self._how_it_ended())
        return json.loads(line)

    def _how_it_ended(self) -> str:
        code = self.process.wait(30)
        self.errors.seek(0)
        said = self.errors.read().decode(errors="replace").strip().splitlines()
        return f"the grader ended with code {code}: {' / '.join(said[-4:])}"

    def send(self, message: dict[str, Any]) -> None:
        """Raises RuntimeError when the grader has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise RuntimeError(self._how_it_ended()) from error

    def grade(
        self, exercise: str, file: Path, cancel_at: str | None = None, **options: Any
    ) -> tuple[dict[str, Any], float]:
        """The ending event, and the seconds from request to it. `cancel_at`: the event after which to cancel."""
        return self.ask("grade", exercise, file, cancel_at, **options)

    def ask(
        self, operation: str, exercise: str, file: Path, cancel_at: str | None = None, **fields: Any
    ) -> tuple[dict[str, Any], float]:
        """As `grade`, for any operation of the grader."""
        self.number += 1
        started = time.perf_counter()
        self.send({"op": operation, "id": self.number, "exercise": exercise, "file": str(file), **fields})
        while True:
            event = self.read()
            if event.get("id") != self.number:
                continue
            if event["event"] in ("verdict", "answer", "failed"):
                return event, time.perf_counter() - started
            if event["event"] == cancel_at:
                self.send({"op": "cancel", "id": self.number})


@dataclass(frozen=True)
class Held:
    """What one process holds. None where the system does not show it: the judge forbids others of its user to look."""

    rss_mb: float
    pss_mb: float | None  # proportional set size: shared pages counted by share
    threads: int
    open_files: int | None
    shared_mappings: int | None  # of memory files, as the buffers of a grade are


def held(pid: int) -> Held | None:
    """None when the process is gone."""
    folder = Path(f"/proc/{pid}")
    try:
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    except OSError:
        return None
    rss = int(status["VmRSS"].split()[0]) / 1024 if "VmRSS" in status else 0.0
    pss = files = mappings = None
    with contextlib.suppress(OSError):
        lines = (folder / "smaps_rollup").read_text().splitlines()
        pss = next(int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:"))
    with contextlib.suppress(OSError):
        files = len(list((folder / "fd").iterdir()))
        mappings = (folder / "maps").read_text().count("/memfd:")
    return Held(rss, pss, int(status["Threads"]), files, mappings)
