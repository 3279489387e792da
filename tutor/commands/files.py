"""init, hint, solution, reset: the commands about the learner's files."""

from __future__ import annotations

from pathlib import Path

from grader import catalog
from tutor.commands.session import open_session
from tutor.commands.terminal import FELL_SHORT, PASSED, USAGE, Stop, note, say, width
from tutor.course.text import wrapped
from tutor.progress import exercise_id
from tutor.workspace import Workspace, default_workspace


def init(folder: Path | None) -> int:
    workspace = Workspace.open(folder or default_workspace(), create=False)
    if not workspace.writable:
        raise Stop(" ".join(workspace.notices) or f"{workspace.folder} cannot be written.", USAGE)
    try:
        result = workspace.populate()
    except OSError as error:
        raise Stop(f"{error.filename or workspace.folder} cannot be written ({error.strerror}).", USAGE) from error
    say(f"Workspace: {workspace.folder}")
    say(f"{len(result.written)} stubs written, {len(result.updated)} untouched ones updated, {len(result.kept)} kept.")
    if folder is not None and workspace.folder != Workspace.open(default_workspace(), create=False).folder:
        note(f"To use it: --workspace {workspace.folder}, or set TRITON_PREP_WORKSPACE.")
    return PASSED


def hint(name: str, level: int | None, folder: Path | None) -> int:
    session = open_session(folder, create=True, course_needed=False)
    slug = session.slug(name)
    hints = catalog.find(slug).hints
    item = exercise_id(session.course, slug)
    level = level or min(session.progress.state(item).hints + 1, len(hints))
    session.progress.record_hint(item, level)
    say(f"Hint {level} of {len(hints)} for {slug}:")
    say(wrapped(hints[level - 1], width()))
    return PASSED


def solution(name: str, give_up: bool, folder: Path | None) -> int:
    session = open_session(folder, create=True, course_needed=False)
    slug = session.slug(name)
    item = exercise_id(session.course, slug)
    state = session.progress.state(item)
    if not (state.passed or state.gave_up or give_up):
        note(f"{slug} is not passed yet. For help: triton-prep hint {slug}.")
        note(f"To see it all the same: triton-prep solution {slug} --give-up.")
        return FELL_SHORT
    if give_up and not state.passed:
        session.progress.record_give_up(item)
    else:
        session.progress.record_solution_seen(item)
    say(catalog.find(slug).solution.read_text(encoding="utf-8").rstrip("\n"))
    return PASSED


def reset(name: str, folder: Path | None) -> int:
    session = open_session(folder, create=False, course_needed=False)
    slug = session.slug(name)
    backup = session.workspace.reset(slug)
    say(f"{session.workspace.file(slug)} is the stub again.")
    say(f"Your version is kept as {backup}." if backup else "There was no file before.")
    return PASSED
