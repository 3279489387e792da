"""Does the grader agree with the truth on random mutations of the reference solutions?

    python -m benchmarks.mutation [--seed N] [--count M] [--only EXERCISE…] [--out FOLDER] [--again JSON…]

A mutant that differs must not pass (escaped: 0), one that is equal must not fail (misjudged: 0). The truth comes from
`truth.py`, which asks neither the judge nor its comparison. `--again` grades the mutants of earlier runs once more and
asks for the truth only where the two disagree. The verdicts are the interpreter's. SIGTERM ends a run early: what is
done is written.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.mutation import report
from benchmarks.mutation.inputs import INPUTS
from benchmarks.mutation.mutators import Mutant, sample
from benchmarks.server import ROOT, GraderServer
from grader.catalog import find

CALL_LIMIT = 10.0  # seconds


@dataclass(frozen=True)
class Judged:
    """One mutant: what is true of it, and what the grader says."""

    exercise: str
    operator: str
    line: int
    diff: str
    truth: str  # equal, different, only large, race, borderline, undecided
    why: str
    call: str  # where it showed
    status: str
    cause: str | None
    case: str | None  # the grader's first failing case
    message: str
    source: str

    @property
    def outcome(self) -> str:
        """killed, equal, escaped, misjudged, race, only large, borderline or undecided."""
        passed = self.status == "passed"
        if self.truth == "equal":
            return "equal" if passed else "misjudged"
        if self.truth in ("borderline", "undecided"):
            return self.truth
        return ("escaped" if self.truth == "different" else self.truth) if passed else "killed"


class TruthServer:
    """The two processes that know: values in the interpreter, and whether it compiles. Each starts when first asked."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def ask(self, exercise: str, file: Path) -> dict[str, Any]:
        """Values first; whether it compiles only matters for what has the right ones."""
        found = self._ask("interpreter", exercise, file)
        if found["truth"] != "different":
            compiled = self._ask("compile", exercise, file)
            if compiled["truth"] != "equal":
                return compiled
        return found

    def _ask(self, mode: str, exercise: str, file: Path) -> dict[str, Any]:
        if mode not in self.processes:
            command = [sys.executable, "-m", "benchmarks.mutation.truth", mode]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.processes[mode] = subprocess.Popen(command, text=True, cwd=ROOT, **pipes)
        process = self.processes[mode]
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"exercise": exercise, "file": str(file)}) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {mode} truth process ended")
        return json.loads(line)

    def close(self) -> None:
        for process in self.processes.values():
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def facts(verdict: dict[str, Any]) -> dict[str, Any]:
    """Status, cause, first failing case and message of a verdict."""
    diagnosis = verdict["diagnosis"] or {}
    failed = next((c for c in verdict["cases"] if c["status"] not in ("passed", "skipped", "not_run")), None)
    return {
        "status": verdict["status"],
        "cause": diagnosis.get("cause"),
        "case": failed["name"] if failed else None,
        "message": str(diagnosis.get("message", "")),
    }


def graded(grader: GraderServer, exercise: str, file: Path) -> dict[str, Any]:
    """The facts of a fresh verdict. Where the grader fails, "failed" is the status."""
    event, _ = grader.grade(exercise, file, backend="interpreter", call_limit=CALL_LIMIT)
    if event["event"] != "verdict":
        return {"status": "failed", "cause": None, "case": None, "message": str(event.get("message"))}
    return facts(event["verdict"])


def judged(mutant: Mutant, known: dict[str, Any], verdict: dict[str, Any]) -> Judged:
    truth = {name: known[name] for name in ("truth", "why", "call")}
    return Judged(mutant.exercise, mutant.operator, mutant.line, mutant.diff, source=mutant.source, **truth, **verdict)


def all_judged(exercises: list[str], seed: int, count: int, folder: Path) -> Iterator[Judged]:
    truth = TruthServer()
    with GraderServer() as grader:
        for exercise in exercises:
            file = folder / f"{exercise}.py"
            for mutant in sample(exercise, find(exercise).solution.read_text(), count, seed):
                file.write_text(mutant.source)
                yield judged(mutant, truth.ask(exercise, file), graded(grader, exercise, file))
    truth.close()


def graded_again(earlier: list[dict[str, Any]], folder: Path) -> Iterator[Judged]:
    """The verdicts of earlier runs' mutants now; the truth is asked again where the two disagree."""
    truth = TruthServer()
    with GraderServer() as grader:
        for row in earlier:
            row = {name: value for name, value in row.items() if name != "outcome"}
            file = folder / f"{row['exercise']}.py"
            file.write_text(row["source"])
            one = Judged(**{**row, **graded(grader, row["exercise"], file)})
            if one.outcome not in ("killed", "equal"):
                known = truth.ask(row["exercise"], file)
                one = replace(one, truth=known["truth"], why=known["why"], call=known["call"])
            yield one
    truth.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=440, help="mutants over all exercises")
    parser.add_argument("--only", nargs="*", help="exercises; all of them by default")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--again", type=Path, nargs="+", help="the JSON of earlier runs, to grade again")
    options = parser.parse_args()
    solutions = sorted(f.stem for f in ROOT.glob("solutions/*/*.py"))
    exercises = options.only or [name for name in solutions if name in INPUTS]
    left_out = sorted(set(solutions) - set(INPUTS))
    started = time.perf_counter()
    found: list[Judged] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="triton-prep-mutants-") as folder:
        if options.again:
            earlier = [row for file in options.again for row in json.loads(file.read_text())["mutants"]]
            stream = graded_again([row for row in earlier if row["exercise"] in exercises], Path(folder))
        else:
            stream = all_judged(exercises, options.seed, -(-options.count // len(exercises)), Path(folder))
        with contextlib.suppress(KeyboardInterrupt):  # what is done is worth keeping
            for one in stream:
                found.append(one)
                what = f"{one.exercise:16} {one.operator:22} {one.line:3}"
                print(f"{len(found):4} {what} {one.truth:10} {one.status:14} {one.cause}", flush=True)
                if one.outcome not in ("killed", "equal"):
                    print(
                        f"     {one.outcome}: {one.why or one.message} ({one.call or one.case})\n{one.diff}", flush=True
                    )
    options.out.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(one), "outcome": one.outcome} for one in found]
    record = {
        "seed": options.seed,
        "seconds": round(time.perf_counter() - started),
        "without_inputs": left_out,
        "mutants": rows,
    }
    (options.out / "mutation-interpreter.json").write_text(json.dumps(record, indent=1) + "\n")
    (options.out / "mutation-interpreter.md").write_text(report.page(record))
    print(report.table(rows))
    return 1 if any(row["outcome"] in ("escaped", "misjudged") for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
