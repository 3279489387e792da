"""doctor: what works on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tutor import batch
from tutor.commands.terminal import CANNOT, PASSED, coloured, note, say, say_json, width
from tutor.course.loader import CourseErrors, load
from tutor.course.text import bullet
from tutor.grading import DoctorReport, Failed
from tutor.progress import Progress
from tutor.workspace import Workspace, WorkspaceError, default_workspace

GLYPHS = {"ok": "✓", "limited": "~", "missing": "✗"}


def doctor(as_json: bool, folder: Path | None) -> int:
    rows = [_course(), _workspace(folder or default_workspace()), _terminal()]
    note("Asking the grader…")
    event = batch.run_one(lambda grader: grader.doctor())
    versions: dict[str, Any] = {}
    able = True
    if isinstance(event, DoctorReport):
        versions = event.report.get("versions") or {}
        rows += event.report.get("rows") or []
    else:
        message = event.message if isinstance(event, Failed) else "no answer"
        rows.append(_row("Grader", "missing", message, "pip install torch triton numpy, then try again"))
        able = False
    if as_json:
        say_json({"schema": 1, "versions": versions, "rows": rows})
    else:
        if versions:
            say(", ".join(f"{name} {number}" for name, number in versions.items()))
        for row in rows:
            _say_row(row)
    return PASSED if able else CANNOT


def _say_row(row: dict[str, Any]) -> None:
    state = str(row.get("state"))
    say(bullet(f"{GLYPHS.get(state, '?')} {state:7} ", f"{row.get('name')}: {row.get('detail')}", width()))
    if row.get("advice") and state != "ok":
        say(bullet(" " * 10, row["advice"], width()))


def _row(name: str, state: str, detail: str, advice: str = "") -> dict[str, Any]:
    return {"name": name, "state": state, "detail": detail, "advice": advice}


def _course() -> dict[str, Any]:
    try:
        course = load()
    except CourseErrors as errors:
        return _row("Course", "missing", str(errors.errors[0]), "triton-prep check lists everything")
    return _row("Course", "ok", f"{len(course.modules)} modules, {len(course.items())} items")


def _workspace(folder: Path) -> dict[str, Any]:
    advice = "give another folder with --workspace DIR"
    try:
        workspace = Workspace.open(folder, create=False)
    except WorkspaceError as error:
        return _row("Workspace", "missing", str(error), advice)
    if not workspace.writable:
        return _row("Workspace", "limited", f"{workspace.folder} cannot be written", advice)
    if not workspace.folder.is_dir():
        return _row("Workspace", "ok", f"{workspace.folder} (made on first use)")
    progress = Progress.open(workspace.progress_file)
    if progress.notices:
        return _row("Progress", "limited", " ".join(progress.notices))
    return _row("Workspace", "ok", str(workspace.folder))


def _terminal() -> dict[str, Any]:
    encoding = (sys.stdout.encoding or "").lower()
    if encoding.replace("-", "") != "utf8":
        return _row("Terminal", "limited", f"its encoding is {encoding}", "set LANG=C.UTF-8 for box drawing and ticks")
    if not sys.stdout.isatty():
        return _row("Terminal", "limited", "output goes to a pipe", "the app needs a terminal; plain commands do not")
    return _row("Terminal", "ok", "UTF-8, colour" if coloured(sys.stdout) else "UTF-8, no colour")
