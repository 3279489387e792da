"""A drill on disk: state.json, replaced as a whole at every event, and journal.jsonl, one line an event.

The rename of state.json is the moment at which an event has happened; the journal is written after it and tells how it
came about. Killed between the two, the journal lacks a line, and its numbers show that. Only one process at a time
holds a drill.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from tutor.drill.state import STATE_SCHEMA, State
from tutor.whole_files import write_atomically


class DrillBusy(RuntimeError):
    """Another process holds this drill."""


class DrillUnreadable(ValueError):
    """The state is damaged, or of a newer version; the text says which and where it is."""


class Store:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[bytes] | None = None

    def hold(self) -> None:
        """Raises DrillBusy. The lock goes with the process, however it ends."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = open(self.folder / "lock", "ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise DrillBusy(f"The drill {self.folder.name} is open in another window. Go on there.") from error
        self._lock = lock

    def release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def save(self, state: State, event: str, facts: dict[str, Any]) -> None:
        """Raises OSError: nothing of the event is kept then, or all of it."""
        write_atomically(self.folder / "state.json", msgspec.json.encode(state))
        _sync_folder(self.folder)
        line = {"seq": state.seq, "event": event, "elapsed": round(state.anchor.elapsed, 3), "wall": state.anchor.wall}
        with open(self.folder / "journal.jsonl", "ab") as journal:
            journal.write(msgspec.json.encode({**line, **facts}) + b"\n")
            journal.flush()
            os.fsync(journal.fileno())

    def load(self) -> State:
        """Raises DrillUnreadable and FileNotFoundError."""
        place = self.folder / "state.json"
        content = place.read_bytes()
        try:
            version = msgspec.json.decode(content)["schema"]
            if version > STATE_SCHEMA:
                raise DrillUnreadable(f"{place} is of a newer triton-prep (format {version}). Update to go on with it.")
            state = msgspec.json.decode(content, type=State)
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            raise DrillUnreadable(f"{place} cannot be read: {error}") from error
        for left in self.folder.glob(".state.*"):  # of a process that was killed while writing
            with contextlib.suppress(OSError):
                left.unlink()
        return state

    def mend_journal(self) -> None:
        """A line that a kill or a full disk cut short must not swallow the next one."""
        with contextlib.suppress(OSError), open(self.folder / "journal.jsonl", "r+b") as journal:
            content = journal.read()
            journal.truncate(content.rfind(b"\n") + 1)

    def beat(self) -> None:
        """Says that the program is alive, for "you were away". Not worth a sync."""
        with contextlib.suppress(OSError):
            (self.folder / "alive").touch()

    def last_beat(self) -> float | None:
        """Seconds since the epoch."""
        try:
            return (self.folder / "alive").stat().st_mtime
        except OSError:
            return None


def drills_folder(workspace: Path) -> Path:
    return workspace / ".triton-prep" / "drills"


def new_folders(workspace: Path, name: str, began: time.struct_time) -> tuple[Path, Path]:
    """Of the drill's state, and of its kernel files and scorecard: neither is there yet."""
    state = drills_folder(workspace) / f"{time.strftime('%Y%m%d-%H%M%S', began)}-{name}"
    results = workspace / "drills" / f"{time.strftime('%Y-%m-%d', began)}-{name}"
    return _free(state), _free(results)


def _free(folder: Path) -> Path:
    numbered = (folder.with_name(f"{folder.name}-{number}") for number in itertools.count(2))
    return next(place for place in itertools.chain([folder], numbered) if not place.exists())


def drill_ids(workspace: Path) -> tuple[str, ...]:
    """Oldest first: ids begin with date and time."""
    return tuple(sorted(place.parent.name for place in drills_folder(workspace).glob("*/state.json")))


def states(workspace: Path) -> tuple[State, ...]:
    """Of every drill that can be read, oldest first."""
    found = []
    for name in drill_ids(workspace):
        with contextlib.suppress(DrillUnreadable, OSError):
            found.append(Store(drills_folder(workspace) / name).load())
    return tuple(found)


def unfinished(workspace: Path) -> State | None:
    """The newest drill, when it has not come to its scorecard."""
    for name in reversed(drill_ids(workspace)):
        with contextlib.suppress(DrillUnreadable, OSError):
            state = Store(drills_folder(workspace) / name).load()
            return state if state.stage != "finished" else None
    return None


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
