"""Grade a generated class with `triton-prep homework`: is every score as it must be, and alike in every way of running?

    python -m benchmarks.homework --count 300 --seed 1 --out /tmp/homework [--workers 2] [--nodes 2] [--kills 50]

The class mixes solutions, known mistakes, exploits and hostile submissions in equal shares. It is graded with one
worker, with several, and once more where everything is known; with --nodes on a Ray cluster; then, with --kills, in
runs of which the command or one of its graders is ended by kill -9 at random moments (benchmarks.homework_kill does so
on a cluster, too). Results must be alike byte for byte but for times.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.homework_class import Expected, make_class
from benchmarks.server import held
from grader.process_tree import children, descendants

ROOT = Path(__file__).resolve().parents[1]
ASSIGNMENT = "title: A class of all kinds\nhidden: {seed: 7919}\nbackend: interpreter\ntime_limit: 20\n"


@dataclass
class Ran:
    code: int
    seconds: float
    peak_mb: float  # of the command and everything below it
    said: str


@dataclass
class Kills:
    commands: int = 0
    graders: int = 0
    faults: list[str] = field(default_factory=list)


def command(folder: Path, assignment: Path, out: Path, workers: int) -> list[str]:
    arguments = ["homework", str(folder), "--assignment", str(assignment), "--out", str(out), "--workers", str(workers)]
    return [sys.executable, "-m", "tutor", *arguments, "--json"]


def run(arguments: list[str]) -> Ran:
    started, peak = time.monotonic(), 0.0
    with open(os.devnull, "w") as nowhere, subprocess.Popen(
        arguments, cwd=ROOT, stdout=nowhere, stderr=subprocess.PIPE, text=True
    ) as process:  # fmt: skip
        while process.poll() is None:
            family = [process.pid, *descendants(process.pid)]
            peak = max(peak, sum((one.pss_mb or one.rss_mb) for pid in family if (one := held(pid)) is not None))
            time.sleep(0.5)
        assert process.stderr is not None
        return Ran(process.returncode, time.monotonic() - started, peak, process.stderr.read())


def surprises(out: Path, expected: list[Expected]) -> list[str]:
    rows = {row["learner"]: row for row in csv.DictReader((out / "results.csv").open(encoding="utf-8"))}
    found = []
    for one in expected:
        row = rows.get(one.learner)
        if row is None:
            found.append(f"{one.learner}: no row")
            continue
        status = row.get(f"{one.exercise} status")
        wrong_score = status != "infrastructure_error" and float(row["score"] or -1) != float(status == "passed")
        if status not in one.statuses or wrong_score:
            found.append(
                f"{one.learner}: {one.exercise} {status}, score {row['score']!r}; must be {' or '.join(one.statuses)}"
            )
    return found


def tree(out: Path) -> dict[str, str]:
    """Every file of results without its times."""
    found = {}
    for path in sorted(out.rglob("*")):
        name = path.relative_to(out).as_posix()
        if path.is_file() and name not in ("journal.jsonl", "times.csv"):
            found[name] = without_times(path.read_text(encoding="utf-8"), str(out))
    return found


def without_times(text: str, out: str) -> str:
    text = re.sub(r'"(execution_time|duration)": [\d.]+', r'"\1": 0', text.replace(out, "OUT"))
    text = re.sub(r' time="[\d.]+"', "", text)
    return re.sub(r'<section class="times">.*?</section>', "", text, flags=re.DOTALL)


def differences(one: Path, other: Path) -> list[str]:
    first, second = tree(one), tree(other)
    return [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)]


def kill_loop(arguments: list[str], out: Path, kills: int, chance: random.Random, typical: float) -> Kills:
    """Ends the command, or a grader below it, at random moments until the class is graded, over and over."""
    seen = Kills()
    while seen.commands + seen.graders < kills:
        shutil.rmtree(out, ignore_errors=True)
        done = False
        while not done:
            before = _journaled(out)
            done = _one_go(arguments, seen, chance, typical, kills)
            after = _journaled(out)
            if len(set(after)) != len(after):
                seen.faults.append("a grade stands twice in the journal")
            if before != after[: len(before)]:
                seen.faults.append("a grade that was on the disk is gone")
    return seen


def _one_go(arguments: list[str], seen: Kills, chance: random.Random, typical: float, kills: int) -> bool:
    """Whether the command came to its end."""
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        process.wait(chance.uniform(0.3, typical / 3) if seen.commands + seen.graders < kills else None)
    except subprocess.TimeoutExpired:
        graders = children(process.pid)
        if graders and chance.random() < 0.5:
            seen.graders += 1
            os.kill(chance.choice(graders), signal.SIGKILL)
            time.sleep(chance.uniform(0.1, typical / 4))
        if process.poll() is None:
            seen.commands += 1
            process.kill()
        process.wait()
    return process.returncode in (0, 1, 3)


def on_cluster(folder: Path, assignment: Path, root: Path, count: int, expected: list[Expected]) -> list[str]:
    """What is not as it must be, or not as from one worker."""
    from benchmarks.homework_kill import Nodes

    nodes = Nodes(count)
    try:
        out = root / "cluster"
        ran = run([*command(folder, assignment, out, count), "--cluster", nodes.cluster.address])
    finally:
        nodes.close()
    print(f"cluster of {count} nodes: exit code {ran.code}, {ran.seconds:.0f} s", flush=True)
    if not (out / "results.csv").exists():
        return [f"cluster: no results: {ran.said[-2000:]}"]
    different = [f"alone and cluster differ: {name}" for name in differences(root / "alone", out)]
    return [f"cluster: {one}" for one in surprises(out, expected)] + different


def _journaled(out: Path) -> list[str]:
    file = out / "journal.jsonl"
    lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
    return [json.loads(line)["key"] for line in lines]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=0, help="once more on a Ray cluster of so many nodes, made here")
    parser.add_argument("--out", type=Path, required=True, help="a folder that is made anew")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    folder, assignment = options.out / "class", options.out / "assignment.yaml"
    expected = make_class(folder, options.count, options.seed)
    assignment.write_text(ASSIGNMENT)
    faults = []
    for name, workers in (("alone", 1), ("several", options.workers), ("several", options.workers)):
        out = options.out / name
        again = out.exists()
        ran = run(command(folder, assignment, out, workers))
        what = f"{workers} worker{'s' * (workers > 1)}{', everything known' if again else ''}"
        print(f"{what}: exit code {ran.code}, {ran.seconds:.0f} s, at most {ran.peak_mb:.0f} MB", flush=True)
        found = surprises(out, expected) if (out / "results.csv").exists() else [f"no results: {ran.said[-2000:]}"]
        faults += [f"{what}: {one}" for one in found]
        if not again:
            first_seconds = ran.seconds
    faults += [
        f"alone and several differ: {name}" for name in differences(options.out / "alone", options.out / "several")
    ]
    if options.nodes:
        faults += on_cluster(folder, assignment, options.out, options.nodes, expected)
    if options.kills:
        out = options.out / "killed"
        chance = random.Random(options.seed)
        seen = kill_loop(command(folder, assignment, out, options.workers), out, options.kills, chance, first_seconds)
        print(f"kill -9: {seen.commands} of the command, {seen.graders} of a grader")
        faults += seen.faults
        faults += [f"after kills, different: {name}" for name in differences(options.out / "several", out)]
    print("\n".join(faults) or f"all {len(expected)} as they must be, alike in every way of running")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
