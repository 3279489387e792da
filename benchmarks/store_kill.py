"""Kill -9 at random moments of `triton-prep review`: is anything lost that was acknowledged?

    .venv/bin/python -m benchmarks.store_kill [--rounds 200] [--seed 0]

Each round copies a progress file with due questions, forks a process that runs the command with its answers waiting on
stdin, and kills it at a random time between the first question and the end. Then the file is opened as the next start
would: it opens without a notice and passes SQLite's integrity check; every question whose result was printed has its
attempt, its card is of today, and the count of attempts agrees; at most one more was kept than was printed; and every
card equals the one replayed from its attempts. A kill leaves the system's page cache alone: it says nothing of a power
cut.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

QUESTIONS = 12
WHOLE_RUNS = 3
DAY = 86400.0
ITEM = """\
  - kind: quiz
    id: m01.quiz.n{number:02}
    title: Question {number}
    question: What does kernel[grid](x) do?
    options:
      - {{text: "It launches", why: "Yes.", correct: true}}
      - {{text: "It indexes", why: "No."}}
"""
MODULE = "id: m01\ntitle: Questions\nblurb: Only questions.\nprobes: Nothing.\nitems:\n"


@dataclass(frozen=True)
class Round:
    acknowledged: int
    kept: int
    faults: tuple[str, ...]


def prepare(folder: Path) -> Path:
    """A course of questions, in effect in this process, and a progress file in which all are due. Returns the file."""
    modules = folder / "course" / "modules"
    modules.mkdir(parents=True)
    for name in ("exercises", "solutions"):
        (folder / "course" / name).mkdir()
    items = "".join(ITEM.format(number=number) for number in range(QUESTIONS))
    (modules / "01-questions.yaml").write_text(MODULE + items, encoding="utf-8")
    os.environ["TRITON_PREP_COURSE"] = str(folder / "course")
    os.environ["TRITON_PREP_CACHE"] = str(folder / "cache")
    import fsrs  # noqa: F401 - and the command: imported before the fork, a run is its answers

    from tutor.commands import reviewing  # noqa: F401
    from tutor.progress import Progress

    progress = Progress.open(folder / "due.sqlite3", clock=lambda: time.time() - 5 * DAY)
    for number in range(QUESTIONS):
        progress.record_answer(f"m01.quiz.n{number:02}", "quiz", correct=True, score=1.0, seconds=60)
    progress.close()
    return folder / "due.sqlite3"


def review_until(workspace: Path, seconds: float | None) -> tuple[str, float]:
    """Runs the command in a fork of this process and kills it so long after its first question; None lets it end.
    Returns what it printed, and how long it went on after the first question."""
    asked, answers = os.pipe()
    output, printed = os.pipe()
    child = os.fork()
    if child == 0:
        _run_review(workspace, asked, printed, (answers, output))
    os.close(asked)
    os.close(printed)
    os.write(answers, b"1\n2\n" * QUESTIONS)  # right and wrong in turn
    first = os.read(output, 1)
    started = time.monotonic()
    if seconds is not None:
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
    os.close(answers)
    with os.fdopen(output, "rb") as stream:
        text = (first + stream.read()).decode(errors="replace")
    ended = time.monotonic()
    os.waitpid(child, 0)
    return text, ended - started


def _run_review(workspace: Path, asked: int, printed: int, others: tuple[int, ...]) -> None:
    code = 99
    try:
        for descriptor in others:
            os.close(descriptor)
        os.dup2(asked, 0)
        os.dup2(printed, 1)
        sys.stdin, sys.stdout = os.fdopen(0, "r"), os.fdopen(1, "w")
        from tutor.commands import reviewing

        code = reviewing.review(None, False, False, workspace)
    finally:
        os._exit(code)


def acknowledged(text: str) -> set[str]:
    """Questions whose result was printed."""
    found = re.findall(r"\[(m01\.quiz\.n\d\d)\]\n(?:(?!\[m01).)*?^[✓✗] (?:Right|Not right)\.", text, flags=re.M | re.S)
    return set(found)


def look(file: Path, told: set[str]) -> Round:
    """What the next start finds."""
    from tutor.progress import Progress
    from tutor.schedule import card_of

    progress = Progress.open(file)
    faults = [f"notice: {notice}" for notice in progress.notices]
    if progress.query("PRAGMA integrity_check") != [("ok",)]:
        faults.append("the integrity check fails")
    today = progress.today()
    kept = {attempt.item_id for attempt in progress.attempts() if attempt.day == today.isoformat()}
    faults += [f"{item} was acknowledged and is not there" for item in sorted(told - kept)]
    if len(kept - told) > 1:
        faults.append(f"{len(kept - told)} answers were kept and not acknowledged")
    cards = progress.cards()
    for item, state in progress.states().items():
        attempts = progress.attempts(item)
        if state.attempts != len(attempts):
            faults.append(f"{item}: {state.attempts} attempts counted, {len(attempts)} there")
        replayed = card_of(item, "quiz", [(each.day, each.correct, each.rating) for each in reversed(attempts)])
        if cards.get(item) != replayed:
            faults.append(f"{item}: its card is not the one its attempts give")
        if (item in kept) != (cards[item].reviewed == today):
            faults.append(f"{item}: attempt and card disagree about today")
    progress.close()
    return Round(len(told), len(kept), tuple(faults))


def run(rounds: int, seed: int) -> list[Round]:
    chance = random.Random(seed)
    done = []
    with tempfile.TemporaryDirectory(prefix="triton-prep-kill-") as name:
        folder = Path(name)
        due = prepare(folder)
        lengths: list[float] = []
        for number in range(-WHOLE_RUNS, rounds):
            workspace = folder / f"work-{number}"
            file = workspace / ".triton-prep" / "progress.sqlite3"
            file.parent.mkdir(parents=True)
            shutil.copy(due, file)
            # the first rounds are not killed: they say how long a run is, and that all answers arrive
            text, seconds = review_until(workspace, chance.uniform(0, median(lengths)) if number >= 0 else None)
            result = look(file, acknowledged(text))
            if number < 0:
                lengths.append(seconds)
                if result.acknowledged != QUESTIONS:
                    raise SystemExit(f"a run that is not killed answers {result.acknowledged} of {QUESTIONS}:\n{text}")
            else:
                done.append(result)
            shutil.rmtree(workspace)
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    done = run(options.rounds, options.seed)
    middle = sum(0 < each.acknowledged < QUESTIONS for each in done)
    told, kept = sum(each.acknowledged for each in done), sum(each.kept for each in done)
    print(f"{len(done)} kills, {middle} of them between the first answer and the last")
    print(f"{told} answers acknowledged, {kept} kept")
    faults = [fault for each in done for fault in each.faults]
    print(f"{len(faults)} faults")
    for fault in faults[:20]:
        print(f"  {fault}")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
