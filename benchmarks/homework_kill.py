"""Kill -9 at random moments of a homework run, which is then begun again: is a grade lost, or anything graded twice?

    python -m benchmarks.homework_kill --kills 50 [--real] [--seed 1] [--no-cluster]

Of the command on this machine and on a Ray cluster of three nodes, what is killed is in turns the command, a grader, an
actor, a node. After each kill the journal must hold what it held. No content that it holds may be graded again. In the
end every file of results must be as from a run that nobody disturbed. The stand-in grader of the tests says what it was
asked; with --real the grader itself grades, and a grade made twice shows in the journal alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.homework import differences
from grader.catalog import find
from grader.process_tree import children, descendants

ROOT = Path(__file__).resolve().parents[1]
FAKE = shlex.join([sys.executable, str(ROOT / "tests" / "fake_grader.py")])
LEARNERS = 24
STATUSES = ("passed", "wrong_answer", "timeout", "import_error")
NODE = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80 << 20}
HERE, AWAY = ("command", "grader"), ("command", "grader", "actor", "node")
QUIET = {"RAY_memory_monitor_refresh_ms": "0", "RAY_USAGE_STATS_ENABLED": "0"}


@dataclass
class Seen:
    kills: dict[str, int] = field(default_factory=dict)
    runs: int = 0
    torn: int = 0  # kills that left half a line in the journal
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.kills.values())


class Nodes:
    """A Ray cluster whose nodes come back after they were killed."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        self._temporary = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(
            prefix="tp-", dir="/tmp"
        )  # short: sockets lie there
        self.cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0, "include_dashboard": False})
        for _ in range(count):
            self.cluster.add_node(**NODE)

    def close(self) -> None:
        self.cluster.shutdown()
        shutil.rmtree(self._temporary, ignore_errors=True)

    def processes(self, words: bytes) -> list[int]:
        """Of the nodes, those whose command line holds the words."""
        found = []
        for node in self.cluster.worker_nodes:
            raylet = node.all_processes["raylet"][0].process.pid
            found += [pid for pid in descendants(raylet) if words in _command_line(pid)]
        return found

    def kill_one(self, chance: random.Random) -> None:
        self.cluster.remove_node(chance.choice(sorted(self.cluster.worker_nodes, key=id)), allow_graceful=False)
        self.cluster.add_node(**NODE)


@dataclass
class Homework:
    """One class, with where its results are, and what undisturbed ones look like."""

    folder: Path
    out: Path
    log: Path
    nodes: Nodes | None

    def start(self, out: Path | None = None) -> subprocess.Popen[bytes]:
        arguments = ["homework", str(self.folder), "--out", str(out or self.out), "--workers", "2"]
        arguments += ["--cluster", self.nodes.cluster.address] if self.nodes and out is None else []
        full = [sys.executable, "-m", "tutor", *arguments, "--json"]
        return subprocess.Popen(full, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def journal(self) -> list[str]:
        """The contents that were graded, in order."""
        file = self.out / "journal.jsonl"
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []
        return [Path(json.loads(line)["verdict"]["file"]).stem for line in lines]

    def torn(self) -> bool:
        file = self.out / "journal.jsonl"
        return file.exists() and not (file.read_bytes() or b"\n").endswith(b"\n")

    def asked(self) -> list[str]:
        """The contents that the stand-in was to grade, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        requests = [json.loads(line.partition(" ")[2]) for line in lines if line.endswith("}")]
        return [Path(one["file"]).stem for one in requests if one["op"] == "grade"]


def digest() -> str:
    """Of the grader and the course as they are now: with other ones, what is known is graded again, as it should be."""
    code = "from tutor.homework.work import course_digest; print(course_digest())"
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def make_class(folder: Path, real: bool) -> None:
    solution, stub = (getattr(find("vector_add"), name).read_text() for name in ("solution", "stub"))
    for number in range(LEARNERS // 3 if real else LEARNERS):
        name = folder / f"learner{number:02}"
        name.mkdir(parents=True)
        text = f"# {number}\n# fake: {STATUSES[number % 4]}\n# takes: 0.2\n"
        (name / "vector_add.py").write_text(f"{stub if number % 4 == 3 else solution}\n# {number}\n" if real else text)


def disturbed(homework: Homework, seen: Seen, kills: int, chance: random.Random, typical: float) -> None:
    """One class from its first grade to its last, with kills until there were enough."""
    turns = list(AWAY if homework.nodes else HERE)
    while True:
        known, asked = homework.journal(), len(homework.asked())
        seen.runs += 1
        process = homework.start()
        while process.poll() is None and seen.total < kills:
            try:
                process.wait(chance.uniform(0.1, typical))
            except subprocess.TimeoutExpired:
                (kind,) = chance.choices(turns, [1 / (1 + seen.kills.get(one, 0)) for one in turns])
                if _kill(kind, process, homework, chance):
                    seen.kills[kind] = seen.kills.get(kind, 0) + 1
        process.wait()
        seen.torn += homework.torn()
        after = homework.journal()
        if after[: len(known)] != known:
            seen.faults.append("a grade that was on the disk is gone")
        if len(set(after)) != len(after):
            seen.faults.append("a grade stands twice in the journal")
        if again := set(homework.asked()[asked:]) & set(known):
            seen.faults.append(f"graded again, though known: {again}")
        if process.returncode in (0, 1):
            return
        if process.returncode not in (3, -signal.SIGKILL):
            seen.faults.append(f"exit code {process.returncode}")
            return


def _kill(kind: str, process: subprocess.Popen[bytes], homework: Homework, chance: random.Random) -> bool:
    """Whether there was one to kill."""
    if kind == "node":
        assert homework.nodes is not None
        homework.nodes.kill_one(chance)
        return True
    if kind == "command":
        found = [process.pid]
    elif homework.nodes is None:
        found = children(process.pid)
    else:
        actors = homework.nodes.processes(b"ray::HomeworkGrader")
        found = actors if kind == "actor" else [pid for actor in actors for pid in children(actor)]
    if not found:
        return False
    try:
        os.kill(chance.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def run(kills: int, chance: random.Random, folder: Path, real: bool, nodes: Nodes | None) -> Seen:
    seen, before = Seen(), digest()
    make_class(folder / "class", real)
    whole = Homework(folder / "class", folder / "whole", folder / "grader.log", nodes)
    started = time.monotonic()
    whole.start(whole.out).wait()
    typical = (time.monotonic() - started) / 2
    number = 0
    while seen.total < kills and not seen.faults:
        number += 1
        homework = Homework(whole.folder, folder / f"out{number}", whole.log, nodes)
        disturbed(homework, seen, kills, chance, typical)
        if different := differences(whole.out, homework.out):
            seen.faults.append(f"not as undisturbed: {different[:5]}")
    if digest() != before:
        seen.faults = ["the grader or the course was edited meanwhile, so this shows nothing: run it again"]
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="half of them on the cluster")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="with the grader itself")
    parser.add_argument("--no-cluster", action="store_true", help="on this machine alone")
    options = parser.parse_args()
    code, chance = 0, random.Random(options.seed)
    for away in (False,) if options.no_cluster else (False, True):
        with tempfile.TemporaryDirectory() as name:
            given: dict[str, Any] = {**QUIET, "PYTHONPATH": str(ROOT), "FAKE_GRADER_LOG": f"{name}/grader.log"}
            os.environ.update(given if options.real else {**given, "TRITON_PREP_GRADER": FAKE})
            nodes = Nodes(3) if away else None
            kills = options.kills if options.no_cluster else options.kills // 2 + (options.kills % 2 and away)
            seen = run(kills, chance, Path(name), options.real, nodes)
            if nodes:
                nodes.close()
        counts = ", ".join(f"{kind} {number}" for kind, number in sorted(seen.kills.items()))
        where = "cluster" if away else "this machine"
        print(f"{where}: kill -9 {seen.total} times ({counts}) in {seen.runs} runs; "
              f"{seen.torn} left half a line in the journal", flush=True)  # fmt: skip
        print("\n".join(seen.faults) or "nothing lost, nothing graded twice, results as undisturbed", flush=True)
        code = max(code, int(bool(seen.faults)))
    return code


if __name__ == "__main__":
    sys.exit(main())
