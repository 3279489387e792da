"""How long a warm grader takes from request to verdict, by stage, and how much memory it holds.

    python benchmarks/latency.py [--backend interpreter|cuda] [--time] [--runs N] [EXERCISE…]

The first grade of an exercise is not counted: it draws the inputs and computes the references, which later grades reuse
only within one grade; what is warm is the processes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from grader.catalog import find  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exercises", nargs="*", default=["vector_add"])
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, "-m", "grader", "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert server.stdin is not None and server.stdout is not None
    started = time.perf_counter()
    ready = json.loads(server.stdout.readline())
    print(f"{ready['device']}, {ready['versions']}; ready after {time.perf_counter() - started:.2f} s")
    for slug in options.exercises:
        request = {"op": "grade", "exercise": slug, "file": str(find(slug).solution), "backend": options.backend}
        graded = [_grade(server, {**request, "time": None if options.time else False}) for _ in range(options.runs + 1)]
        seconds = [s for s, _ in graded[1:]]
        verdict = graded[-1][1]
        stages = {s["name"]: s["seconds"] for s in verdict["stages"]}
        print(
            f"{slug:20} {verdict['status']}  median {statistics.median(seconds):.3f} s, "
            f"{min(seconds):.3f}–{max(seconds):.3f} s over {len(seconds)}; first {graded[0][0]:.2f} s; last: {stages}; "
            f"calls {[c.get('seconds') for c in verdict['cases']]}"
        )
    print(f"memory: {_memory(server.pid)}")
    server.stdin.close()
    server.wait(30)
    return 0


def _grade(server: Any, request: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    started = time.perf_counter()
    server.stdin.write(json.dumps({**request, "id": 1}) + "\n")
    server.stdin.flush()
    for line in server.stdout:
        event = json.loads(line)
        if event["event"] in ("verdict", "failed"):
            return time.perf_counter() - started, event.get("verdict") or {
                "status": event["message"],
                "stages": [],
                "cases": [],
            }
    raise SystemExit("the grader ended")


def _memory(pid: int) -> str:
    """Proportional set size (shared pages counted by share) of the judge and its warm processes, in MB."""
    found = []
    for process in [pid, *_children(pid)]:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                found.append(round(int(line.split()[1]) / 1024))
    return f"{sum(found)} MB (judge and warm processes: {found})"


def _children(pid: int) -> list[int]:
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


if __name__ == "__main__":
    sys.exit(main())
