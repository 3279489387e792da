"""grade and inspect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import catalog
from tutor import batch
from tutor.commands.session import Session, open_session
from tutor.commands.terminal import (
    CANNOT,
    FELL_SHORT,
    PASSED,
    USAGE,
    Stop,
    Ticker,
    note,
    say,
    say_json,
    say_lines,
    width,
)
from tutor.grading import CaseDone, Event, Failed, GradeRequest, Inspected, Stage, VerdictReady
from tutor.progress import Progress, exercise_id
from tutor.verdict_text import Line, TitleOf, passed, remark_lines, status_words, verdict_lines

SERVERS = 2


@dataclass(frozen=True)
class Options:
    backend: str = "auto"
    target: str = "sm_90"
    time: bool | None = None
    sanitize: bool = False
    seed: int = 0
    verified: bool = False
    keep_going: bool = False


def grade(
    names: Sequence[str],
    every: bool,
    file: Path | None,
    solutions: bool,
    options: Options,
    as_json: bool,
    folder: Path | None,
) -> int:
    if every and names:
        raise Stop("Name exercises or give --all, not both.", USAGE)
    if file is not None and (len(names) != 1 or solutions):
        raise Stop("--file goes with exactly one exercise, and not with --solutions.", USAGE)
    if not (names or every or solutions):
        raise Stop("Which exercise? Name some, or give --all. `triton-prep list` shows them.", USAGE)
    session = open_session(folder, create=not solutions and file is None, course_needed=False)
    slugs = [session.slug(name) for name in dict.fromkeys(names)] or [files.slug for files in catalog.exercises()]
    requests = [
        GradeRequest(slug, _file(session, slug, file, solutions), **vars(options)) for slug in dict.fromkeys(slugs)
    ]
    several = every or len(requests) > 1
    events = _run(requests, several, session, record=not solutions, quiet=as_json)
    if as_json:
        values = [verdict_json(request, event) for request, event in zip(requests, events, strict=True)]
        say_json(values if several else values[0])
    elif several:
        good = sum(isinstance(event, VerdictReady) and passed(event.verdict) for event in events)
        say(f"{good} of {len(events)} passed.")
    return max((exit_code(event) for event in events), default=PASSED)


def _file(session: Session, slug: str, file: Path | None, solutions: bool) -> Path:
    if solutions:
        return catalog.find(slug).solution
    return file if file is not None else session.workspace.file(slug)


def _run(requests: list[GradeRequest], several: bool, session: Session, *, record: bool, quiet: bool) -> list[Event]:
    ticker = Ticker()

    def heard(index: int, event: Event) -> None:
        slug = requests[index].exercise
        if isinstance(event, Stage) and event.state == "started":
            ticker.show(f"{slug}: {event.name}…")
        elif isinstance(event, CaseDone):
            ticker.show(f"{slug}: case {event.index + 1} of {event.total}…")

    def done(index: int, event: Event) -> None:
        ticker.clear()
        if record:
            record_grade(session.progress, exercise_id(session.course, requests[index].exercise), event)
        if isinstance(event, Failed):
            note(f"{requests[index].exercise}: {event.message}")
        elif isinstance(event, VerdictReady) and not quiet:
            onward = "" if several else _onward(session, requests[index].exercise)
            file, titles = requests[index].file, session.course.title_of
            say_lines(_told(event.verdict, file, titles, short=several, onward=onward))

    def job(request: GradeRequest) -> batch.Job:
        return lambda grader: grader.grade(request)

    ticker.show("starting the grader…")
    return batch.run([job(request) for request in requests], servers=SERVERS, on_event=heard, on_result=done)


def _onward(session: Session, slug: str) -> str:
    """What may come after a pass."""
    solution = f"The course's own solution: triton-prep solution {slug}"
    item = session.course.exercise_item(slug)
    following = session.course.after(item.id) if item else None
    return f"  {solution}. Next: triton-prep show {following.id}" if following else f"  {solution}"


def _told(verdict: dict[str, Any], file: Path, title_of: TitleOf, *, short: bool, onward: str = "") -> list[Line]:
    if short and (passed(verdict) or verdict.get("status") == "not_started"):
        glyph, tone = ("✓", "good") if passed(verdict) else ("·", "dim")
        cases = f" ({len(verdict.get('cases') or [])} cases)" if passed(verdict) else ""
        remark = " ".join(line.text for line in remark_lines(verdict)[:1])
        cases += f". {remark}" if remark else ""
        return [Line(f"{glyph} {verdict['exercise']}: {status_words(verdict['status'])}{cases}", tone)]  # type: ignore[arg-type]
    try:
        source = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        source = None
    return verdict_lines(verdict, width=width(), source=source, onward=onward, title_of=title_of)


def record_grade(progress: Progress, item_id: str, event: Event) -> None:
    """A verdict is an attempt; a grader that failed is not the learner's doing and leaves no mark."""
    if not isinstance(event, VerdictReady) or event.verdict.get("status") in ("infrastructure_error", "not_started"):
        return
    verdict = event.verdict
    cases = [case for case in verdict.get("cases") or [] if case.get("status") != "skipped"]
    share = sum(case.get("status") == "passed" for case in cases) / len(cases) if cases else 0.0
    diagnosis = verdict.get("diagnosis") or {}
    progress.record_answer(
        item_id,
        "exercise",
        correct=passed(verdict),
        score=1.0 if passed(verdict) else min(share, 0.99),
        seconds=sum(stage.get("seconds") or 0.0 for stage in verdict.get("stages") or []),
        detail={
            "status": verdict.get("status"),
            "cause": None if passed(verdict) else diagnosis.get("cause"),
            "backend": verdict.get("backend"),
            "sha256": verdict.get("sha256"),
            "median_us": (verdict.get("timing") or {}).get("median_us"),
            "timing": verdict.get("timing"),
        },
    )
    progress.set_resume(item_id)


def exit_code(event: Event) -> int:
    if isinstance(event, Failed):
        return USAGE if event.kind == "usage" else CANNOT
    if isinstance(event, VerdictReady):
        if event.verdict.get("status") == "infrastructure_error":
            return CANNOT
        return PASSED if passed(event.verdict) else FELL_SHORT
    return CANNOT


def verdict_json(request: GradeRequest, event: Event) -> dict[str, Any]:
    """The grader's verdict; where there is none, one of the same form that says why."""
    if isinstance(event, VerdictReady):
        return event.verdict
    kind, message = (event.kind, event.message) if isinstance(event, Failed) else ("infrastructure", "no verdict")
    empty = dict.fromkeys(("sha256", "device", "versions", "diagnosis", "compile", "traffic", "timing"))
    return {
        "schema": 1,
        "exercise": request.exercise,
        "file": str(request.file),
        "seed": request.seed,
        "backend": request.backend,
        "verified": False,
        "status": "infrastructure_error",
        "stages": [],
        "cases": [],
        **empty,
        "error": {"kind": kind, "message": message},
    }


def inspect(name: str, stage: str, target: str, file: Path | None, solutions: bool, folder: Path | None) -> int:
    session = open_session(folder, create=not solutions and file is None, course_needed=False)
    slug = session.slug(name)
    path = _file(session, slug, file, solutions)
    ticker = Ticker()
    ticker.show(f"compiling for {target}…")
    event = batch.run_one(lambda grader: grader.inspect(slug, path, stage, target))
    ticker.clear()
    if isinstance(event, Inspected):
        for kernel in event.kernels:
            note(f"{kernel.get('kernel')} for {kernel.get('target')}, {kernel.get('stage', stage)}")
            say(str(kernel.get("text", "")).rstrip("\n"))
        if not event.kernels:
            note("No kernel was launched.")
            return FELL_SHORT
        return PASSED
    if isinstance(event, VerdictReady):  # the file fell short before there was anything to show
        say_lines(_told(event.verdict, path, session.course.title_of, short=False))
        return exit_code(event)
    note(event.message if isinstance(event, Failed) else "no answer")
    return exit_code(event)
