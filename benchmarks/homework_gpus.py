"""Grade a class with timing on some of this machine's GPUs: submissions a minute, how busy each was, what was timed.

    python -m benchmarks.homework_gpus --out DIR --devices 0 [--count 120]   one run; the class is made on first use
    python -m benchmarks.homework_gpus --out DIR --devices 0,1 --workers 4   so many graders on each GPU
    python -m benchmarks.homework_gpus --out DIR --devices 0 --single 16     so many of them by one grader, one by one
    python -m benchmarks.homework_gpus --out DIR --compare 0 0,1 single      such runs beside the first of them

One submission in twelve faults its GPU (it stores far outside its output); the others are reference solutions, each a
little different text. What is known is written every few seconds: after --limit SECONDS, or SIGTERM, the command is
ended, the run is marked as cut, and --resume goes on with it. --name NAME keeps a run under another name than its
devices'. Needs GPUs and only what `triton-prep homework` needs. Exits with 1 when a status is not as it must be, or the
runs do not agree.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.homework_gpus_table import compared, faults_beside, run_file, surprises
from grader.catalog import find
from grader.warm import die_with_parent
from tutor.homework.gpus import graders_each, memory_mb
from tutor.whole_files import write_atomically

ROOT = Path(__file__).resolve().parents[1]
EXERCISES = ("vector_add", "affine_relu", "row_sum", "softmax", "rms_norm", "transpose", "gelu", "row_max")
FAULTY = 12  # one submission in so many
ASSIGNMENT = "title: On several GPUs\nexercises:\n" + "".join(f"  - exercise: {name}\n" for name in EXERCISES)
KEEP_EVERY = 3.0  # seconds
PATIENCE = 30.0  # seconds for the command to end by itself
SINGLE = "single"


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


def class_of(root: Path, count: int, single: int | None) -> Path:
    """The folder to grade: the whole class, or the first `single` of those that are right."""
    folder = root / "class"
    if not folder.exists():
        part = root / f"class-{os.getpid()}"
        make_class(part, count)
        part.rename(folder)
    if single is None:
        return folder
    some = root / SINGLE
    shutil.rmtree(some, ignore_errors=True)
    for place in sorted(folder.glob("*-right"))[:single]:
        shutil.copytree(place, some / place.name)
    return some


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
            with contextlib.suppress(OSError, ValueError):  # no such tool, or no such device
                told = subprocess.run(self.command, capture_output=True, text=True, check=False).stdout
                for line in told.splitlines():
                    index, share = line.split(",")
                    self.samples.setdefault(index.strip(), []).append(float(share))

    def shares(self) -> dict[str, float]:
        return {index: round(mean(values), 1) for index, values in list(self.samples.items())}


class Run:
    """One run of the command: `run-<name>.json` and `journal-<name>.jsonl` are kept up to date while it lasts."""

    def __init__(self, root: Path, options: argparse.Namespace) -> None:
        self.root, self.devices, self.name = root, options.devices, options.name
        self.folder = class_of(root, options.count, options.single)
        self.workers = 1 if options.single is not None else options.workers
        self.out = root / f"results-{self.name.replace(',', '-')}"
        self.kept = run_file(root, self.name).with_name(f"journal-{self.name.replace(',', '-')}.jsonl")
        self.earlier = 0.0  # seconds of the goes before this one
        if options.resume and run_file(root, self.name).is_file():
            self.earlier = float(json.loads(run_file(root, self.name).read_text())["seconds"])
            if not (self.out / "journal.jsonl").exists() and self.kept.exists():
                self.out.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.kept, self.out / "journal.jsonl")
        else:
            shutil.rmtree(self.out, ignore_errors=True)
        self.names = {hashlib.sha256(p.read_bytes()).hexdigest(): p.parent.name for p in self.folder.rglob("*.py")}
        self.started = time.monotonic()
        self.stopped = threading.Event()

    def go(self, limit: float) -> dict[str, Any]:
        """Ends the command after `limit` seconds."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stopped.set())
        said = self.root / f"said-{self.name.replace(',', '-')}.txt"
        with said.open("w") as words, self._command(words) as process, Busy(self.devices) as busy:
            ended, looked = False, float("-inf")
            while not ended:
                ended = process.poll() is not None
                cut = not ended and (self.stopped.is_set() or time.monotonic() - self.started > limit)
                if cut:
                    _end(process)
                if ended or cut or time.monotonic() - looked > KEEP_EVERY:
                    looked = time.monotonic()
                    found = self._keep(
                        busy, process.returncode, said.read_text(errors="replace")[-2000:], cut=not ended
                    )
                if cut:
                    break
                self.stopped.wait(0.2)
        return found

    def _command(self, words: Any) -> subprocess.Popen[bytes]:
        assignment = self.root / "assignment.yaml"
        assignment.write_text(ASSIGNMENT)
        arguments = [str(self.folder), "--assignment", str(assignment), "--out", str(self.out), "--format", "csv,json"]
        arguments += ["--workers", str(self.workers)] if self.workers else []
        return subprocess.Popen(
            [sys.executable, "-m", "tutor", "homework", *arguments],
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": self.devices},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=words,
            start_new_session=True,  # a Ctrl-C is for this process, which ends the command and writes what there is
            preexec_fn=die_with_parent,
        )

    def _keep(self, busy: Busy, code: int | None, said: str, *, cut: bool) -> dict[str, Any]:
        seconds = self.earlier + time.monotonic() - self.started
        journal = self.out / "journal.jsonl"
        lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
        write_atomically(self.kept, b"".join(line + b"\n" for line in lines))
        grades = [json.loads(line) for line in lines]
        count = len(self.devices.split(","))
        ends = sorted(grade["ended"] for grade in grades)
        steady = 60 * (len(ends) - 1) / (ends[-1] - ends[0]) if len(ends) > 1 and ends[-1] > ends[0] else None
        found = {
            "devices": self.devices,
            "workers": self.workers or graders_each(count, os.cpu_count() or 2, memory_mb()),
            "cut": cut,
            "of": len(self.names),
            "code": code,
            "said": said,
            "seconds": round(seconds, 1),
            "a_minute": round(60 * len(grades) / seconds, 2),
            "a_minute_steady": round(steady, 2) if steady and not self.earlier else None,
            "busy_percent": busy.shares(),
            "date": str(datetime.date.today()),
            "by_gpu": dict(sorted(Counter(grade["gpu"] for grade in grades).items())),
            "grades": {grade["key"]: self._short(grade) for grade in grades},
        }
        write_atomically(run_file(self.root, self.name), json.dumps(found, indent=1).encode() + b"\n")
        return found

    def _short(self, grade: dict[str, Any]) -> dict[str, Any]:
        verdict = grade["verdict"]
        timing = verdict.get("timing") or {}
        return {
            "submission": self.names.get(verdict.get("sha256")),
            "exercise": verdict.get("exercise"),
            "status": verdict["status"],
            "verified": verdict.get("verified"),
            **{name: grade[name] for name in ("gpu", "ended", "seconds", "waited")},
            "us": [timing[name] for name in ("median_us", "p20_us", "p80_us")] if timing.get("median_us") else None,
            "device": verdict.get("device"),
            "versions": verdict.get("versions"),
            "stages": {stage["name"]: stage["seconds"] for stage in verdict.get("stages", [])},
            "cause": (verdict.get("diagnosis") or {}).get("cause"),
            "message": None if verdict["status"] == "passed" else (verdict.get("diagnosis") or {}).get("message"),
        }


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--devices", help="as in CUDA_VISIBLE_DEVICES")
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--workers", type=int, help="graders on each GPU; default: the command's")
    parser.add_argument("--single", type=int, metavar="N", help="N right submissions, one by one")
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was cut")
    parser.add_argument("--name", help="of the run; default: its devices, or `single`")
    parser.add_argument("--compare", nargs="+", metavar="NAME")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.compare:
        lines, agree = compared(options.out, options.compare)
        print("\n".join(lines))
        (options.out / "homework-gpus.md").write_text("\n".join(lines) + "\n")
        return 0 if agree else 1
    if not options.devices:
        parser.error("--devices or --compare")
    options.name = options.name or (SINGLE if options.single is not None else options.devices)
    found = Run(options.out, options).go(options.limit)
    faults = surprises(found)
    cut = " (cut)" if found["cut"] else ""
    print(f"{len(found['grades'])} of {found['of']} graded{cut}: {found['seconds']} s, {found['a_minute']} a minute")
    print(f"by GPU {found['by_gpu']}, busy {found['busy_percent']}; graders on each: {found['workers']}")
    print("\n".join([*faults_beside(found), *faults[:20]]))
    return 1 if faults or not (found["cut"] or found["code"] in (0, 1)) else 0


if __name__ == "__main__":
    sys.exit(main())
