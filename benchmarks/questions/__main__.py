"""Answer questions about speed on this GPU: JSON, and tables in Markdown.

    python -m benchmarks.questions [--out DIR] [--only NAME…] [--budget SECONDS] [--dry] [--list]

Compiles the kernels of all variants in several processes, then times them in one, question by question. A variant that
fails is recorded with its traceback, and does not stop the others. What is not reached within the budget is recorded
as not reached. `--dry` needs no GPU: values only, in the interpreter on tiny inputs, and every kernel compiled for
sm_90 at full size. Exits with 1 when something failed, with 3 without a GPU.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.ladders.__main__ import events, stop
from benchmarks.questions.catalog import QUESTIONS
from benchmarks.questions.report import write
from grader.clocks import Clocks

ROOT = Path(__file__).resolve().parents[2]
TARGET = "sm_90"
SILENCE = 75.0  # seconds without a word after which a variant counts as hung; torch.compile may take half of them


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.questions", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--only", nargs="+", choices=list(QUESTIONS), metavar="NAME", help="--list names them")
    parser.add_argument("--budget", type=float, default=280.0, help="seconds; a question that is begun is finished")
    parser.add_argument("--jobs", type=int, default=max(1, min(16, len(os.sched_getaffinity(0)) - 1)))
    parser.add_argument("--dry", action="store_true", help="no GPU: tiny values, every kernel compiled for sm_90")
    parser.add_argument("--list", action="store_true", help="name the questions and do nothing")
    options = parser.parse_args(arguments)
    names = options.only or list(QUESTIONS)
    if options.list:
        for name in names:
            print(f"{name:24} {QUESTIONS[name].module}  {QUESTIONS[name].asks}")
        return 0
    until = time.monotonic() + options.budget
    device = "cpu" if options.dry else "cuda"
    told = next(events(start({"device": device, "names": [], "excluded": {}}), SILENCE))
    if told["event"] != "ready":
        print(f"no CUDA device here ({told['why']}); --dry needs none", file=sys.stderr)
        return 3
    options.out.mkdir(parents=True, exist_ok=True)
    run = Run(device, options.out, until, told)
    run.compile(names, options.jobs)
    with Clocks(every=2.0) as clocks:  # seldom: asking the driver delays what is launched meanwhile
        run.ask(names)
    run.finish(names, clocks.range() if device == "cuda" else None)
    print(f"wrote {run.stem}.json and .md")
    return 0 if run.complete(names) else 1


class Run:
    """The record, and what fills it."""

    def __init__(self, device: str, out: Path, until: float, ready: dict[str, Any]) -> None:
        self.device, self.until, self.started = device, until, time.monotonic()
        name = ready["device"].lower().replace(" ", "-") if device == "cuda" else "dry-run"
        self.stem = out / f"questions-{name}"
        self.record: dict[str, Any] = {
            "device": ready["device"], "versions": ready["versions"], "date": str(datetime.date.today()),
            "questions": {},
        }  # fmt: skip

    def result(self, name: str) -> dict[str, Any]:
        """The entry of a question: what is asked, and what is known of its variants so far."""
        question = QUESTIONS[name]
        empty = {
            "module": question.module, "asks": question.asks, "why": question.why, "unit": question.unit,
            "options": list(question.options), "rows": {}, "kernels": {}, "failed": {},
        }  # fmt: skip
        entry: dict[str, Any] = self.record["questions"].setdefault(name, empty)
        return entry

    def compile(self, names: list[str], jobs: int) -> None:
        """Put every kernel of these questions into Triton's cache, in `jobs` processes."""
        started = time.monotonic()
        for name in names:
            self.result(name)  # in the order of the catalogue, whoever is first
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.questions.compiled", TARGET, *names[job::jobs]],
                stdout=subprocess.PIPE, text=True, cwd=ROOT,
            )
            for job in range(jobs)
            if names[job::jobs]
        ]  # fmt: skip
        for process in processes:
            name = names[0]
            for event in events(process, max(1.0, self.until - time.monotonic())):
                name = event.get("question", name)
                if event["event"] == "compiled":
                    self.result(event["question"])["kernels"][event["variant"]] = event["kernels"]
                elif event["event"] == "failed":
                    self.fail(event)
                elif event["event"] == "ended":
                    self.fail({"question": name, "variant": None, "why": f"compiling: {event['why']}", "traceback": ""})
            stop(process)
        self.record["compile_seconds"] = round(time.monotonic() - started, 1)
        print(f"compiled in {self.record['compile_seconds']} s", flush=True)

    def ask(self, names: list[str]) -> None:
        """Answer the questions, with a fresh process after each variant that ends one."""
        left = [name for name in names if not (self.device == "cpu" and QUESTIONS[name].dry_skip)]
        for name in names:
            if name not in left:
                self.result(name)["skipped"] = QUESTIONS[name].dry_skip
        left.sort(key=lambda name: QUESTIONS[name].last)
        excluded: dict[str, list[str]] = {}
        while left and time.monotonic() < self.until:
            process = start({"device": self.device, "names": left, "excluded": excluded})
            trying: dict[str, Any] = {}
            for event in events(process, SILENCE):
                if event["event"] == "ended":
                    self.blame(trying, left, excluded, event["why"])
                elif event["event"] == "trying":
                    trying = event
                elif event["event"] == "copied":
                    self.record["copy_gb_per_s"] = event["gb_per_s"]
                elif event["event"] == "failed":
                    self.fail(event)
                    if event["variant"] is None:
                        left.remove(event["question"])
                elif event["event"] == "answered":
                    self.result(event["question"]).update(rows=event["rows"], seconds=event["seconds"])
                    left.remove(event["question"])
                    self.save()
                    print(f"{event['question']}: {len(event['rows'])} variants, {event['seconds']} s", flush=True)
                    if time.monotonic() > self.until:
                        break
            stop(process)

    def fail(self, event: dict[str, Any]) -> None:
        failed = self.result(event["question"])["failed"]
        failed.setdefault(event["variant"] or "", {"why": event["why"], "traceback": event["traceback"]})
        print(f"{event['question']}: {event['variant']}: {event['why']}", flush=True)

    def blame(self, trying: dict[str, Any], left: list[str], excluded: dict[str, list[str]], why: str) -> None:
        """Leave out the variant that was being tried when its process ended; where there is none, the question."""
        name = trying.get("question", left[0])
        if name not in left:
            return  # it ended after the last answer
        if trying.get("variant") is not None:
            excluded.setdefault(name, []).append(trying["variant"])
        else:
            left.remove(name)
        self.fail({"question": name, "variant": trying.get("variant"), "why": why, "traceback": ""})

    def save(self) -> None:
        write(self.record, QUESTIONS, self.stem)

    def finish(self, names: list[str], clocks: list[int] | None) -> None:
        for name in names:
            result = self.result(name)
            if not result["rows"] and not result["failed"] and not result.get("skipped"):
                result["skipped"] = "the budget was spent before it was reached"
        self.record |= {"sm_mhz": clocks, "seconds": round(time.monotonic() - self.started, 1)}
        self.save()

    def complete(self, names: list[str]) -> bool:
        """Whether every variant of every question was right, and none compiled with an error."""
        for name in names:
            result = self.result(name)
            dry = self.device == "cpu" and bool(QUESTIONS[name].dry_skip)
            if result["failed"] or (not dry and set(result["rows"]) != set(QUESTIONS[name].variants)):
                return False
        return True


def start(job: dict[str, Any]) -> subprocess.Popen[str]:
    environment = {**os.environ, **({"TRITON_INTERPRET": "1"} if job["device"] == "cpu" else {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.questions.timed"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json.dumps(job) + "\n")
    process.stdin.close()
    return process


if __name__ == "__main__":
    sys.exit(main())
