"""The learner's folder: one file an exercise, never overwritten once edited."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from grader import catalog
from tutor.whole_files import write_atomically

STATE_FOLDER = ".triton-prep"


class WorkspaceError(Exception):
    """The message says which path and what to do."""


@dataclass(frozen=True)
class Populated:
    written: tuple[Path, ...] = ()
    updated: tuple[Path, ...] = ()  # an older stub nobody had touched
    kept: tuple[Path, ...] = ()  # edited by the learner, or already as it should be


FULL = 100  # columns: a line of a stub as long as that was broken for want of room, unless a sentence ends there
_PROSE = re.compile(r"(?!\d+\. )\S+( \S+)*")  # no row of a table, which has wider gaps, and no entry of a list


def default_workspace() -> Path:
    chosen = os.environ.get("TRITON_PREP_WORKSPACE")
    return Path(chosen).expanduser() if chosen else Path.home() / "triton-prep"


def stub_doc(slug: str) -> str:
    """The task, as the stub's docstring states it; a sentence goes on in its line, whatever the file's line width."""
    text = ast.get_docstring(ast.parse(catalog.find(slug).stub.read_text(encoding="utf-8"))) or ""
    lines: list[str] = []
    before = ""
    for line in text.split("\n"):
        full = len(before) + len(line.partition(" ")[0]) >= FULL and not before.endswith((".", ":"))
        if full and _PROSE.fullmatch(before) and _PROSE.fullmatch(line):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
        before = line
    return "\n".join(lines)


class Workspace:
    def __init__(self, folder: Path, *, writable: bool, notices: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.writable = writable
        self.notices = notices

    @classmethod
    def open(cls, folder: Path, *, create: bool = True) -> Workspace:
        """Creates the folder and the stubs that are missing. A read-only place gives `writable` False and a notice."""
        folder = Path(os.path.abspath(folder.expanduser()))
        if folder.exists() and not folder.is_dir():
            raise WorkspaceError(f"{folder} is a file, not a folder. Give another one with --workspace DIR.")
        if not create and not folder.exists():
            nearest = _nearest(folder)
            if nearest.is_dir() and os.access(nearest, os.W_OK):
                return cls(folder, writable=True)
            notice = f"{folder} cannot be made in {nearest}. Stubs, backups and progress are not kept."
            return cls(folder, writable=False, notices=(notice,))
        try:
            (folder / STATE_FOLDER).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder / STATE_FOLDER):
                pass
        except OSError as error:
            notice = f"{folder} cannot be written ({error.strerror}). Stubs, backups and progress are not kept."
            return cls(folder, writable=False, notices=(notice,))
        workspace = cls(folder, writable=True)
        if create:
            try:
                workspace.populate()
            except OSError as error:
                notice = f"Not every stub could be written: {error.filename or folder}: {error.strerror}."
                workspace.notices += (notice,)
        return workspace

    @property
    def progress_file(self) -> Path | None:
        return self.folder / STATE_FOLDER / "progress.sqlite3" if self.writable else None

    def file(self, slug: str) -> Path:
        """Where the learner's file of this exercise is, or would be. Raises catalog.UnknownExercise."""
        files = catalog.find(slug)
        return self.folder / files.module / f"{files.slug}.py"

    def populate(self) -> Populated:
        """Writes missing stubs and refreshes older ones that are exactly as this program once wrote them."""
        handed_out = self._handed_out()
        written, updated, kept = [], [], []
        for files in catalog.exercises():
            path = self.folder / files.module / f"{files.slug}.py"
            stub = files.stub.read_bytes()
            if not os.path.lexists(path):
                write_atomically(path, stub)
                written.append(path)
            elif path.is_file() and path.read_bytes() == stub:
                kept.append(path)
            elif path.is_file() and _digest(path.read_bytes()) in handed_out.get(files.slug, ()):
                write_atomically(path, stub)
                updated.append(path)
            else:
                kept.append(path)
                continue
            known = handed_out.setdefault(files.slug, [])
            if _digest(stub) not in known:
                known.append(_digest(stub))
        self._remember(handed_out)
        return Populated(tuple(written), tuple(updated), tuple(kept))

    def untouched(self, slug: str) -> bool:
        path = self.file(slug)
        if not path.is_file():
            return False
        content = path.read_bytes()
        return content == catalog.find(slug).stub.read_bytes() or _digest(content) in self._handed_out().get(slug, ())

    def restore_missing(self, slug: str) -> Path:
        """The learner's file, written from the stub when it is not there."""
        path = self.file(slug)
        if not os.path.lexists(path):
            self._put_stub(slug, path)
        return path

    def reset(self, slug: str) -> Path | None:
        """Puts the stub back. Returns where the learner's version was saved; None when there was none."""
        path = self.file(slug)
        if path.is_dir():
            raise WorkspaceError(f"{path} is a folder, not a file. Move it away, then reset again.")
        backup = None
        if path.exists():
            try:
                backup = self.keep_backup(slug, path.read_bytes())
            except OSError as error:
                raise WorkspaceError(
                    f"No backup could be written to {self.backups} ({error.strerror}): nothing was reset."
                ) from error
        self._put_stub(slug, path)
        return backup

    @property
    def backups(self) -> Path:
        return self.folder / STATE_FOLDER / "backups"

    def keep_backup(self, name: str, content: bytes) -> Path:
        """A new file for this version, named by exercise and time. Raises OSError."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        backup = self.backups / f"{name}.{stamp}.py"
        number = 1
        while backup.exists():
            number += 1
            backup = self.backups / f"{name}.{stamp}-{number}.py"
        write_atomically(backup, content)
        return backup

    def newest_backup(self, name: str) -> Path | None:
        found = [path for path in self.backups.glob(f"{name}.*.py") if path.is_file()]
        return max(found, key=lambda path: (path.stat().st_mtime_ns, path.name), default=None)

    def draft(self, name: str) -> Path:
        """Where the built-in editor keeps a text that it could not save."""
        return self.folder / STATE_FOLDER / "drafts" / f"{name}.py"

    def _put_stub(self, slug: str, path: Path) -> None:
        stub = catalog.find(slug).stub.read_bytes()
        try:
            write_atomically(path, stub)
            handed_out = self._handed_out()
            known = handed_out.setdefault(slug, [])
            if _digest(stub) not in known:
                known.append(_digest(stub))
                self._remember(handed_out)
        except OSError as error:
            raise WorkspaceError(f"{path} cannot be written ({error.strerror}).") from error

    def _handed_out(self) -> dict[str, list[str]]:
        """sha256 of every stub that was put here, by exercise: how an untouched stub is told from work."""
        try:
            content = json.loads((self.folder / STATE_FOLDER / "stubs.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _remember(self, handed_out: dict[str, list[str]]) -> None:
        text = json.dumps(handed_out, indent=1)
        path = self.folder / STATE_FOLDER / "stubs.json"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomically(path, text.encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _nearest(path: Path) -> Path:
    while not path.exists() and path != path.parent:
        path = path.parent
    return path
