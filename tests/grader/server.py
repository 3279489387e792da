"""The real grader as a subprocess, spoken to in its protocol."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ENDS = {"verdict", "failed", "audited", "inspected", "doctor", "answer"}


class RealGrader:
    def __init__(self, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "grader", "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )
        self.ready = self.read()
        self.number = 0

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the grader ended"
        return json.loads(line)

    def write(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, op: str, **request: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The ending event, and all events before it."""
        self.number += 1
        self.write(json.dumps({"op": op, "id": self.number, **request}))
        events = []
        while True:
            event = self.read()
            if event["event"] in ENDS and event.get("id") == self.number:
                return event, events
            events.append(event)

    def grade(self, exercise: str, file: Path, **options: Any) -> dict[str, Any]:
        event, _ = self.ask("grade", exercise=exercise, file=str(file), backend="interpreter", **options)
        assert event["event"] == "verdict", event
        return event["verdict"]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(120)


def line_text(verdict: dict[str, Any]) -> str:
    """The line of the submission that the diagnosis names, without its indentation."""
    return Path(verdict["file"]).read_text().splitlines()[verdict["diagnosis"]["line"] - 1].strip()
