"""homework: grade a class."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tutor.commands.session import course_without_errors
from tutor.commands.terminal import CANNOT, FELL_SHORT, PASSED, USAGE, Stop, coloured, note, say, say_json, say_lines
from tutor.course.loader import CourseErrors
from tutor.homework.assignment import Assignment, Exercise, load_assignment
from tutor.homework.gpus import gpus, graders_each, memory_mb
from tutor.homework.journal import InUse, Journal
from tutor.homework.marking import MISSING, Result
from tutor.homework.places import Local, Place
from tutor.homework.results.writer import FORMATS, Writer
from tutor.homework.run import HomeworkRun, asked_of
from tutor.homework.submissions import NoSubmissions, Store, read_submissions
from tutor.homework.work import CannotGrade, Facts, Graded, Work
from tutor.verdict_text import Line, TitleOf

OUT = "homework-results"
SHOWN = 20  # learners named on the terminal


def homework(
    folder: Path,
    assignment_file: Path | None,
    out: Path | None,
    formats: str,
    workers: int | None,
    as_json: bool,
    cluster: str | None = None,
) -> int:
    chosen = _formats(formats)
    assignment = _assignment(assignment_file)
    out = out or Path(OUT)
    if out.resolve() == folder.resolve() or (out.exists() and not out.is_dir()):
        raise Stop(f"--out {out}: name a folder of its own for the results.", USAGE)
    try:
        journal = Journal(out / "journal.jsonl")
    except InUse as error:
        raise Stop(f"{error}.", USAGE) from error
    except OSError as error:
        raise Stop(f"--out {out}: cannot be written: {error.strerror}", USAGE) from error
    try:
        return _run(folder, assignment, out, chosen, _place(assignment, workers, cluster), journal, as_json)
    except NoSubmissions as error:
        raise Stop(str(error), USAGE) from error
    except CannotGrade as error:
        raise Stop(str(error), CANNOT) from error
    except OSError as error:
        raise Stop(f"{error.filename or out}: {error.strerror or error}", CANNOT) from error
    finally:
        journal.close()


def _formats(text: str) -> tuple[str, ...]:
    if text == "all":
        return FORMATS
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    unknown = [name for name in names if name not in FORMATS]
    if unknown or not names:
        raise Stop(f"--format {text!r}: name some of {', '.join(FORMATS)}.", USAGE)
    return names


def _assignment(file: Path | None) -> Assignment:
    if file is None:
        return Assignment()
    try:
        return load_assignment(file)
    except CourseErrors as error:
        raise Stop(f"The assignment is not in order:\n{error}", USAGE) from error


def _place(assignment: Assignment, workers: int | None, cluster: str | None) -> Place:
    if cluster is not None:
        from tutor.homework.cluster import Cluster

        return Cluster(cluster, workers, with_gpus=assignment.backend != "interpreter", tell=note)
    devices = gpus() if assignment.backend != "interpreter" else ()
    cores = os.cpu_count() or 2
    if devices:
        return Local(workers or graders_each(len(devices), cores, memory_mb()), devices, alone=True)
    return Local(workers or max(1, cores // 2), alone=True)


def _run(
    folder: Path,
    assignment: Assignment,
    out: Path,
    formats: Sequence[str],
    place: Place,
    journal: Journal,
    as_json: bool,
) -> int:
    from grader.catalog import exercises, find

    wanted = [find(one.exercise) for one in assignment.exercises] or exercises()
    learners = read_submissions(folder, wanted, Store(out / "sources"))
    asked = asked_of(assignment, learners)
    if not asked:
        raise NoSubmissions(
            f"no file in {folder} is for an exercise: files are known by name (vector_add.py), or by the function that "
            "they define"
        )
    titles = course_without_errors().title_of
    writer = Writer(out, formats, assignment, asked, titles)
    watcher = _Watcher(writer)
    run = HomeworkRun(assignment, learners, asked, journal, place, watcher)
    try:
        # Ray prints the whole log of a lost node there
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            results = asyncio.run(_graded(run, place))
    except KeyboardInterrupt:
        watcher.end()
        if writer.facts:
            writer.tables()
        complete = f"{len(writer.results)} of {len(learners)} learners are complete"
        note(f"Interrupted: {complete}. The same command goes on from here.")
        raise
    finally:
        watcher.end()
    for problem in writer.end():
        note(problem)
    if as_json:
        say_json(writer.summary())
    else:
        if len(results) == 1:
            _explain(results[0], run.asked, titles)
        _tell(results, writer.summary(), out)
    return _code(results)


async def _graded(run: HomeworkRun, place: Place) -> list[Result]:
    try:
        return await run.go()
    finally:
        await place.close()


def _code(results: Sequence[Result]) -> int:
    if any(result.points is None for result in results):
        return CANNOT
    return PASSED if all(result.all_passed for result in results) else FELL_SHORT


def _explain(result: Result, asked: Sequence[Exercise], title_of: TitleOf) -> None:
    """One learner, most likely at the keyboard: why what fell short did."""
    from tutor.homework.results.told import tell

    by_name = {one.exercise: one for one in asked}
    for mark in result.counted.marks:
        if not mark.passed and mark.status != MISSING:
            told = tell(mark, by_name[mark.exercise], title_of)
            say_lines([Line(f"{told.exercise}: {told.words}", "bad"), *told.lines])
            say()


def _tell(results: Sequence[Result], summary: dict[str, Any], out: Path) -> None:
    for result in results[:SHOWN]:
        points = "?" if result.points is None else f"{result.points:g}"
        short = [f"{m.exercise} ({m.status.replace('_', ' ')})" for m in result.counted.marks if not m.passed]
        tail = (
            f"  fell short: {', '.join(short[:4])}{' …' if len(short) > 4 else ''}" if short else "  everything passed"
        )
        say(f"{result.learner}: {points} of {result.counted.most:g}{tail}")
    if len(results) > SHOWN:
        say(f"… and {len(results) - SHOWN} more in {out / 'results.csv'}")
    for line in summary["notes"]:
        note(line)
    for entry in summary["attention"]:
        note(f"{entry['learner']}: {entry['what']}")
    say(f"Results are in {out}")


class _Watcher:
    """Progress with the time left, on stderr; and the results' files."""

    def __init__(self, writer: Writer) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._writer = writer
        shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        console = Console(stderr=True, no_color=not coloured(sys.stderr))
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("time left"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=console, disable=not shown, transient=True)
        self._task = self._progress.add_task("starting the grader", total=None)
        self._total = 0
        self._progress.start()

    def begins(self, facts: Facts, total: int, known: int) -> None:
        self._writer.facts = facts
        self._total = total
        self._progress.update(self._task, description="grading", total=total, completed=known)
        if known:
            note(f"{known} of {total} grades are known from before.")

    def graded(self, work: Work, graded: Graded, more: int) -> None:
        self._total += more
        self._progress.update(self._task, total=self._total, advance=1, description=work.exercise)

    def complete(self, result: Result) -> None:
        self._writer.learner(result)

    def end(self) -> None:
        self._progress.stop()
