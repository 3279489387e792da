"""What most commands need at hand: the course, the workspace, the progress."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from grader import catalog
from tutor.commands.terminal import note
from tutor.course.course import Course
from tutor.course.loader import CourseErrors, load
from tutor.course.model import Exercise
from tutor.progress import Progress, minutes_of
from tutor.workspace import Workspace, default_workspace


@dataclass(frozen=True)
class Session:
    course: Course
    workspace: Workspace
    progress: Progress

    def slug(self, name: str) -> str:
        """An exercise's slug from its slug or its item's id. Raises catalog.UnknownExercise."""
        current = self.course.current_id(name)
        item = self.course.item(current) if current else None
        if isinstance(item, Exercise):
            return catalog.find(item.exercise).slug
        return catalog.find(name).slug


def open_session(folder: Path | None, *, create: bool, course_needed: bool = True) -> Session:
    """`create` makes the workspace when it is not there; without it, nothing new appears on disk.

    Grading works without the modules: unless `course_needed`, a course with errors is said and then left out.
    """
    course = load() if course_needed else course_without_errors()
    folder = folder if folder is not None else default_workspace()
    workspace = Workspace.open(folder, create=create)
    kept = workspace.progress_file if workspace.folder.is_dir() else None
    progress = Progress.open(kept, aliases=course.aliases, minutes=minutes_of(course))
    progress.on_notice = note
    for notice in (*workspace.notices, *progress.notices):
        note(notice)
    return Session(course, workspace, progress)


def course_without_errors() -> Course:
    """Empty where a module has errors; that is said."""
    try:
        return load()
    except CourseErrors as errors:
        note(f"The modules have errors and are left out (`triton-prep check` lists them): {errors.errors[0]}")
        return Course(())


def say_unkept(progress: Progress) -> None:
    """At the end: what was answered but could not be kept."""
    if unkept := progress.parting():
        note(unkept)
