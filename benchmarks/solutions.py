"""Grade every reference solution here and write the verdicts as JSON, and a table in Markdown.

`triton-prep bench` times them over sizes; this also says whether they pass, at the one size that ranks.

    python benchmarks/solutions.py [--out DIR] [--backend auto|cuda|interpreter] [EXERCISE…]

Needs only what the grader needs. Exits with 1 when a solution does not pass.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.server import GraderServer  # noqa: E402
from grader.catalog import ExerciseFiles, exercises  # noqa: E402
from tutor.bench.report import MEASURED, MEASURED_HOW, cells, markdown_table  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--backend", default="auto")
    options = parser.parse_args()
    chosen = [e for e in exercises() if not options.exercises or e.slug in options.exercises]
    server = GraderServer()
    ready = server.ready
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / f"solutions-{ready['device'].lower().replace(' ', '-')}"
    verdicts: list[dict[str, Any]] = []
    for files in chosen:
        verdict, seconds = _graded(server, files, options.backend)
        verdict["wall_seconds"] = round(seconds, 2)
        verdicts.append(verdict)
        diagnosis = verdict.get("diagnosis") or {}
        print(f"{files.slug:20} {verdict['status']:14} {verdict['wall_seconds']:6.1f} s  {_short(verdict)}", flush=True)
        if verdict["status"] != "passed":
            failing = [c for c in verdict.get("cases", []) if c["status"] not in ("passed", "skipped", "not_run")]
            print(
                "   ",
                diagnosis.get("cause"),
                diagnosis.get("message"),
                failing[:2],
                (verdict.get("output") or {}).get("text", "")[-800:],
            )
        for note in verdict.get("notes", []):
            print("    note:", note)
        # as they come: an interrupted run keeps what it measured
        stem.with_suffix(".json").write_text(json.dumps(verdicts, indent=1) + "\n")
        stem.with_suffix(".md").write_text(table(ready, verdicts))
    server.close()
    return 0 if all(v["status"] == "passed" for v in verdicts) else 1


def _graded(server: GraderServer, files: ExerciseFiles, backend: str) -> tuple[dict[str, Any], float]:
    """The verdict on the reference solution, and the seconds it took; without one, a verdict that says why."""
    try:
        event, seconds = server.grade(files.slug, files.solution, backend=backend, time=True)
    except RuntimeError as ended:
        event, seconds = {"event": "failed", "message": str(ended)}, 0.0
    if event["event"] == "verdict":
        return event["verdict"], seconds
    return {
        "status": "infrastructure_error",
        "diagnosis": {"message": event["message"]},
        "exercise": files.slug,
    }, seconds


def _short(verdict: dict[str, Any]) -> str:
    timing = verdict.get("timing")
    if not timing:
        return ""
    return f"{timing['median_us']:.1f} µs, {timing['percent_of_limit']} % of the limit, {timing['rank']}"


def table(ready: dict[str, Any], verdicts: list[dict[str, Any]]) -> str:
    """The rows of `triton-prep bench`, with what the grade itself says."""
    versions = ready["versions"]
    where = f"{ready['device']}, torch {versions['torch']}, triton {versions['triton']}, Python {versions['python']}"
    lines = [
        "# Reference solutions",
        "",
        f"{where}, {datetime.date.today()}. Written by `python benchmarks/solutions.py`.",
        *MEASURED_HOW,
        "",
    ]
    rows = []
    for v in verdicts:
        name, timing = v.get("exercise", ""), v.get("timing")
        figures = cells(name, timing)[1:] if timing else ["–"] * (len(MEASURED) - 1)
        rows.append([name, v["status"], *figures, f"{v.get('wall_seconds', 0):.1f}"])
    return "\n".join([*lines, *markdown_table([MEASURED[0], "status", *MEASURED[1:], "s"], rows)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
