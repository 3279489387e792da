"""watch: grade again on every save, with one warm grader."""

from __future__ import annotations

import asyncio
from pathlib import Path

from grader import catalog
from tutor.commands.grading import record_grade
from tutor.commands.session import Session, open_session
from tutor.commands.terminal import CANNOT, PASSED, note, reader_left, say, say_lines, width
from tutor.grading import LAST_EVENTS, Failed, Grader, GradeRequest, VerdictReady
from tutor.progress import exercise_id
from tutor.verdict_text import verdict_lines


def watch(name: str | None, target: str, folder: Path | None) -> int:
    session = open_session(folder, create=True, course_needed=False)
    slugs = [session.slug(name)] if name else [files.slug for files in catalog.exercises()]
    files = {session.workspace.file(slug): slug for slug in slugs}
    try:
        return asyncio.run(_watch(session, files, target, grade_first=name is not None))
    except KeyboardInterrupt:
        note("Watching ended.")
        return PASSED


async def _watch(session: Session, files: dict[Path, str], target: str, *, grade_first: bool) -> int:
    from watchfiles import awatch

    grader = Grader()
    saved: asyncio.Queue[Path] = asyncio.Queue()
    grading = asyncio.create_task(_grade_saved(session, files, target, grader, saved))
    if grade_first:
        for path in files:
            saved.put_nowait(path)
    else:
        await grader.start()
    folders = {path.parent for path in files if path.parent.is_dir()}
    note(f"Watching {session.workspace.folder}. Save a file to grade it; Ctrl-C leaves.")
    try:
        async for changes in awatch(*folders, recursive=False, debounce=100, step=50):
            for _, changed in sorted(changes, key=lambda change: change[1]):
                if Path(changed) in files:
                    saved.put_nowait(Path(changed))
            if reader_left():
                return PASSED
            if not all(parent.is_dir() for parent in folders):
                note(f"A watched folder is gone: nothing more to watch in {session.workspace.folder}.")
                return CANNOT
        return PASSED
    finally:
        grading.cancel()
        await asyncio.wait([grading])
        await grader.close()


async def _grade_saved(
    session: Session, files: dict[Path, str], target: str, grader: Grader, saved: asyncio.Queue[Path]
) -> None:
    """Grades what was saved last. A save during a grade ends that grade: its answer would be about old text."""
    running: asyncio.Task[None] | None = None
    try:
        while True:
            path = await saved.get()
            if running is not None and not running.done():
                running.cancel()
                await asyncio.wait([running])
            running = asyncio.create_task(_grade_one(session, path, files[path], target, grader))
    finally:
        if running is not None:
            running.cancel()
            await asyncio.wait([running])


async def _grade_one(session: Session, path: Path, slug: str, target: str, grader: Grader) -> None:
    if not path.is_file():
        note(f"{path} is gone. Save it again, or `triton-prep reset {slug}`.")
        return
    async for event in grader.grade(GradeRequest(slug, path, target=target)):
        if not isinstance(event, LAST_EVENTS):
            continue
        record_grade(session.progress, exercise_id(session.course, slug), event)
        if isinstance(event, VerdictReady):
            source = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None
            titles = session.course.title_of
            say_lines(verdict_lines(event.verdict, width=width(), source=source, title_of=titles))
            say()
        elif isinstance(event, Failed) and event.kind != "cancelled":
            note(f"{slug}: {event.message}")
