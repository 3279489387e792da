"""The SQLite file behind the progress: its tables, older and newer forms of it, and what to do with a damaged one.

Write-ahead log with `synchronous = FULL`: every commit is on the disk before the call returns, so that neither kill -9
nor a power cut takes back an answer that was acknowledged; readers and one writer do not block each other. With
`NORMAL` a power cut could lose the last commits; answers are rare enough for the extra fsync not to matter.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from tutor.schedule import GAVE_UP, HINTED, UNAIDED, USUAL_MINUTES, Card, card_of, rate

SCHEMA_VERSION = 2
BUSY_SECONDS = 5.0

TABLES = """
CREATE TABLE IF NOT EXISTS attempt (
    number INTEGER PRIMARY KEY, item TEXT NOT NULL, kind TEXT NOT NULL, correct INTEGER NOT NULL, score REAL NOT NULL,
    seconds REAL NOT NULL, at REAL NOT NULL, detail TEXT NOT NULL, day TEXT NOT NULL DEFAULT '', rating INTEGER);
CREATE INDEX IF NOT EXISTS attempt_item ON attempt (item);
CREATE TABLE IF NOT EXISTS item_state (
    item TEXT PRIMARY KEY, best REAL, passed INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
    position INTEGER NOT NULL DEFAULT 0, hints INTEGER NOT NULL DEFAULT 0, gave_up INTEGER NOT NULL DEFAULT 0,
    seen_at REAL, helped INTEGER NOT NULL DEFAULT 0, helped_on TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS setting (key TEXT PRIMARY KEY, value TEXT NOT NULL, at REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS card (
    item TEXT PRIMARY KEY, stability REAL NOT NULL, difficulty REAL NOT NULL, due TEXT NOT NULL, reviewed TEXT NOT NULL,
    rating INTEGER NOT NULL, reviews INTEGER NOT NULL, lapses INTEGER NOT NULL);
"""
FROM_1 = (
    "ALTER TABLE attempt ADD COLUMN day TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE attempt ADD COLUMN rating INTEGER",
    "ALTER TABLE item_state ADD COLUMN helped INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE item_state ADD COLUMN helped_on TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE setting ADD COLUMN at REAL NOT NULL DEFAULT 0",
)


class NewerProgress(Exception):
    def __init__(self, version: int) -> None:
        self.version = version
        super().__init__(version)


def connect(place: str, minutes: Mapping[str, int], aliases: Mapping[str, str]) -> sqlite3.Connection:
    """`place` is a path or ":memory:". An older file is copied beside itself, then brought up to date.

    Raises NewerProgress, sqlite3.OperationalError (unusable place) or another sqlite3.DatabaseError (damaged file).
    """
    # isolation_level=None: transactions are opened by hand; BEGIN IMMEDIATE waits its turn instead of failing half-way.
    connection = sqlite3.connect(place, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        version = _version(connection)
        if version > SCHEMA_VERSION:
            raise NewerProgress(version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        if version < SCHEMA_VERSION:
            _bring_up_to_date(connection, place, minutes, aliases)
        connection.execute("SELECT item, seen_at, helped_on FROM item_state LIMIT 1").fetchall()
        connection.execute("SELECT item, detail, rating FROM attempt LIMIT 1").fetchall()
        connection.execute("SELECT item, lapses FROM card LIMIT 1").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def read_into_memory(path: Path, minutes: Mapping[str, int], aliases: Mapping[str, str]) -> sqlite3.Connection | None:
    """A copy of a file that can be read and not written (a full disk, a read-only place); None when it cannot be read.

    Where not even the log can be opened, the file alone is read: the last answers may then be missing in the copy.
    """
    for how in ("mode=ro", "immutable=1"):
        memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            source = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
            try:
                source.backup(memory)
            finally:
                source.close()
            if 0 < _version(memory) < SCHEMA_VERSION:
                _bring_up_to_date(memory, ":memory:", minutes, aliases)
            if _version(memory) == SCHEMA_VERSION:
                return memory
        except sqlite3.Error:
            pass
        memory.close()
    return None


def rebuild_card(database: sqlite3.Connection, item: str, names: tuple[str, ...]) -> None:
    """Replays every attempt of the item, under all of the `names` it has had, inside the caller's transaction."""
    marks = ",".join("?" * len(names))
    rows = database.execute(
        f"SELECT day, correct, rating, kind FROM attempt WHERE item IN ({marks}) ORDER BY at, number", names
    ).fetchall()
    card = card_of(item, rows[-1][3], [(day, bool(right), rating) for day, right, rating, _ in rows]) if rows else None
    database.execute(f"DELETE FROM card WHERE item IN ({marks})", names)
    if card is not None:
        database.execute(
            "INSERT INTO card (item, stability, difficulty, due, reviewed, rating, reviews, lapses) "
            "VALUES (?,?,?,?,?,?,?,?)",
            (
                card.item_id,
                card.stability,
                card.difficulty,
                card.due.isoformat(),
                card.reviewed.isoformat(),
                card.rating,
                card.reviews,
                card.lapses,
            ),
        )


def read_cards(database: sqlite3.Connection) -> list[Card]:
    return [
        Card(row[0], row[1], row[2], date.fromisoformat(row[3]), date.fromisoformat(row[4]), row[5], row[6], row[7])
        for row in database.execute(
            "SELECT item, stability, difficulty, due, reviewed, rating, reviews, lapses FROM card ORDER BY reviewed"
        )
    ]


def local_day(at: float) -> str:
    """The calendar day, where the learner is, of a moment in seconds since the epoch."""
    return date.fromtimestamp(at).isoformat()


def keep_aside(path: Path) -> Path:
    """Renames a damaged file, its log with it. Returns the new path."""
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


def backup_name(path: Path, version: int) -> Path:
    return path.with_name(f"{path.name}.schema-{version}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _bring_up_to_date(
    connection: sqlite3.Connection, place: str, minutes: Mapping[str, int], aliases: Mapping[str, str]
) -> None:
    """One transaction: another process sees the old file or the new one, and a crash leaves the old one."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection)  # again: another process may have been first
        if version == 1:
            if place != ":memory:":
                _back_up(place, version)
            for statement in FROM_1:
                connection.execute(statement)
        for statement in filter(str.strip, TABLES.split(";")):
            connection.execute(statement)
        if version == 1:
            _rate_old_attempts(connection, minutes, aliases)
        if version < SCHEMA_VERSION:
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _back_up(place: str, version: int) -> None:
    """A whole copy, what is still in the log included. Put in place by a rename, so that half a copy is never there."""
    kept = backup_name(Path(place), version)
    partial = kept.with_name(kept.name + ".partial")
    partial.unlink(missing_ok=True)
    source, copy = sqlite3.connect(place), sqlite3.connect(partial)
    try:
        source.backup(copy)
    finally:
        copy.close()
        source.close()
    partial.replace(kept)


def _rate_old_attempts(database: sqlite3.Connection, minutes: Mapping[str, int], aliases: Mapping[str, str]) -> None:
    """Format 1 had neither days nor ratings. It knew of hints and giving up only that they had been, not when: they
    count against the first right answer of the item."""
    help_taken = {
        item: GAVE_UP if gave_up else HINTED if hints else UNAIDED
        for item, hints, gave_up in database.execute("SELECT item, hints, gave_up FROM item_state")
    }
    passed_file: dict[str, object] = {}
    names: dict[str, set[str]] = {}
    rows = database.execute(
        "SELECT number, item, kind, correct, score, seconds, at, detail FROM attempt ORDER BY at, number"
    ).fetchall()
    for number, item, kind, correct, score, seconds, at, detail in rows:
        current = aliases.get(item, item)
        names.setdefault(current, {current}).add(item)
        digest = json.loads(detail).get("sha256")
        rating = rate(
            kind,
            correct=bool(correct),
            score=score,
            seconds=seconds,
            minutes=minutes.get(current, USUAL_MINUTES),
            helped=help_taken.pop(item, UNAIDED) if correct else UNAIDED,
            unchanged=digest is not None and passed_file.get(current) == digest,
        )
        if correct:
            passed_file[current] = digest
        database.execute("UPDATE attempt SET day = ?, rating = ? WHERE number = ?", (local_day(at), rating, number))
    for current, known in names.items():
        rebuild_card(database, current, tuple(sorted(known)))
