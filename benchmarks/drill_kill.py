"""Kill -9 at random moments of a running `drill --plain`, then resume: is every answer kept, and is the clock right?

    python -m benchmarks.drill_kill --kills 200

A drill is a process of its own (forked from one that has imported the command: a start of Python each time would take
ten times as long), driven through pipes as by a candidate. After each kill the drill is resumed; the answers that were
acknowledged on stdout must be in it, none twice, and its clock must agree with the wall clock.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

CLOCK_SLACK = 1.0  # seconds


@dataclass
class Seen:
    kills: int = 0
    drills: int = 0
    acknowledged: int = 0  # answers said to be handed in
    torn: int = 0  # kills that left half a line in the journal, or a temporary file
    worst_clock: float = 0.0  # seconds between the drill's clock and the wall clock


class Lost(AssertionError):
    """An answer or some time is gone; the text says which."""


def run_kills(kills: int, chance: random.Random, folder: Path) -> Seen:
    """Raises Lost at the first thing that is not as it was."""
    seen = Seen()
    while seen.kills < kills:
        seen.drills += 1
        _one_drill(seen, kills, chance, folder / f"work{seen.drills}")
    return seen


def _one_drill(seen: Seen, kills: int, chance: random.Random, work: Path) -> None:
    started = 0.0
    acknowledged: set[str] = set()
    resume = False
    while seen.kills < kills:
        more, finished = _until_killed(work, resume, chance)
        acknowledged |= more
        state_file = next((work / ".triton-prep" / "drills").glob("*/state.json"), None)
        if state_file is None:  # killed before the drill began
            if not finished:
                seen.kills += 1
            continue
        if finished:
            return
        seen.kills += 1
        seen.acknowledged += len(more)
        started = started or state_file.parent.stat().st_mtime
        _check(seen, state_file.parent, acknowledged)
        resume = True


def _check(seen: Seen, folder: Path, acknowledged: set[str]) -> None:
    from tutor.course.loader import load
    from tutor.drill.clock import SystemClock
    from tutor.drill.sitting import Sitting

    journal = (folder / "journal.jsonl").read_bytes() if (folder / "journal.jsonl").exists() else b""
    seen.torn += (bool(journal) and not journal.endswith(b"\n")) or any(folder.glob(".state.*"))
    sitting, _ = Sitting.resume(folder, SystemClock(), load())
    try:
        lost = acknowledged - set(sitting.state.answers)
        if lost:
            raise Lost(f"handed in and gone: {sorted(lost)}")
        entries = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
        answered = [entry["task"] for entry in entries if entry["event"] == "answered"]
        if len(answered) != len(set(answered)):
            raise Lost(f"an answer was taken twice: {answered}")
        begun = next((entry["wall"] for entry in entries if entry["event"] == "begun"), None)
        if begun is not None and sitting.state.stage == "running":
            off = abs(sitting.elapsed() - (time.time() - begun))
            seen.worst_clock = max(seen.worst_clock, off)
            if off > CLOCK_SLACK:
                raise Lost(f"the clock is off by {off:.2f} s")
    finally:
        sitting.close()


def _until_killed(work: Path, resume: bool, chance: random.Random) -> tuple[set[str], bool]:
    """Plays for a random while. Returns the answers acknowledged, and whether the drill came to its end."""
    to_child, answers = os.pipe()
    output, from_child = os.pipe()
    pid = os.fork()
    if pid == 0:
        _child(to_child, from_child, (answers, output), work, resume)
    os.close(to_child)
    os.close(from_child)
    deadline = time.monotonic() + chance.uniform(0.0, 0.25)
    text, answered_to = "", 0
    with contextlib.suppress(BrokenPipeError):
        while (left := deadline - time.monotonic()) > 0:
            ready, _, _ = select.select([output], [], [], left)
            if not ready:
                break
            chunk = os.read(output, 65536)
            if not chunk:
                break
            text += chunk.decode("utf-8", "replace")
            if text.rstrip(" ").endswith((":", "?", ">")) and len(text) > answered_to:
                answered_to = len(text)
                os.write(answers, b"1\n" if chance.random() < 0.9 else b":flag\n")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.close(answers)
    while chunk := os.read(output, 65536):
        text += chunk.decode("utf-8", "replace")
    os.close(output)
    _, status = os.waitpid(pid, 0)
    return _acknowledged(text), not os.WIFSIGNALED(status)


def _acknowledged(text: str) -> set[str]:
    """Ids of the tasks said to be handed in: "-- 2 of 4: …" comes before "Handed in."."""
    found: set[str] = set()
    task = ""
    for line in text.splitlines():
        if line.startswith("-- ") and " of " in line:
            task = f"questions.{line[3:].split(' ')[0]}"
        elif "Handed in." in line and task:
            found.add(task)
    return found


def _child(stdin: int, stdout: int, others: tuple[int, ...], work: Path, resume: bool) -> None:
    os.dup2(stdin, 0)
    os.dup2(stdout, 1)
    for handle in others:
        os.close(handle)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
    sys.stderr = open(os.devnull, "w")
    from tutor.commands.drilling import drill

    code = 3
    try:
        code = drill(
            None if resume else "kill", None if resume else 1, None, None,
            plain=True, interviewer=False, resume=resume, listed=False, folder=work,
        )  # fmt: skip
    except BaseException as error:
        os.write(1, f"\n!! {error!r}".encode())
        code = 4
    finally:
        os._exit(code)


PLAN = """\
plans:
  - id: drills.plan.kill
    name: kill
    title: Kill
    about: Many questions, to be killed in.
    phases:
      - {name: questions, minutes: 120, script: Go., picks: [{kinds: [quiz], count: 20}]}
"""
MODULE = "{id: m01, title: Many, blurb: Many., probes: Nothing., items: [\n"
QUESTION = """\
  {{kind: quiz, id: m01.quiz.i{number}, title: Question {number}, question: Which?, options: [
    {{text: this, why: yes it is, correct: true}}, {{text: that, why: it is not}}]}},
"""


def prepare(folder: Path) -> None:
    """A course of forty questions, and the command imported before any fork."""
    import tutor.commands.drilling
    import tutor.commands.interview
    from grader import catalog

    (folder / "modules").mkdir()
    (folder / "exercises").mkdir()
    questions = "".join(QUESTION.format(number=number) for number in range(40))
    (folder / "modules" / "01-many.yaml").write_text(f"{MODULE}{questions}]}}\n", encoding="utf-8")
    (folder / "modules" / "drills.yaml").write_text(PLAN, encoding="utf-8")
    os.environ["TRITON_PREP_COURSE"], os.environ["TRITON_PREP_CACHE"] = str(folder), str(folder / "cache")
    catalog.exercises.cache_clear()
    assert tutor.commands.drilling.load_plans()
    assert tutor.commands.interview.HELP


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="drill-kill-") as name:
        prepare(Path(name))
        begun = time.monotonic()
        seen = run_kills(given.kills, random.Random(given.seed), Path(name))
    took = time.monotonic() - begun
    print(f"{seen.kills} kills over {seen.drills} drills in {took:.0f} s.")
    print(f"{seen.acknowledged} answers were acknowledged: none was lost, none taken twice.")
    print(f"{seen.torn} kills left a write half done; the clock was off by at most {seen.worst_clock:.2f} s.")


if __name__ == "__main__":
    main()
