"""The model's times for the reference solutions beside what an H200 measured, at the same sizes.

    python benchmarks/estimate.py [--out FILE] [EXERCISE…]

Needs no GPU: what was measured is read from the records of `triton-prep bench` and, for exercises that are not in them,
of `benchmarks/solutions.py`. Compiles for sm_90.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.server import GraderServer  # noqa: E402
from grader.catalog import find  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
PARTS = ("memory_us", "compute_us", "issue_us", "l2_us", "starts_us", "launch_us")
COLUMNS = (
    "exercise,timed at,measured (p20–p80),model,error,limit by the model,memory,compute,issue,l2,starts,launches"
).split(",")
BAR = 25  # per cent, for the solutions that the memory limits


BENCH = ("bench-nvidia-h200.json", "bench-rest-nvidia-h200.json")  # the first that has a size counts
VERDICTS = "solutions-nvidia-h200.json"
TIMES = ("median_us", "p20_us", "p80_us")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--out", type=Path, default=RESULTS / "estimate-h200.md")
    options = parser.parse_args()
    found, about = measured()
    chosen = [slug for slug in dict.fromkeys(slug for slug, _ in found) if slug in (options.exercises or [slug])]
    rows = []
    with GraderServer() as server:
        versions = server.ready["versions"]
        for slug in chosen:
            event, seconds = server.ask("estimate", slug, find(slug).solution, device="h200", sizes=True)
            modelled = {row["case"]: row for row in event["data"]["rows"]} if event["event"] == "answer" else {}
            missing = {"reason": event.get("message", "the size is timed no more")}
            for (exercise, case), timing in found.items():
                if exercise == slug:
                    rows.append({"exercise": slug, "case": case, **_row(timing, modelled.get(case, missing))})
            print(
                f"{slug:20} {seconds:6.1f} s  {[row.get('error') for row in rows if row['exercise'] == slug]}",
                flush=True,
            )
    options.out.write_text(table(rows, about, versions))
    return 0


def measured() -> tuple[dict[tuple[str, str], dict[str, Any]], str]:
    """Times by exercise and size, and where they were measured."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    about = ""
    for name in BENCH:
        record = json.loads((RESULTS / name).read_text())
        versions = record["versions"]
        about = about or f"{record['device']}, torch {versions['torch']}, triton {versions['triton']}, {record['date']}"
        for result in record["results"]:
            changed = _digest(result["exercise"]) != result["sha256"]
            for row in result["rows"]:
                if not row.get("reason"):
                    found.setdefault((result["exercise"], row["case"]), {**row, "changed": changed})
    benched = {exercise for exercise, _ in found}
    older = json.loads((RESULTS / VERDICTS).read_text())
    for verdict in older["solutions"] if isinstance(older, dict) else older:
        exercise, timing = verdict["exercise"], verdict.get("timing")
        if timing and exercise not in benched:
            found[exercise, timing["case"]] = {**timing, "changed": _digest(exercise) != verdict["sha256"]}
    return found, about


def _digest(exercise: str) -> str:
    return hashlib.sha256(find(exercise).solution.read_bytes()).hexdigest()


def _row(timing: dict[str, Any], modelled: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {name: timing[name] for name in (*TIMES, "rank", "changed", "in_l2") if name in timing}
    row |= {"kind": timing["limit"]}
    if "reason" in modelled:
        return {**row, "reason": modelled["reason"]}
    names = ("time_us", "limit", *PARTS, "occupancy")
    error = 100 * (modelled["time_us"] / timing["median_us"] - 1)
    return {**row, **{name: modelled[name] for name in names}, "error": round(error, 1)}


def table(rows: list[dict[str, Any]], about: str, versions: dict[str, str]) -> str:
    lines = [
        "# The model beside the measurements",
        "",
        f"Measured: {about} ({', '.join(BENCH)}; what is not in them: {VERDICTS}).",
        f"Modelled: {datetime.date.today()}, without a GPU, compiled for sm_90 by triton {versions['triton']}.",
        "Written by `python benchmarks/estimate.py`. Times in µs; the error is the model's over the measured median.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    for row in rows:
        cells = [
            row["exercise"] + (" *" if row["changed"] else ""),
            row["case"],
            f"{row['median_us']:.1f} ({row['p20_us']:.1f}–{row['p80_us']:.1f})",
        ]
        if "reason" in row:
            cells += [f"no estimate: {row['reason']}", *["–"] * (len(PARTS) + 2)]
        else:
            cells += [f"{row['time_us']:.1f}", f"{row['error']:+.0f} %", row["limit"]]
            cells += [f"{row[name]:.1f}" for name in PARTS]
        lines.append("| " + " | ".join(cells) + " |")
    if any(row["changed"] for row in rows):
        lines += ["", "\\* The file has changed since it was measured: the model is of what it is now."]
    return "\n".join([*lines, "", *_summary(rows)]) + "\n"


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    """What is small enough for the L2, or was measured with a wide spread, or of another file, tests no model."""
    modelled = [
        row
        for row in rows
        if "error" in row and not row.get("in_l2") and not row["changed"] and row["rank"] != "too_noisy"
    ]
    of_memory = [row for row in modelled if row["kind"] == "memory"]
    out = [
        f"`{row['exercise']}` at {row['case']} ({row['error']:+.0f} %)" for row in of_memory if abs(row["error"]) > BAR
    ]
    within = len(of_memory) - len(out)
    left_out = f"{len(rows) - len(modelled)} of {len(rows)} rows"
    lines = [
        f"Not counted here: what lies in the L2, was too noisy, or is of a file that has changed ({left_out}).",
        f"Median of the absolute error: {_median(modelled):.0f} % over {len(modelled)} rows; "
        f"{_median(of_memory):.0f} % over the {len(of_memory)} that are judged by memory bandwidth,",
        f"of which {within} lie within {BAR} %." + (f" Not: {', '.join(out)}." if out else ""),
        "Known when the rules were written, so that the comparison is no test of them: `grid_2d` and `program_ids`",
        "(one program a clock), `attention` (what a loop issues beside its products), `gelu` and `seeded_dropout`",
        "(what stands outside loops). That the upper half of a product of integers takes twice as long was added after",
        "`seeded_dropout` had been seen to come out 38 % too fast without it. No constant was fitted.",
    ]
    others = [row for row in modelled if row["kind"] != "memory"]
    if others:
        worst = max(others, key=lambda row: abs(row["error"]))
        lines.append(
            f"Over the {len(others)} judged by compute: {_median(others):.0f} %, the worst `{worst['exercise']}` at "
            f"{worst['case']} ({worst['error']:+.0f} %)."
        )
    return lines


def _median(rows: list[dict[str, Any]]) -> float:
    return median(abs(row["error"]) for row in rows) if rows else 0.0


if __name__ == "__main__":
    sys.exit(main())
