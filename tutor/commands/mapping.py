"""map: which program loads and stores which elements, as text or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from grader import catalog
from grader.access_map.model import AccessMap
from tutor import batch
from tutor.access.cells import Choice, Steps
from tutor.access.drawing import report
from tutor.commands.grading import exit_code
from tutor.commands.session import open_session
from tutor.commands.terminal import FELL_SHORT, PASSED, USAGE, Stop, Ticker, note, say, say_json, width
from tutor.grading import Answer, Event, Failed, Progressed

OPERATION = "access_map"


def show_map(
    name: str,
    case: str | None,
    program: int | None,
    file: Path | None,
    solutions: bool,
    as_json: bool,
    folder: Path | None,
) -> int:
    """0 for a map of a call that passed, 1 for one that shows a fault."""
    if file is not None and solutions:
        raise Stop("--file does not go with --solutions.", USAGE)
    session = open_session(folder, create=not solutions and file is None, course_needed=False)
    slug = session.slug(name)
    path = catalog.find(slug).solution if solutions else file or session.workspace.file(slug)
    ticker = Ticker()
    ticker.show("starting the grader…")

    def heard(event: Event) -> None:
        if isinstance(event, Progressed):
            ticker.show(f"{slug}: {event.words}…")

    fields: dict[str, Any] = {"case": case} if case else {}
    event = batch.run_one(lambda grader: grader.ask(OPERATION, slug, path, **fields), heard)
    ticker.clear()
    if not isinstance(event, Answer):
        note(event.message if isinstance(event, Failed) else "The grader gave no map.")
        return exit_code(event)
    if as_json:
        say_json(event.data)
    shown = msgspec.convert(event.data, AccessMap)
    if program is not None:
        _demand(shown, program)
    if not as_json:
        say(report(shown, width(), program=program))
    return PASSED if shown.status == "passed" and not shown.full else FELL_SHORT


def _demand(shown: AccessMap, program: int) -> None:
    """Raises Stop for a program that the map does not have."""
    there = {p for tensor in range(len(shown.tensors)) for p in Steps(shown, Choice(tensor)).programs}
    if program not in there:
        known = f"0 to {max(there)}" if there else "none, as nothing was touched"
        raise Stop(f"--program {program}: the programs are {known}.", USAGE)
