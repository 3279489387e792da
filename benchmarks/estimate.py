"""The model's times for the reference solutions beside what an H200 measured, at the same sizes.

    python benchmarks/estimate.py [--measured FILE] [--out FILE] [EXERCISE…]

Needs no GPU: what was measured is read from the record that `benchmarks/solutions.py` wrote on one. Compiles for sm_90.
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
COLUMNS = "exercise,timed at,measured (p20–p80),model,error,limit by the model,memory,compute,l2,starts,launches".split(
    ","
)
BAR = 25  # per cent, for the solutions that the memory limits


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--measured", type=Path, default=RESULTS / "solutions-nvidia-h200.json")
    parser.add_argument("--out", type=Path, default=RESULTS / "estimate-h200.md")
    options = parser.parse_args()
    record = json.loads(options.measured.read_text())
    verdicts = record["solutions"] if isinstance(record, dict) else record
    measured = {v["exercise"]: v for v in verdicts if v.get("timing")}
    chosen = [slug for slug in measured if not options.exercises or slug in options.exercises]
    rows = []
    with GraderServer() as server:
        versions = server.ready["versions"]
        for slug in chosen:
            solution = find(slug).solution
            event, seconds = server.ask("estimate", slug, solution, device="h200")
            changed = hashlib.sha256(solution.read_bytes()).hexdigest() != measured[slug]["sha256"]
            rows.append({**_row(measured[slug], event), "changed": changed})
            print(f"{slug:20} {seconds:6.1f} s  {rows[-1]}", flush=True)
    date = record.get("date", "") if isinstance(record, dict) else ""
    options.out.write_text(table(rows, measured[chosen[0]], versions, date))
    return 0


def _row(verdict: dict[str, Any], event: dict[str, Any]) -> dict[str, Any]:
    timing = verdict["timing"]
    row = {"exercise": verdict["exercise"], "case": timing["case"], "measured_us": timing["median_us"]}
    row |= {"kind": timing["limit"], "spread_us": [timing["p20_us"], timing["p80_us"]], "rank": timing["rank"]}
    modelled = event["data"]["rows"][0] if event["event"] == "answer" else {"reason": event["message"]}
    if modelled.get("case", timing["case"]) != timing["case"]:
        modelled = {"reason": f"the size is now {modelled['case']}"}
    if "reason" in modelled:
        return {**row, "reason": modelled["reason"]}
    names = ("time_us", "limit", "memory_us", "compute_us", "l2_us", "starts_us", "launch_us", "occupancy")
    error = 100 * (modelled["time_us"] / timing["median_us"] - 1)
    return {**row, **{name: modelled[name] for name in names}, "error": round(error, 1)}


def table(rows: list[dict[str, Any]], verdict: dict[str, Any], versions: dict[str, str], date: str) -> str:
    theirs = verdict["versions"]
    lines = [
        "# The model beside the measurements",
        "",
        f"Measured: {verdict['device']}, torch {theirs['torch']}, triton {theirs['triton']}, {date}",
        "(solutions-nvidia-h200.json).",
        f"Modelled: {datetime.date.today()}, without a GPU, compiled for sm_90 by triton {versions['triton']}.",
        "Written by `python benchmarks/estimate.py`. Times in µs; the error is the model's over the measured median.",
        "",
        "| " + " | ".join(COLUMNS) + " |",
        "|" + "---|" * len(COLUMNS),
    ]
    for row in rows:
        low, high = row["spread_us"]
        cells = [
            row["exercise"] + (" *" if row["changed"] else ""),
            row["case"],
            f"{row['measured_us']:.1f} ({low:.1f}–{high:.1f})",
        ]
        if "reason" in row:
            cells += [f"no estimate: {row['reason']}", *["–"] * 7]
        else:
            cells += [f"{row['time_us']:.1f}", f"{row['error']:+.0f} %", row["limit"]]
            cells += [f"{row[name]:.1f}" for name in ("memory_us", "compute_us", "l2_us", "starts_us", "launch_us")]
        lines.append("| " + " | ".join(cells) + " |")
    if any(row["changed"] for row in rows):
        lines += ["", "\\* The file has changed since it was measured: the model is of what it is now."]
    return "\n".join([*lines, "", *_summary(rows)]) + "\n"


def _summary(rows: list[dict[str, Any]]) -> list[str]:
    modelled = [row for row in rows if "error" in row]
    of_memory = [row for row in modelled if row["kind"] == "memory"]
    out = [f"`{row['exercise']}` ({row['error']:+.0f} %)" for row in of_memory if abs(row["error"]) > BAR]
    within = len(of_memory) - len(out)
    lines = [
        f"Median of the absolute error: {_median(modelled):.0f} % over {len(modelled)} solutions; "
        f"{_median(of_memory):.0f} % over the {len(of_memory)} that are judged by memory bandwidth,",
        f"of which {within} lie within {BAR} %." + (f" Not: {', '.join(out)}." if out else ""),
    ]
    lines += [
        "Known when the rules were written, so that the comparison is no test of them: `grid_2d` and `program_ids`",
        "(one program a clock), `attention` (what a loop issues beside its products). No constant was fitted.",
    ]
    others = [row for row in modelled if row["kind"] != "memory"]
    if others:
        worst = max(others, key=lambda row: abs(row["error"]))
        lines.append(
            f"Over the {len(others)} judged by compute: {_median(others):.0f} %, the worst `{worst['exercise']}` "
            f"({worst['error']:+.0f} %)."
        )
    return lines


def _median(rows: list[dict[str, Any]]) -> float:
    return median(abs(row["error"]) for row in rows) if rows else 0.0


if __name__ == "__main__":
    sys.exit(main())
