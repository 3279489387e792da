"""The kernel files of a drill: a fresh stub each, whatever the workspace holds, and their text as last seen in time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from tutor.course.course import Course
from tutor.drill.draw import Task
from tutor.drill.state import State

GRACE_SECONDS = 1.0  # file systems round: a file written this much after the lock was there before it
KERNELS = ("exercise", "optimise")


class KernelFiles:
    def __init__(self, state: State, course: Course, folder: Path) -> None:
        self.state, self.course, self.folder = state, course, folder
        self._stamps: dict[str, tuple[int, int]] = {}

    def slug(self, task: Task) -> str:
        return str(getattr(self.course.item(task.item), "exercise", ""))

    def file(self, task: Task) -> Path:
        return self.folder / f"{self.slug(task)}.py"

    def write_stubs(self) -> None:
        from grader import catalog

        for task in self.state.tasks:
            if task.kind == "exercise" and not self.file(task).exists():
                self.file(task).write_bytes(catalog.find(self.slug(task)).stub.read_bytes())

    def look(self, tasks: Iterable[Task], *, written_by: float | None = None) -> tuple[str, ...]:
        """Takes over what has changed, if it was written by then (seconds since the epoch). Returns what changed."""
        changed = []
        for task in tasks:
            if task.kind not in KERNELS:
                continue
            with contextlib.suppress(OSError, UnicodeDecodeError):
                file = self.file(task)
                found = file.stat()
                stamp = (found.st_mtime_ns, found.st_size)
                late = written_by is not None and found.st_mtime > written_by + GRACE_SECONDS
                if stamp == self._stamps.get(task.id) or late:
                    continue
                text = file.read_text(encoding="utf-8")
                self._stamps[task.id] = stamp
                if text != self.state.sources.get(task.id):
                    self.state.sources[task.id] = text
                    changed.append(task.id)
        return tuple(changed)

    def carry_over(self, tasks: Iterable[Task]) -> None:
        """An optimise phase begins with the kernel as it was handed in."""
        for task in tasks:
            if task.kind == "optimise":
                for other in self.state.tasks:
                    if other.kind == "exercise" and other.item == task.item and other.id in self.state.sources:
                        self.state.sources[task.id] = self.state.sources[other.id]
