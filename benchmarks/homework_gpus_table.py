"""What runs of benchmarks.homework_gpus show: statuses as they must be, what faults did to others, times alike."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, median
from typing import Any

from grader.ranking import apart

FAULTS = ("out_of_bounds", "crashed", "runtime_error")
AGREED = 0.95  # share of the pairs
TOGETHER = 0.1  # seconds from which two grades count as under way at once: an end is written a little late
Found = dict[str, Any]


def run_file(root: Path, name: str) -> Path:
    return root / f"run-{name.replace(',', '-')}.json"


def faulty(grade: Found) -> bool:
    return str(grade["submission"]).endswith("-faults")


def surprises(found: Found) -> list[str]:
    """Every right submission passes, and every other one faults; of a whole run nothing is missing."""
    told = []
    for grade in found["grades"].values():
        if grade["status"] not in (FAULTS if faulty(grade) else ("passed",)):
            where = f"{grade['submission']} on GPU {grade['gpu']}"
            told.append(f"{where}: {grade['exercise']} {grade['status']} ({grade['cause']}): {grade['message']}")
    missing = found["of"] - len(found["grades"])
    if missing and not found["cut"]:
        told.append(f"{missing} of {found['of']} were not graded: {found['said'][-500:]}")
    return told


def faults_beside(found: Found) -> list[str]:
    """For each GPU with faults: what was graded meanwhile there and on the others, and how that ended."""
    grades = list(found["grades"].values())
    lines = []
    for gpu in found["by_gpu"]:
        faults = [grade for grade in grades if faulty(grade) and grade["gpu"] == gpu]
        if not faults:
            continue
        beside = [g for g in grades if not faulty(g) and any(_overlap(g, fault) for fault in faults)]
        same = [g for g in beside if g["gpu"] == gpu]
        others = [g for g in beside if g["gpu"] != gpu]
        lines.append(
            f"GPU {gpu or '?'}: {len(faults)} submissions that fault it. Graded meanwhile: {_ended(others)} on the "
            f"other GPUs, {_ended(same)} on this one."
        )
    return lines


def _overlap(one: Found, other: Found) -> bool:
    def begun(grade: Found) -> float:
        return float(grade["ended"] - grade["seconds"] - grade["waited"])

    return bool(min(one["ended"], other["ended"]) - max(begun(one), begun(other)) > TOGETHER)


def _ended(grades: list[Found]) -> str:
    passed = sum(grade["status"] == "passed" for grade in grades)
    if not grades:
        return "none"
    return f"{len(grades)} right submissions ({'all' if passed == len(grades) else passed} passed)"


def compared(root: Path, names: list[str]) -> tuple[list[str], bool]:
    """The table in Markdown, and whether every run agrees with the first."""
    runs = [(name, json.loads(run_file(root, name).read_text())) for name in names]
    lines = [*_head(runs[0][1]), *(_row(name, found) for name, found in runs), ""]
    for name, found in runs:
        lines += [f"{name}: {line}" for line in faults_beside(found)]
    agree = not any(surprises(found) for _, found in runs)
    for name, found in runs[1:]:
        told, alike = _against(names[0], runs[0][1], name, found)
        lines += ["", told]
        agree = agree and alike
    return lines, agree


def _head(first: Found) -> list[str]:
    some: Found = next(iter(first["grades"].values()), {})
    versions = some.get("versions") or {}
    return [
        "# A class on several GPUs",
        "",
        f"{some.get('device')}, torch {versions.get('torch')}, triton {versions.get('triton')}, "
        f"Python {versions.get('python')}, {first['date']}. Written by `python -m benchmarks.homework_gpus`. "
        "Verified grading with timing; one submission in twelve faults its GPU. A minute: of the whole run, with the "
        "graders' start; steady: from the first grade's end to the last one's. Busy: mean of the utilisation that the "
        "driver reports. A grade: median seconds without waiting, mean seconds waited for a turn on the GPU.",
        "",
        "| run | GPUs | graders on each | graded | seconds | a minute | steady | busy, % | a grade, s | waited, s "
        "| by GPU | timed | statuses as they must be |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]


def _row(name: str, found: Found) -> str:
    grades = list(found["grades"].values())
    cells = [
        name,
        len(found["devices"].split(",")),
        found["workers"],
        f"{len(grades)} of {found['of']}{', cut' if found['cut'] else ''}",
        found["seconds"],
        found["a_minute"],
        found["a_minute_steady"] or "–",
        ", ".join(str(share) for share in found["busy_percent"].values()) or "–",
        f"{median(grade['seconds'] for grade in grades):.2f}" if grades else "–",
        f"{mean(grade['waited'] for grade in grades):.2f}" if grades else "–",
        ", ".join(str(count) for count in found["by_gpu"].values()),
        sum(grade["us"] is not None for grade in grades),
        "no" if surprises(found) else "yes",
    ]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _against(first_name: str, first: Found, name: str, found: Found) -> tuple[str, bool]:
    """One run beside the first, in words, and whether they agree."""
    pairs = [(grade, found["grades"][key]) for key, grade in first["grades"].items() if key in found["grades"]]
    alike = sum(a["status"] == b["status"] for a, b in pairs)
    timed = [(a, b) for a, b in pairs if a["us"] and b["us"]]
    agree = sum(not apart(a["us"], b["us"]) for a, b in timed)
    told = f"{name} beside {first_name}: "
    if first["a_minute"] and found["a_minute"]:
        told += f"{found['a_minute'] / first['a_minute']:.2f} times as many submissions a minute"
        if first["a_minute_steady"] and found["a_minute_steady"]:
            told += f" ({found['a_minute_steady'] / first['a_minute_steady']:.2f} steady)"
        told += ". "
    told += f"The same status: {alike} of {len(pairs)}. Timed in both: {len(timed)}; "
    told += f"spreads (p20 to p80) that overlap: {agree}."
    off = sorted(abs(b["us"][0] / a["us"][0] - 1) for a, b in timed)
    if off:
        middle, most = (100 * off[int(share * (len(off) - 1))] for share in (0.5, 0.95))
        told += f" The two medians differ by {middle:.2f} % in the median, by {most:.2f} % or less in 19 of 20."
        told += "".join(f" {line}" for line in _farthest(timed))
    return told, alike == len(pairs) and bool(timed) and agree >= AGREED * len(timed)


def _farthest(timed: list[tuple[Found, Found]]) -> list[str]:
    """The exercises whose spreads do not overlap, with how many of them."""
    off = [a["exercise"] for a, b in timed if apart(a["us"], b["us"])]
    counted = ", ".join(f"{slug} ({off.count(slug)} of {_of(timed, slug)})" for slug in sorted(set(off)))
    return [f"Apart: {counted}."] if off else []


def _of(timed: list[tuple[Found, Found]], slug: str) -> int:
    return sum(a["exercise"] == slug for a, _ in timed)
