"""Progress as one JSON document, and merging such a document into the progress that is here.

Merging loses nothing and is idempotent: attempts are united (one that is already here is not added again); of an item,
`passed`, hints and giving up stay once reached, the best score wins, and the place in it is the newer one; of a
setting, the newer value wins. Cards are not taken over but replayed from the united attempts, from which they follow.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from tutor.progress import Progress
from tutor.progress_file import rebuild_card

FORMAT = 1
Day = Annotated[str, Meta(pattern=r"^(\d{4}-\d\d-\d\d)?$")]


class AttemptRow(msgspec.Struct, frozen=True):
    item: str
    kind: str
    correct: bool
    score: float
    seconds: float
    at: float
    day: Day
    rating: Annotated[int, Meta(ge=1, le=4)] | None = None
    detail: dict[str, Any] = {}


class StateRow(msgspec.Struct, frozen=True):
    item: str
    best: float | None = None
    passed: bool = False
    attempts: int = 0
    position: int = 0
    hints: int = 0
    gave_up: bool = False
    seen_at: float | None = None
    helped: int = 0
    helped_on: Day = ""


class CardRow(msgspec.Struct, frozen=True):
    """For other programs; an import replays the attempts instead."""

    item: str
    stability: float
    difficulty: float
    due: Day
    reviewed: Day
    rating: int
    reviews: int
    lapses: int


class SettingRow(msgspec.Struct, frozen=True):
    key: str
    value: str
    at: float = 0.0


class Document(msgspec.Struct, frozen=True):
    schema: int
    exported: str  # when, ISO, UTC
    attempts: tuple[AttemptRow, ...]
    states: tuple[StateRow, ...]
    cards: tuple[CardRow, ...]
    settings: tuple[SettingRow, ...]


Row = TypeVar("Row", AttemptRow, StateRow, CardRow, SettingRow)


class BadDocument(Exception):
    """The message says what is wrong with it."""


@dataclass(frozen=True)
class Merged:
    attempts: int  # that were not here
    states: int  # items that changed
    settings: int


def exported(progress: Progress) -> Document:
    with progress.snapshot():
        return Document(
            FORMAT,
            datetime.fromtimestamp(progress.clock(), UTC).isoformat(timespec="seconds"),
            _rows(progress, AttemptRow, "attempt ORDER BY at, item, number"),
            _rows(progress, StateRow, "item_state ORDER BY item"),
            _rows(progress, CardRow, "card ORDER BY item"),
            _rows(progress, SettingRow, "setting ORDER BY key"),
        )


def _rows(progress: Progress, row_type: type[Row], source: str) -> tuple[Row, ...]:
    fields = row_type.__struct_fields__
    found = []
    for values in progress.query(f"SELECT {', '.join(fields)} FROM {source}"):
        row = dict(zip(fields, values, strict=True))
        if "detail" in row:
            row["detail"] = json.loads(row["detail"])
        found.append(msgspec.convert(row, row_type, strict=False))  # SQLite's 0 and 1 are booleans
    return tuple(found)


def decoded(content: bytes) -> Document:
    """Raises BadDocument."""
    try:
        head = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadDocument(f"not JSON ({error})") from error
    version = head.get("schema") if isinstance(head, dict) else None
    if not isinstance(version, int) or not isinstance(head.get("attempts"), list):
        raise BadDocument("not a progress export: `triton-prep export progress FILE` writes one")
    if version > FORMAT:
        raise BadDocument(f"format {version}, and this triton-prep knows {FORMAT}: update triton-prep")
    try:
        document = msgspec.json.decode(content, type=Document)
        for attempt in document.attempts:
            if attempt.day:
                date.fromisoformat(attempt.day)
    except (msgspec.ValidationError, ValueError) as error:
        raise BadDocument(str(error)) from error
    return document


def merge(progress: Progress, document: Document) -> Merged:
    """One transaction: all of it or nothing."""
    counts: list[int] = []

    def write(database: sqlite3.Connection) -> None:
        touched = _unite_attempts(progress, database, document.attempts)
        states = sum(_merge_state(progress, database, state) for state in document.states)
        for item in touched:
            names = progress.names_of(item)
            database.execute("INSERT INTO item_state (item) VALUES (?) ON CONFLICT (item) DO NOTHING", (item,))
            for name in names:
                database.execute(
                    "UPDATE item_state SET attempts = (SELECT count(*) FROM attempt WHERE item = ?1) WHERE item = ?1",
                    (name,),
                )
            rebuild_card(database, item, names)
        settings = sum(_merge_setting(database, setting) for setting in document.settings)
        counts[:] = [sum(touched.values()), states, settings]

    progress.transact(write, "what was imported")
    return Merged(*counts)


def _unite_attempts(progress: Progress, database: sqlite3.Connection, attempts: tuple[AttemptRow, ...]) -> Counter[str]:
    """How many were added, by item. Two attempts are the same when item, moment, kind, score and time taken are."""

    def key(item: str, kind: str, correct: bool, score: float, seconds: float, at: float) -> tuple[Any, ...]:
        return progress.current(item), kind, bool(correct), score, seconds, at

    here = Counter(key(*row) for row in database.execute("SELECT item, kind, correct, score, seconds, at FROM attempt"))
    added: Counter[str] = Counter()
    for row in attempts:
        one = key(row.item, row.kind, row.correct, row.score, row.seconds, row.at)
        if here[one] > 0:
            here[one] -= 1
            continue
        item = progress.current(row.item)
        database.execute(
            "INSERT INTO attempt (item, kind, correct, score, seconds, at, detail, day, rating) "
            "VALUES (?,?,?,?,?,?,?,?,?)",
            (item, row.kind, row.correct, row.score, row.seconds, row.at, json.dumps(row.detail), row.day, row.rating),
        )
        added[item] += 1
    return added


def _merge_state(progress: Progress, database: sqlite3.Connection, row: StateRow) -> bool:
    item = progress.current(row.item)
    before = _state(database, item)
    database.execute(
        "INSERT INTO item_state (item, best, passed, position, hints, gave_up, seen_at, helped, helped_on) "
        "VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9) ON CONFLICT (item) DO UPDATE SET "
        "best = CASE WHEN best IS NULL OR ?2 > best THEN ?2 ELSE best END, passed = max(passed, ?3), "
        "position = CASE WHEN coalesce(?7, 0) > coalesce(seen_at, 0) THEN ?4 ELSE position END, "
        "hints = max(hints, ?5), gave_up = max(gave_up, ?6), "
        "helped = CASE WHEN ?9 > helped_on THEN ?8 WHEN ?9 = helped_on THEN max(helped, ?8) ELSE helped END, "
        "helped_on = max(helped_on, ?9), "
        "seen_at = nullif(max(coalesce(seen_at, 0), coalesce(?7, 0)), 0)",
        (
            item,
            row.best,
            row.passed,
            row.position,
            row.hints,
            row.gave_up,
            row.seen_at,
            row.helped,
            row.helped_on,
        ),
    )
    return _state(database, item) != before


def _state(database: sqlite3.Connection, item: str) -> tuple[Any, ...] | None:
    row: tuple[Any, ...] | None = database.execute("SELECT * FROM item_state WHERE item = ?", (item,)).fetchone()
    return row


def _merge_setting(database: sqlite3.Connection, row: SettingRow) -> bool:
    done = database.execute(
        "INSERT INTO setting (key, value, at) VALUES (?1, ?2, ?3) "
        "ON CONFLICT (key) DO UPDATE SET value = ?2, at = ?3 WHERE ?3 > at",
        (row.key, row.value, row.at),
    )
    return done.rowcount > 0
