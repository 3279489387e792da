"""quiz on a bug item: pick the line, type the mended line, have it graded."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tutor import batch
from tutor.answers import Mark, indented, mark_bug_line, mended_source, same_mend
from tutor.commands.session import Session
from tutor.commands.terminal import CANNOT, Stop, Ticker, ask, say, say_lines, width
from tutor.course import text
from tutor.course.model import Bug
from tutor.grading import Failed, GradeRequest, VerdictReady
from tutor.verdict_text import passed, verdict_lines


def ask_bug(session: Session, bug: Bug, keep: Callable[[Mark], None]) -> Mark:
    """`keep` is told of the result before it is shown."""
    say("\n\n".join(text.bug_parts(bug, width())))
    picked, tries = _pick(bug)
    if picked is None:
        mark = Mark(False, 0.0, "Given up.", {"lines": tries})
        keep(mark)
        _reveal(bug)
        return mark
    mends = _typed(bug, picked)
    right = _graded(session, bug, mends)
    detail = {"lines": tries, "mends": {str(line): new for line, new in mends.items()}}
    score = 0.5 * (len(tries) == 1) + 0.5 if right else 0.25 * (len(tries) == 1)
    mark = Mark(right, score, "", detail)
    keep(mark)
    if right:
        say("\n✓ Right: mended.\n")
    else:
        say("\n✗ Not mended.\n")
    _reveal(bug)
    return mark


def _pick(bug: Bug) -> tuple[int | None, list[int]]:
    """The faulty line once it is found, and every line tried."""
    tries: list[int] = []
    count = len(bug.code.rstrip("\n").split("\n"))
    while True:
        line = ask("\nWhich line is faulty? (? gives up) ").strip()
        if line == "?":
            return None, tries
        if not line.isdecimal() or not 1 <= int(line) <= count:
            say(f"Write a line number from 1 to {count}.")
            continue
        tries.append(int(line))
        mark = mark_bug_line(bug, int(line))
        say(f"{'✓' if mark.correct else '✗'} {mark.message}")
        if mark.correct:
            return int(line), tries
        if bug.hint and len(tries) == 1:
            say(text.wrapped(f"Hint: {bug.hint}", width()))


def _typed(bug: Bug, picked: int) -> dict[int, str]:
    lines = bug.code.split("\n")
    wanted = [picked] if len(bug.mends) == 1 else sorted(mend.line for mend in bug.mends)
    if len(wanted) > 1:
        say(f"The mend changes lines {', '.join(map(str, wanted))}.")
    mends = {}
    for number in wanted:
        say(f"\nLine {number} is: {lines[number - 1].strip()}")
        mends[number] = indented(bug, number, ask("Mended: "))
    return mends


def _graded(session: Session, bug: Bug, mends: dict[int, str]) -> bool:
    if bug.needs_gpu:
        say(f"This shows only on a GPU ({bug.needs_gpu}): compared with the author's mend.")
        return same_mend(bug, mends)
    ticker = Ticker()
    ticker.show("grading the mended code…")
    with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
        file = Path(folder) / f"{bug.exercise}.py"
        source = mended_source(bug, mends)
        file.write_text(source, encoding="utf-8")
        event = batch.run_one(lambda grader: grader.grade(GradeRequest(bug.exercise, file)))
    ticker.clear()
    if isinstance(event, VerdictReady):
        if not passed(event.verdict):
            titles = session.course.title_of
            say_lines(verdict_lines(event.verdict, width=width(), source=source, title_of=titles))
        return passed(event.verdict)
    message = event.message if isinstance(event, Failed) else "no verdict"
    if same_mend(bug, mends):
        say("It could not be graded here, but it says what the author's mend says.")
        return True
    raise Stop(f"It could not be graded: {message}", CANNOT)


def _reveal(bug: Bug) -> None:
    say("\n\n".join(text.bug_answer(bug, width())))
