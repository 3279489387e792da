"""Grade the reference solutions with --verified on a GPU, and beside it as usual: status, seconds, times. Markdown.

    python benchmarks/verified.py [--out FILE] [--no-time [--servers N]] [EXERCISE…]

Needs a GPU and only what the grader needs. The table grows as verdicts come. Exits with 1 when a solution does not pass
verified, or is not verified although its exercise is called directly; with 3 without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.side_by_side import Graders  # noqa: E402
from grader.catalog import ExerciseFiles, exercises  # noqa: E402
from grader.grade import load_problem  # noqa: E402
from tutor.whole_files import write_atomically  # noqa: E402

COLUMNS = (
    "exercise", "status", "verified", "launches", "s usual", "s verified", "s replay", "µs usual", "µs replay",
    "replay / usual", "% of limit", "note",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--out", type=Path, help="a Markdown file to write the table to as well")
    parser.add_argument("--no-time", action="store_true")
    parser.add_argument("--servers", type=int, default=1, help="graders side by side, where nothing is timed")
    options = parser.parse_args()
    if options.servers > 1 and not options.no_time:
        parser.error("--servers needs --no-time: graders side by side would disturb each other's times")
    chosen = [e for e in exercises() if not options.exercises or e.slug in options.exercises]
    found: list[list[str] | None] = [None] * len(chosen)
    fell_short = False
    with Graders(options.servers) as graders:
        ready = graders.mine().ready
        if ready["backend"] != "cuda":
            print(f"verified grading needs a GPU; here is {ready['device']}", file=sys.stderr)
            return 3
        head = [heading(ready), "", row(COLUMNS), "|---" * len(COLUMNS) + "|"]
        print("\n".join(head), flush=True)
        for place, (short, columns) in graders.each(lambda e: graded(graders, e, options.no_time), chosen):
            fell_short |= short
            found[place] = columns
            print(row(columns), flush=True)
            if options.out:
                write_atomically(options.out, ("\n".join([*head, *(row(c) for c in found if c)]) + "\n").encode())
    return 1 if fell_short else 0


def graded(graders: Graders, files: ExerciseFiles, no_time: bool) -> tuple[bool, list[str]]:
    """Whether the solution falls short, and its row."""
    how = {"time": False if no_time else None}
    try:
        usual, usual_seconds = graders.mine().grade(files.slug, files.solution, **how)
        replayed, seconds = graders.mine().grade(files.slug, files.solution, verified=True, **how)
    except (RuntimeError, OSError) as ended:
        return True, cells(files.slug, {}, 0.0, {"status": f"failed: {ended}"}, 0.0)
    direct = load_problem(files).call == "forward"
    verdict = replayed.get("verdict") or {"status": replayed.get("message")}
    short = verdict["status"] != "passed" or (direct and not verdict.get("verified"))
    return short, cells(files.slug, usual.get("verdict") or {}, usual_seconds, verdict, seconds)


def heading(ready: dict[str, Any]) -> str:
    versions = ready["versions"]
    where = f"{ready['device']}, torch {versions['torch']}, triton {versions['triton']}, Python {versions['python']}"
    return (
        f"{where}, {datetime.date.today()}. Written by `python benchmarks/verified.py`. Seconds from request to "
        "verdict; medians in µs, cold L2."
    )


def cells(slug: str, usual: dict[str, Any], usual_seconds: float, verdict: dict[str, Any], seconds: float) -> list[str]:
    stages = {stage["name"]: stage["seconds"] for stage in verdict.get("stages", ())}
    times = [(v.get("timing") or {}).get("median_us") for v in (usual, verdict)]
    notes = [note for note in verdict.get("notes", ()) if "verified" in note]
    launches = next((note.split()[1] for note in notes if note.startswith("verified: ")), "–")
    failing = [
        f"{c['name']}: {c['message']}" for c in verdict.get("cases", ()) if c["status"] not in ("passed", "not_run")
    ]
    diagnosis = (verdict.get("diagnosis") or {}).get("message")
    return [
        slug,
        str(verdict["status"]),
        "yes" if verdict.get("verified") else "no",
        launches,
        f"{usual_seconds:.2f}",
        f"{seconds:.2f}",
        number(stages.get("replay"), 2),
        number(times[0], 1),
        number(times[1], 1),
        number(times[1] / times[0] if times[0] and times[1] else None, 3),
        number((verdict.get("timing") or {}).get("percent_of_limit"), 1),
        "; ".join(
            [*failing[:1], *([diagnosis] if diagnosis else []), *(n for n in notes if not n.startswith("verified: "))]
        ).replace("|", "\\|"),
    ]


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def row(values: Any) -> str:
    return "| " + " | ".join(values) + " |"


if __name__ == "__main__":
    sys.exit(main())
