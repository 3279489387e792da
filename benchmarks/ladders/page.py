"""The tables of the lessons' pages, made from a record; a test holds the pages to them.

python -m benchmarks.ladders.page [RECORD.json]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.ladders.report import gain, share, usable
from benchmarks.ladders.settings import COMPILED, FOLDERS, MEMORY_BOUND, ROOT, SETTINGS, Rung, Setting, rungs
from grader.ranking import apart, wide

RECORD = ROOT / "benchmarks" / "results" / "ladders-nvidia-h200.json"
COMPARED = {  # ladder to the library's calls that its pages name, first the one on the pages of the rungs
    "softmax": ("torch.softmax",),
    "rms_norm": (COMPILED, "F.rms_norm"),
    "matmul": ("torch.matmul",),
    "attention": ("SDPA cuDNN", "SDPA flash"),
}


def size(setting: Setting) -> str:
    """The setting's name, short enough for a column."""
    if setting.ladder == "attention":
        return setting.name.replace("attention, B=4 H=16 ", "")
    return f"{setting.shape[0]}³" if setting.ladder == "matmul" else setting.name.removesuffix(f" {setting.dtype}")


def measured(record: dict[str, Any], ladder: str) -> Iterator[tuple[Setting, dict[str, Any]]]:
    for setting in SETTINGS:
        if setting.ladder == ladder:
            yield setting, record["settings"][setting.name]


def speed(setting: Setting, rows: dict[str, Any], row: dict[str, Any], call: str) -> str:
    """`0.97`: the library's time over the row's."""
    other = rows.get(call)
    if not other or not usable(other):
        return "–"
    ratio = other["median_us"] / row["median_us"]
    noisy = any(wide([each["median_us"], each["p20_us"], each["p80_us"]]) for each in (other, row))
    return (f"{ratio:.2f}" if ratio >= 0.05 else f"{ratio:.1g}") + (", noisy" if noisy else "")


def ran(setting: Setting, rows: dict[str, Any]) -> list[tuple[Rung, dict[str, Any]]]:
    return [(rung, rows[rung.label]) for rung in setting.rungs() if rung.label in rows and usable(rows[rung.label])]


def grid(head: list[str], lines: list[list[str]]) -> str:
    rows = ["| " + " | ".join(cells) + " |" for cells in (head, *lines)]
    return "\n".join([rows[0], "|---" * len(head) + "|", *rows[1:]])


def rung_table(record: dict[str, Any], rung: Rung) -> str:
    """A line for each size at which the rung is timed: its time, its gain over the rung below, what it reaches."""
    call = COMPARED[rung.ladder][0]
    bandwidth = rung.ladder in MEMORY_BOUND
    against = "of a copy" if bandwidth else f"× {call}"
    lines = []
    for setting, result in measured(record, rung.ladder):
        times = ran(setting, result["rows"])
        if rung not in setting.rungs():
            continue
        if rung not in [each for each, _ in times]:
            lines.append([size(setting), "failed", "–", "–"])
            continue
        place = [each for each, _ in times].index(rung)
        row, below = times[place][1], times[place - 1][1] if place else None
        reached = f"{share(setting, result, row)[1]} %" if bandwidth else ""
        reached = reached or speed(setting, result["rows"], row, call)
        lines.append([size(setting), f"{row['median_us']:,.1f}", gain(below, row), reached])
    return grid(["measured", "µs", "over the rung below", against], lines)


def ladder_table(record: dict[str, Any], ladder: str) -> str:
    """A line a size: the lowest of the rungs that none is measurably faster than."""
    calls = COMPARED[ladder]
    copy = ladder in MEMORY_BOUND
    lines = []
    for setting, result in measured(record, ladder):
        times = ran(setting, result["rows"])
        least = min((row for _, row in times), key=lambda row: row["median_us"])
        three = [[row["median_us"], row["p20_us"], row["p80_us"]] for _, row in times]
        best = [least["median_us"], least["p20_us"], least["p80_us"]]
        rung, row = next(each for each, spread in zip(times, three, strict=True) if not apart(spread, best))
        cells = [size(setting), rung.label, f"{row['median_us']:,.1f}"]
        cells += [f"{share(setting, result, row)[1]} %"] if copy else []
        lines.append(cells + [speed(setting, result["rows"], row, call) for call in calls])
    head = ["size", "fastest rung", "µs", *(["of a copy"] if copy else []), *(f"× {call}" for call in calls)]
    return grid(head, lines)


def main() -> None:
    record = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else RECORD).read_text(encoding="utf-8"))
    for ladder in FOLDERS:
        for rung in rungs(ladder):
            print(f"{ladder}, rung {rung.label}\n\n{rung_table(record, rung)}\n")
        print(f"{ladder}, all\n\n{ladder_table(record, ladder)}\n")


if __name__ == "__main__":
    main()
