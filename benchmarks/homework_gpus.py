"""Grade a class with timing on some of this machine's GPUs: submissions a minute, how busy each was, what was timed.

    python -m benchmarks.homework_gpus --out DIR --devices 0 [--count 120]       one run; the class is made on first use
    python -m benchmarks.homework_gpus --out DIR --devices 0,1
    python -m benchmarks.homework_gpus --out DIR --compare 0 0,1                 two such runs beside each other

One submission in twelve faults its GPU (it stores far outside its output); the others are reference solutions, each a
little different text. Needs GPUs and only what `triton-prep homework` needs. Exits with 1 when a status is not as it
must be, or the two runs do not agree.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from statistics import mean
from typing import Any

from grader.catalog import find
from grader.ranking import apart

ROOT = Path(__file__).resolve().parents[1]
EXERCISES = ("vector_add", "affine_relu", "row_sum", "softmax", "rms_norm", "transpose", "gelu", "row_max")
FAULTY = 12  # one submission in so many
ASSIGNMENT = "title: On several GPUs\nexercises:\n" + "".join(f"  - exercise: {name}\n" for name in EXERCISES)
ALLOWED = ("passed", "out_of_bounds", "crashed", "runtime_error")
AGREED = 0.95  # share of the pairs


def make_class(folder: Path, count: int) -> None:
    """`count` folders of one file; those that fault are named so."""
    for number in range(count):
        faulty = number % FAULTY == FAULTY - 1
        slug = "vector_add" if faulty else EXERCISES[number % len(EXERCISES)]
        text = find(slug).solution.read_text() + f"\n# learner {number}\n"
        if faulty:
            text = text.replace("tl.store(out_ptr + offs", "tl.store(out_ptr + offs + (1 << 40)")
            assert "1 << 40" in text
        place = folder / f"{number:03}-{'faults' if faulty else 'right'}"
        place.mkdir(parents=True)
        (place / f"{slug}.py").write_text(text)


class Busy:
    """The utilisation that the driver reports of some GPUs, in percent, every half second while the block runs."""

    def __init__(self, devices: str) -> None:
        what = ["--query-gpu=index,utilization.gpu", "--format=csv,noheader,nounits"]
        self.command = ["nvidia-smi", "-i", devices, *what]
        self.samples: dict[str, list[float]] = {}
        self._stop = threading.Event()

    def __enter__(self) -> Busy:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.5):
            for line in subprocess.run(self.command, capture_output=True, text=True, check=False).stdout.splitlines():
                index, share = line.split(",")
                self.samples.setdefault(index.strip(), []).append(float(share))

    def shares(self) -> dict[str, float]:
        return {index: round(mean(values), 1) for index, values in self.samples.items()}


def run(root: Path, devices: str, count: int) -> dict[str, Any]:
    """One run of the command, written to `run-<devices>.json`."""
    folder, out = root / "class", root / f"results-{devices.replace(',', '-')}"
    if not folder.exists():
        part = root / f"class-{os.getpid()}"
        make_class(part, count)
        part.rename(folder)
    assignment = root / "assignment.yaml"
    assignment.write_text(ASSIGNMENT)
    shutil.rmtree(out, ignore_errors=True)
    arguments = [str(folder), "--assignment", str(assignment), "--out", str(out), "--format", "csv,json", "--json"]
    started = time.monotonic()
    with Busy(devices) as busy:
        ended = subprocess.run(
            [sys.executable, "-m", "tutor", "homework", *arguments],
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": devices},
            capture_output=True,
            text=True,
            check=False,
        )
    seconds = time.monotonic() - started
    grades = [json.loads(line) for line in (out / "journal.jsonl").read_text().splitlines()]
    found = {
        "devices": devices,
        "code": ended.returncode,
        "said": ended.stderr[-2000:],
        "seconds": round(seconds, 1),
        "a_minute": round(60 * len(grades) / seconds, 2),
        "busy_percent": busy.shares(),
        "date": str(datetime.date.today()),
        "grades": {grade["key"]: _short(grade) for grade in grades},
    }
    _file(root, devices).write_text(json.dumps(found, indent=1) + "\n")
    return found


def _short(grade: dict[str, Any]) -> dict[str, Any]:
    verdict = grade["verdict"]
    timing = verdict.get("timing") or {}
    return {
        "exercise": verdict.get("exercise"),
        "status": verdict["status"],
        "verified": verdict.get("verified"),
        "seconds": grade["seconds"],
        "us": [timing[name] for name in ("median_us", "p20_us", "p80_us")] if timing.get("median_us") else None,
        "device": verdict.get("device"),
        "versions": verdict.get("versions"),
        "stages": {stage["name"]: stage["seconds"] for stage in verdict.get("stages", [])},
        "cause": (verdict.get("diagnosis") or {}).get("cause"),
    }


def _file(root: Path, devices: str) -> Path:
    return root / f"run-{devices.replace(',', '-')}.json"


def surprises(found: dict[str, Any]) -> list[str]:
    """Every right submission passes, and every other one does not."""
    grades = list(found["grades"].values())
    faults = [f"{g['exercise']}: {g['status']} ({g['cause']})" for g in grades if g["status"] not in ALLOWED]
    passed = sum(g["status"] == "passed" for g in grades)
    wanted = len(grades) - len(grades) // FAULTY
    return faults + ([] if passed == wanted else [f"{passed} of {len(grades)} passed, {wanted} must"])


def compared(root: Path, one: str, other: str) -> tuple[list[str], bool]:
    """The table in Markdown, and whether the runs agree."""
    first, second = (json.loads(_file(root, devices).read_text()) for devices in (one, other))
    pairs = [(g, second["grades"][key]) for key, g in first["grades"].items() if key in second["grades"]]
    alike = sum(a["status"] == b["status"] for a, b in pairs)
    timed = [(a, b) for a, b in pairs if a["us"] and b["us"]]
    agree = sum(not apart(a["us"], b["us"]) for a, b in timed)
    off = sorted(abs(b["us"][0] / a["us"][0] - 1) for a, b in timed)
    some = next(iter(first["grades"].values()))
    versions = some["versions"] or {}
    lines = [
        "# A class on several GPUs",
        "",
        f"{some['device']}, torch {versions.get('torch')}, triton {versions.get('triton')}, "
        f"Python {versions.get('python')}, {first['date']}. Written by `python -m benchmarks.homework_gpus`. "
        "Verified grading with timing; one submission in twelve faults its GPU.",
        "",
        "| GPUs | submissions | seconds | submissions a minute | busy, % | statuses as they must be |",
        "|---|---|---|---|---|---|",
    ]
    for found in (first, second):
        busy = ", ".join(str(share) for share in found["busy_percent"].values())
        lines.append(
            f"| {len(found['devices'].split(','))} | {len(found['grades'])} | {found['seconds']} | "
            f"{found['a_minute']} | {busy} | {'yes' if not surprises(found) else 'no'} |"
        )
    ratio = second["a_minute"] / first["a_minute"]
    lines += [
        "",
        f"The second run graded {ratio:.2f} times as many submissions a minute. The same status in both: {alike} of "
        f"{len(pairs)}. Timed in both: {len(timed)}; spreads (p20 to p80) that overlap: {agree}.",
    ]
    if off:
        middle, most = (100 * off[int(share * (len(off) - 1))] for share in (0.5, 0.95))
        lines[-1] += f" The two medians differ by {middle:.2f} % in the median, by {most:.2f} % or less in 19 of 20."
    return lines, alike == len(pairs) and bool(timed) and agree >= AGREED * len(timed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--devices", help="as in CUDA_VISIBLE_DEVICES")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--compare", nargs=2, metavar="DEVICES")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.compare:
        lines, agree = compared(options.out, *options.compare)
        print("\n".join(lines))
        (options.out / "homework-gpus.md").write_text("\n".join(lines) + "\n")
        return 0 if agree else 1
    found = run(options.out, options.devices, options.count)
    faults = surprises(found)
    how = f"{found['seconds']} s, {found['a_minute']} a minute, busy {found['busy_percent']}"
    print(f"{len(found['grades'])} graded: {how}")
    print("\n".join(faults[:20]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
