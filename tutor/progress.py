"""What the learner did, in one SQLite file. Everything is committed before the call returns."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tutor.course.course import Course

SCHEMA_VERSION = 1
BUSY_SECONDS = 5.0
Result = TypeVar("Result")

TABLES = """
CREATE TABLE IF NOT EXISTS attempt (
    number INTEGER PRIMARY KEY, item TEXT NOT NULL, kind TEXT NOT NULL, correct INTEGER NOT NULL, score REAL NOT NULL,
    seconds REAL NOT NULL, at REAL NOT NULL, detail TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS attempt_item ON attempt (item);
CREATE TABLE IF NOT EXISTS item_state (
    item TEXT PRIMARY KEY, best REAL, passed INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL DEFAULT 0, hints INTEGER NOT NULL DEFAULT 0, gave_up INTEGER NOT NULL DEFAULT 0,
    seen_at REAL);
CREATE TABLE IF NOT EXISTS setting (key TEXT PRIMARY KEY, value TEXT NOT NULL);
"""


@dataclass(frozen=True)
class ItemState:
    item_id: str
    best: float | None = None  # best score so far, 0 to 1
    passed: bool = False
    attempts: int = 0
    position: int = 0  # last page of a lesson, last step of a walkthrough, 0-based
    hints: int = 0  # highest level of hint shown
    gave_up: bool = False
    seen_at: float | None = None  # seconds since the epoch


@dataclass(frozen=True)
class Attempt:
    item_id: str
    kind: str
    correct: bool
    score: float
    seconds: float
    at: float
    detail: dict[str, Any]


class Progress:
    """Open with `Progress.open`. Several processes may hold the same file."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path | None, notices: tuple[str, ...], aliases: Mapping[str, str]
    ) -> None:
        self._connection = connection
        self._now_called = dict(aliases)
        self.path = path
        self.notices = notices

    @classmethod
    def open(cls, path: Path | None, *, aliases: Mapping[str, str] | None = None) -> Progress:
        """Never raises for a bad file: a damaged one is kept aside, an unusable place gives progress in memory."""
        aliases = aliases or {}
        if path is None:
            return cls(_connect(":memory:"), None, (), aliases)
        notices: list[str] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                connection = _connect(str(path))
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError:
                kept = _keep_aside(path)
                notices.append(f"The progress file was damaged. It is kept as {kept}; a new one was started.")
                connection = _connect(str(path))
        except NewerProgress as newer:
            notices.append(
                f"{path} was written by a newer triton-prep (format {newer.version}; this one knows {SCHEMA_VERSION}). "
                "It is left as it is, and nothing done now is kept. Update triton-prep to go on with it."
            )
            return cls(_connect(":memory:"), None, tuple(notices), aliases)
        except (OSError, sqlite3.OperationalError) as error:
            notices.append(f"Progress cannot be kept in {path} ({error}). It lasts only until you leave.")
            return cls(_connect(":memory:"), None, tuple(notices), aliases)
        return cls(connection, path, tuple(notices), aliases)

    def close(self) -> None:
        self._connection.close()

    # --- recording

    def record_answer(
        self,
        item_id: str,
        kind: str,
        *,
        correct: bool,
        score: float,
        seconds: float = 0.0,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """One answer or one grade. `passed` stays once reached; `best` only rises."""
        item, now = self._current(item_id), time.time()
        text = json.dumps(dict(detail or {}), default=str)

        def write(database: sqlite3.Connection) -> None:
            database.execute(
                "INSERT INTO attempt (item, kind, correct, score, seconds, at, detail) VALUES (?,?,?,?,?,?,?)",
                (item, kind, int(correct), score, seconds, now, text),
            )
            database.execute(
                "INSERT INTO item_state (item, best, passed, attempts, seen_at) VALUES (?1, ?2, ?3, 1, ?4) "
                "ON CONFLICT (item) DO UPDATE SET best = max(coalesce(best, ?2), ?2), passed = max(passed, ?3), "
                "attempts = attempts + 1, seen_at = ?4",
                (item, score, int(correct), now),
            )

        self._write(write)

    def record_page(self, item_id: str, position: int, *, finished: bool = False) -> None:
        """The page or step (0-based) now on screen; `finished` marks the item as done."""
        best = 1.0 if finished else None
        self._write(
            lambda database: database.execute(
                "INSERT INTO item_state (item, best, passed, position, seen_at) VALUES (?1, ?2, ?3, ?4, ?5) "
                "ON CONFLICT (item) DO UPDATE SET best = coalesce(?2, best), passed = max(passed, ?3), position = ?4, "
                "seen_at = ?5",
                (self._current(item_id), best, int(finished), position, time.time()),
            )
        )

    def record_hint(self, item_id: str, level: int) -> None:
        self._write(
            lambda database: database.execute(
                "INSERT INTO item_state (item, hints, seen_at) VALUES (?1, ?2, ?3) "
                "ON CONFLICT (item) DO UPDATE SET hints = max(hints, ?2), seen_at = ?3",
                (self._current(item_id), level, time.time()),
            )
        )

    def record_give_up(self, item_id: str) -> None:
        self._write(
            lambda database: database.execute(
                "INSERT INTO item_state (item, gave_up, seen_at) VALUES (?1, 1, ?2) "
                "ON CONFLICT (item) DO UPDATE SET gave_up = 1, seen_at = ?2",
                (self._current(item_id), time.time()),
            )
        )

    def set_setting(self, key: str, value: str) -> None:
        self._write(
            lambda database: database.execute(
                "INSERT INTO setting VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2", (key, value)
            )
        )

    def set_resume(self, item_id: str) -> None:
        self.set_setting("resume", item_id)

    # --- reading

    def state(self, item_id: str) -> ItemState:
        return self.states().get(self._current(item_id), ItemState(self._current(item_id)))

    def states(self) -> dict[str, ItemState]:
        """By present id. What was recorded under an old id of an item is joined to it."""
        joined: dict[str, ItemState] = {}
        for row in self._connection.execute(
            "SELECT item, best, passed, attempts, position, hints, gave_up, seen_at FROM item_state ORDER BY seen_at"
        ):
            item = self._current(row[0])
            state = ItemState(item, row[1], bool(row[2]), row[3], row[4], row[5], bool(row[6]), row[7])
            joined[item] = _join(joined[item], state) if item in joined else state
        return joined

    def attempts(self, item_id: str | None = None, limit: int | None = None) -> tuple[Attempt, ...]:
        """Newest first."""
        rows = self._connection.execute(
            "SELECT item, kind, correct, score, seconds, at, detail FROM attempt ORDER BY number DESC"
        )
        wanted = None if item_id is None else self._current(item_id)
        found: list[Attempt] = []
        for row in rows:
            item = self._current(row[0])
            if wanted is not None and item != wanted:
                continue
            found.append(Attempt(item, row[1], bool(row[2]), row[3], row[4], row[5], json.loads(row[6])))
            if limit is not None and len(found) >= limit:
                break
        return tuple(found)

    def setting(self, key: str, default: str = "") -> str:
        row = self._connection.execute("SELECT value FROM setting WHERE key = ?", (key,)).fetchone()
        return row[0] if row else default

    def resume(self) -> str | None:
        return self._current(self.setting("resume")) or None

    # --- inside

    def _current(self, item_id: str) -> str:
        return self._now_called.get(item_id, item_id)

    def _write(self, action: Callable[[sqlite3.Connection], Result]) -> None:
        """One transaction. A full disk or a vanished folder must not end the session: progress goes on in memory."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                action(self._connection)
        except sqlite3.OperationalError as error:
            if self.path is None:
                raise
            memory = _connect(":memory:")
            try:
                self._connection.backup(memory)
            except sqlite3.Error:
                memory = _connect(":memory:")
            self.notices += (
                f"Progress can no longer be kept in {self.path} ({error}). It lasts only until you leave.",
            )
            self.path, self._connection = None, memory
            self._write(action)


class NewerProgress(Exception):
    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(version)


def exercise_id(course: Course, slug: str) -> str:
    """The id under which an exercise's grades are kept, also when no module has an item for it."""
    item = course.exercise_item(slug)
    return item.id if item else f"exercise.{slug}"


def _connect(place: str) -> sqlite3.Connection:
    # isolation_level=None: transactions are opened by hand; BEGIN IMMEDIATE waits its turn instead of failing half-way.
    connection = sqlite3.connect(place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise NewerProgress(version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if version < SCHEMA_VERSION:
            connection.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
        connection.execute("SELECT item, seen_at FROM item_state LIMIT 1").fetchall()
        connection.execute("SELECT item, detail FROM attempt LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _keep_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while kept.exists():
        number += 1
        kept = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    path.rename(kept)
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(kept.with_name(kept.name + suffix))
    return kept


def _join(old: ItemState, new: ItemState) -> ItemState:
    scores = [state.best for state in (old, new) if state.best is not None]
    return ItemState(
        new.item_id,
        max(scores) if scores else None,
        old.passed or new.passed,
        old.attempts + new.attempts,
        new.position,
        max(old.hints, new.hints),
        old.gave_up or new.gave_up,
        new.seen_at,
    )
