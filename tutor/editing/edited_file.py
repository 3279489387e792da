"""A file that is edited here while others may write it too: saved whole or not at all, and no version is ever lost."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tutor.editing.three_way import merged, with_conflicts
from tutor.whole_files import write_atomically

COARSE_SECONDS = 2.0  # a file system may round times: what is younger is read again, whatever its times say
Stamp = tuple[int, int, int, int]


class CannotEdit(Exception):
    """The file cannot be opened, or a version cannot be kept. The message says what to do."""


@dataclass(frozen=True)
class Same:
    """Nothing new on disk."""


@dataclass(frozen=True)
class Saved:
    """The text is in the file."""


@dataclass(frozen=True)
class Unsaved:
    """The file could not be written. `draft` holds the text, or is None when that failed as well."""

    reason: str
    draft: Path | None


@dataclass(frozen=True)
class Reloaded:
    """Another program wrote the file, and nothing here was unsaved: this is its text."""

    text: str


@dataclass(frozen=True)
class Joined:
    """Both had changed, in different places: this text has both changes and is not saved yet."""

    text: str
    backup: Path  # of the other program's version


@dataclass(frozen=True)
class Conflict:
    """Both had changed, in the same place: nothing is written until someone decides."""

    mine: str
    theirs: str


@dataclass(frozen=True)
class Missing:
    """The file was taken away; saving writes it again."""


Outcome = Same | Saved | Unsaved | Reloaded | Joined | Conflict | Missing


@dataclass(frozen=True)
class Places:
    """Where copies go: `draft` while the file cannot be written, `keep` for a version that gives way."""

    draft: Path
    keep: Callable[[bytes], Path]  # writes a backup and returns where; raises OSError

    @property
    def draft_base(self) -> Path:
        return self.draft.with_suffix(".base")


class EditedFile:
    """What is known of a file on disk while its text is edited elsewhere. Safe to call from several threads."""

    def __init__(self, path: Path, places: Places) -> None:
        """Reads the file, and a draft that an earlier session could not save. Raises CannotEdit."""
        self.path, self.places = path, places
        self._lock = threading.RLock()
        self._drafted: tuple[str, str] | None = None  # the text and base that the draft holds
        self._draft: Path | None = None
        self._stamp: Stamp | None = None
        self.base = ""  # the text that both sides last agreed on
        try:
            self.base, self._stamp = self._read()
        except OSError as error:
            raise CannotEdit(f"{path} cannot be read: {error.strerror}.") from error
        except UnicodeDecodeError as error:
            raise CannotEdit(f"{path} is not UTF-8 text (byte {error.start}).") from error
        self.text = self.base  # to begin with
        self.from_draft = self._take_draft()

    # --- asking and saving

    def look(self, mine: str) -> Outcome:
        """What another program did to the file, and what becomes of `mine`, the text as it is here."""
        with self._lock:
            if self._unchanged():
                return Same()
            try:
                theirs, stamp = self._read()
            except FileNotFoundError:
                return Missing()
            except OSError as error:
                return Unsaved(f"it cannot be read: {error.strerror}", self.keep_draft(mine))
            except UnicodeDecodeError:
                return Unsaved("another program wrote something into it that is not text", self.keep_draft(mine))
            return self._weigh(mine, theirs, stamp)

    def _weigh(self, mine: str, theirs: str, stamp: Stamp) -> Outcome:
        if theirs in (self.base, mine):
            self.base, self._stamp = theirs, stamp
            return Same()
        if mine == self.base:
            self.base, self._stamp = theirs, stamp
            return Reloaded(theirs)
        both = merged(self.base, mine, theirs)
        if both is None:
            return Conflict(mine, theirs)
        try:
            backup = self.places.keep(theirs.encode())
        except OSError as error:
            return Unsaved(f"the other program's version cannot be backed up: {error.strerror}", self.keep_draft(mine))
        self.base, self._stamp = theirs, stamp
        return Joined(both, backup)

    def save(self, mine: str) -> Outcome:
        """Saved, Unsaved, or what `look` found first: then nothing is written."""
        with self._lock:
            found = self.look(mine)
            return self.write(mine) if isinstance(found, Same | Missing) else found

    def write(self, mine: str) -> Outcome:
        """Saved or Unsaved; Same when another program wrote the file since it was looked at: look again."""
        with self._lock:
            try:
                theirs, _ = self._read()
                if theirs not in (self.base, mine):
                    return Same()
                written = theirs == mine
            except FileNotFoundError:
                written = False
            except (OSError, UnicodeDecodeError):
                return Same()
            try:
                if not written:
                    self._write(mine)
                self._stamp = _stamp(self.path)
            except (OSError, UnicodeEncodeError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                return Unsaved(reason, self.keep_draft(mine))
            self.base = mine
            self._drop_draft()
            return Saved()

    def part(self, mine: str) -> bool:
        """The last save of a session, when nobody is there to be asked. False: the text is a draft, or only here."""
        if mine == self.base and not self.path.exists():
            return True  # whoever took it away had all of it
        text = mine
        for _ in range(3):  # what another program wrote meanwhile is joined first
            outcome = self.save(text)
            if not isinstance(outcome, Joined):
                break
            text = outcome.text
        if isinstance(outcome, Saved | Reloaded):
            self.base, self._stamp = mine, None  # called again with the same text, it has nothing to save
            return True
        self.keep_draft(text)
        return False

    def decide(self, conflict: Conflict, choice: str) -> tuple[str, tuple[Path, ...]]:
        """`mine`, `theirs` or `both` (one text with markers). Returns the text, not saved yet, and the backups.

        Raises CannotEdit when a version cannot be backed up; then nothing has changed.
        """
        losers = {"mine": (conflict.theirs,), "theirs": (conflict.mine,), "both": (conflict.mine, conflict.theirs)}
        with self._lock:
            try:
                backups = tuple(self.places.keep(text.encode()) for text in losers[choice])
            except OSError as error:
                raise CannotEdit(f"No backup can be written ({error.strerror}): nothing has changed.") from error
            self.base = conflict.theirs
            if choice == "both":
                return with_conflicts(conflict.mine, conflict.theirs), backups
            return (conflict.mine if choice == "mine" else conflict.theirs), backups

    # --- drafts

    def keep_draft(self, text: str) -> Path | None:
        """The text in the workspace, for the next session; else in the system's folder for such files; else None."""
        with self._lock:
            if self._drafted != (text, self.base):
                self._drafted = (text, self.base)
                self._draft = self._write_draft(text)
            return self._draft

    def _write_draft(self, text: str) -> Path | None:
        with contextlib.suppress(OSError, UnicodeEncodeError):
            write_atomically(self.places.draft_base, self.base.encode())
            write_atomically(self.places.draft, text.encode())
            return self.places.draft
        with contextlib.suppress(OSError, UnicodeEncodeError):
            handle, path = tempfile.mkstemp(prefix=f"{self.path.stem}-", suffix=".py")
            with os.fdopen(handle, "wb") as stream:
                stream.write(text.encode())
            return Path(path)
        return None

    def _take_draft(self) -> bool:
        """Goes on where a session ended that could not save: its text here, its base as the common one."""
        try:
            text = self.places.draft.read_bytes().decode()
            base = self.places.draft_base.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return False
        if text == self.base:
            self._drop_draft()
            return False
        self.text, self.base, self._stamp = text, base, None
        return True

    def _drop_draft(self) -> None:
        self._drafted, self._draft = None, None
        for path in (self.places.draft, self.places.draft_base):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)

    # --- the disk

    def _unchanged(self) -> bool:
        try:
            stamp = _stamp(self.path)
        except OSError:
            return False
        return stamp == self._stamp and time.time() - stamp[0] / 1e9 > COARSE_SECONDS

    def _read(self) -> tuple[str, Stamp]:
        """As it is, line ends included. The stamp is older than the text, never newer."""
        stamp = _stamp(self.path)
        return self.path.read_bytes().decode(), stamp

    def _write(self, text: str) -> None:
        """Through a symbolic link into its target; permissions stay; never into a file that is read-only."""
        target = Path(os.path.realpath(self.path))
        try:
            before = target.stat()
        except FileNotFoundError:
            write_atomically(target, text.encode())
            return
        if not before.st_mode & 0o222 or not os.access(target, os.W_OK):
            raise PermissionError(13, "it is read-only")
        try:
            write_atomically(target, text.encode(), like=before)
        except PermissionError:  # a folder that takes no new file; the draft is whole while the file is not
            if self.keep_draft(text) is None:
                raise
            _overwrite(target, text.encode())


def _overwrite(path: Path, content: bytes) -> None:
    with open(path, "r+b") as stream:
        stream.write(content)
        stream.truncate()
        stream.flush()
        os.fsync(stream.fileno())


def _stamp(path: Path) -> Stamp:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns
