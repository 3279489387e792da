"""How long a warm grader takes from request to verdict, by stage, and how much memory its processes hold.

    python benchmarks/latency.py [--backend interpreter|cuda] [--time] [--runs N] [--out FOLDER] [EXERCISE…]

The first grade of an exercise is not counted: the problem is imported then. Without names, every exercise. `--out`
writes the table as latency-<backend>.md. Memory is proportional set size: a page shared by three processes counts a
third for each. The runner's is the largest of samples 20 ms apart, of whatever runs below the warm processes.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import threading
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.server import GraderServer, held  # noqa: E402
from grader.catalog import find  # noqa: E402
from grader.process_tree import children  # noqa: E402


@dataclass
class Peaks:
    """The largest proportional set sizes seen so far, in MB; sampled by a thread of its own."""

    judge: float = 0.0
    warm: dict[int, float] = field(default_factory=dict)
    runner: float = 0.0

    def watch(self, pid: int, stop: threading.Event) -> None:
        while not stop.wait(0.02):
            self.judge = max(self.judge, _pss(pid))
            for warm in children(pid):
                self.warm[warm] = max(self.warm.get(warm, 0.0), _pss(warm))
                for runner in children(warm):
                    self.runner = max(self.runner, _pss(runner))


def _pss(pid: int) -> float:
    found = held(pid)
    return (found.pss_mb or 0.0) if found is not None else 0.0


@dataclass(frozen=True)
class Measured:
    exercise: str
    status: str
    cases: int
    seconds: list[float]
    first: float
    stages: dict[str, float]  # of the last grade
    runner_mb: float

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def measure(server: GraderServer, exercise: str, runs: int, options: dict[str, Any]) -> tuple[Measured, Peaks]:
    """Times without the sampling thread, then one more grade for the memory."""
    file = find(exercise).solution
    graded = [server.grade(exercise, file, **options) for _ in range(runs + 1)]
    peaks, stop = Peaks(), threading.Event()
    sampler = threading.Thread(target=peaks.watch, args=(server.pid, stop))
    sampler.start()
    server.grade(exercise, file, **options)
    stop.set()
    sampler.join()
    event = graded[-1][0]
    verdict = event.get("verdict") or {"status": event["message"], "stages": [], "cases": []}
    measured = Measured(
        exercise=exercise,
        status=verdict["status"],
        cases=sum(c["status"] == "passed" for c in verdict["cases"]),
        seconds=[seconds for _, seconds in graded[1:]],
        first=graded[0][1],
        stages={s["name"]: s["seconds"] for s in verdict["stages"]},
        runner_mb=peaks.runner,
    )
    return measured, peaks


HEADER = (
    "| exercise | verdict | cases | median s | range s | first s | stages of the last, s | runner MB |\n"
    "|---|---|---:|---:|---:|---:|---|---:|"
)


def row(one: Measured) -> str:
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in one.stages.items())
    return (
        f"| `{one.exercise}` | {one.status} | {one.cases} | {one.median:.2f} | "
        f"{min(one.seconds):.2f}–{max(one.seconds):.2f} | {one.first:.2f} | {stages} | {one.runner_mb:.0f} |"
    )


def page(server: GraderServer, backend: str, runs: int, found: list[Measured], memory: str) -> str:
    versions = server.ready["versions"]
    device = "CPU interpreter" if backend == "interpreter" else server.ready["device"]
    return (
        "# From request to verdict, warm\n\n"
        f"{device}, {os.cpu_count()} CPU cores, torch {versions['torch']}, triton {versions['triton']}, "
        f"Python {platform.python_version()}, {date.today()}. Made by "
        f"`python benchmarks/latency.py --backend {backend} --runs {runs}`: the reference solution of each exercise, "
        f"medians of {runs} warm grades; the grader was ready {server.start_seconds:.1f} s after its start. The first "
        "grade of an exercise imports its problem. Stages overlap: the offline compile runs beside the values; given "
        "is what was left to wait for.\n\n"
        f"{HEADER}\n" + "\n".join(map(row, found)) + "\n\n"
        f"All {len(found)} one after another: {sum(m.median for m in found):.1f} s. Memory, proportional set size, "
        f"largest seen while grading: {memory}.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    exercises = options.exercises or [f.stem for f in sorted(ROOT.glob("solutions/*/*.py"))]
    found, judge, warm = [], 0.0, dict[int, float]()
    with GraderServer() as server:
        print(f"{server.ready['device']}, {server.ready['versions']}; ready after {server.start_seconds:.2f} s")
        print(HEADER)
        for exercise in exercises:
            request = {"backend": options.backend, "time": None if options.time else False}
            measured, peaks = measure(server, exercise, options.runs, request)
            found.append(measured)
            judge = max(judge, peaks.judge)
            warm = {pid: max(mb, warm.get(pid, 0.0)) for pid, mb in peaks.warm.items()}
            print(row(measured), flush=True)
        runner = max(m.runner_mb for m in found)
        each = " and ".join(f"{mb:.0f}" for mb in warm.values())
        memory = f"judge {judge:.0f} MB, warm processes {each} MB, a runner {runner:.0f} MB"
        print(memory)
        backend = server.ready["backend"] if options.backend == "auto" else options.backend
        if options.out:
            options.out.mkdir(parents=True, exist_ok=True)
            (options.out / f"latency-{backend}.md").write_text(page(server, backend, options.runs, found, memory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
