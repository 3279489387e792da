"""What the learner did, in one SQLite file. Everything is committed before the call returns."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from tutor.course.course import Course
from tutor.progress_file import (
    SCHEMA_VERSION,
    NewerProgress,
    backup_name,
    connect,
    keep_aside,
    local_day,
    read_cards,
    read_into_memory,
    rebuild_card,
)
from tutor.schedule import GAVE_UP, HINTED, UNAIDED, USUAL_MINUTES, Card, rate

__all__ = ["SCHEMA_VERSION", "Attempt", "ItemState", "Progress", "exercise_id", "minutes_of"]

Result = TypeVar("Result")
Clock = Callable[[], float]  # seconds since the epoch


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
    day: str = ""  # the learner's calendar day, ISO
    rating: int | None = None  # `tutor.schedule`; None: says nothing about memory


class Progress:
    """Open with `Progress.open`. Several processes may hold the same file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        path: Path | None,
        *,
        notices: tuple[str, ...] = (),
        aliases: Mapping[str, str] | None = None,
        minutes: Mapping[str, int] | None = None,
        clock: Clock = time.time,
    ) -> None:
        self._connection = connection
        self._now_called = dict(aliases or {})
        self._minutes = dict(minutes or {})
        self.clock = clock
        self.path = path
        self.notices = notices
        self.on_notice: Callable[[str], None] | None = None  # told of what goes wrong later
        self.unkept: list[str] = []  # items answered or seen since the file could no longer be written
        self.lasting = True  # False once what is recorded can no longer be kept

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        aliases: Mapping[str, str] | None = None,
        minutes: Mapping[str, int] | None = None,
        clock: Clock = time.time,
    ) -> Progress:
        """`minutes` is what each item should take (`minutes_of`): answers are rated against it.

        Never raises for a bad file: a damaged one is kept aside, an unusable place gives progress in memory.
        """
        aliases, minutes = aliases or {}, minutes or {}
        place, notices = path, []
        connection: sqlite3.Connection | None = None
        if path is not None:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                old = backup_name(path, 1)
                before = old.stat().st_mtime_ns if old.exists() else None
                try:
                    connection = connect(str(path), minutes, aliases)
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError:
                    kept = keep_aside(path)
                    notices.append(f"The progress file was damaged. It is kept as {kept}; a new one was started.")
                    connection = connect(str(path), minutes, aliases)
                if old.exists() and old.stat().st_mtime_ns != before:
                    notices.append(f"Progress is kept in a newer format now. The file as it was: {old}.")
            except NewerProgress as newer:
                notices.append(
                    f"{path} was written by a newer triton-prep (format {newer.version}; this one knows "
                    f"{SCHEMA_VERSION}). It is left as it is, and nothing done now is kept. Update triton-prep to go "
                    "on with it."
                )
            except (OSError, sqlite3.OperationalError) as error:
                connection, place = read_into_memory(path, minutes, aliases), None
                there = "What is there is shown; what you do now" if connection else "It"
                notices.append(f"Progress cannot be kept in {path} ({error}). {there} lasts only until you leave.")
        if connection is None:
            connection, place = connect(":memory:", minutes, aliases), None
        progress = cls(connection, place, notices=tuple(notices), aliases=aliases, minutes=minutes, clock=clock)
        progress.lasting = path is None or place is not None
        return progress

    def close(self) -> None:
        self._connection.close()

    def today(self) -> date:
        return date.fromtimestamp(self.clock())

    def parting(self) -> str | None:
        """What was done but not kept, for the last line that is shown; None when everything is in the file."""
        if not self.unkept:
            return None
        names = list(dict.fromkeys(self.unkept))
        shown = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        return f"Not kept, because the progress file could not be written: {shown}."

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
        item, now, given = self.current(item_id), self.clock(), dict(detail or {})
        text, day = json.dumps(given, default=str), local_day(now)

        def write(database: sqlite3.Connection) -> None:
            rating = rate(
                kind,
                correct=correct,
                score=score,
                seconds=seconds,
                minutes=self._minutes.get(item, USUAL_MINUTES),
                helped=_help_taken(database, item, day),
                unchanged=correct and _passed_before(database, item, given.get("sha256")),
            )
            database.execute(
                "INSERT INTO attempt (item, kind, correct, score, seconds, at, detail, day, rating) "
                "VALUES (?,?,?,?,?,?,?,?,?)",
                (item, kind, int(correct), score, seconds, now, text, day, rating),
            )
            database.execute(
                "INSERT INTO item_state (item, best, passed, attempts, seen_at) VALUES (?1, ?2, ?3, 1, ?4) "
                "ON CONFLICT (item) DO UPDATE SET best = max(coalesce(best, ?2), ?2), passed = max(passed, ?3), "
                "attempts = attempts + 1, seen_at = ?4",
                (item, score, int(correct), now),
            )
            rebuild_card(database, item, self.names_of(item))

        self.transact(write, item)

    def record_page(self, item_id: str, position: int, *, finished: bool = False) -> None:
        """The page or step (0-based) now on screen; `finished` marks the item as done."""
        best = 1.0 if finished else None
        self.transact(
            lambda database: database.execute(
                "INSERT INTO item_state (item, best, passed, position, seen_at) VALUES (?1, ?2, ?3, ?4, ?5) "
                "ON CONFLICT (item) DO UPDATE SET best = coalesce(?2, best), passed = max(passed, ?3), position = ?4, "
                "seen_at = ?5",
                (self.current(item_id), best, int(finished), position, self.clock()),
            ),
            self.current(item_id),
        )

    def record_hint(self, item_id: str, level: int) -> None:
        self._record_help(item_id, HINTED, hints=level)

    def record_give_up(self, item_id: str) -> None:
        self._record_help(item_id, GAVE_UP, gave_up=1)

    def record_solution_seen(self, item_id: str) -> None:
        """Shown after a pass: nobody gave up, but an answer later that day is no recall either."""
        self._record_help(item_id, GAVE_UP)

    def _record_help(self, item_id: str, helped: int, *, hints: int = 0, gave_up: int = 0) -> None:
        """Help counts against the answers of the same day; on another day the item is recalled afresh."""
        item, now = self.current(item_id), self.clock()
        self.transact(
            lambda database: database.execute(
                "INSERT INTO item_state (item, hints, gave_up, helped, helped_on, seen_at) VALUES (?1,?2,?3,?4,?5,?6) "
                "ON CONFLICT (item) DO UPDATE SET hints = max(hints, ?2), gave_up = max(gave_up, ?3), "
                "helped = CASE helped_on WHEN ?5 THEN max(helped, ?4) ELSE ?4 END, helped_on = ?5, seen_at = ?6",
                (item, hints, gave_up, helped, local_day(now), now),
            ),
            item,
        )

    def set_setting(self, key: str, value: str) -> None:
        self.transact(
            lambda database: database.execute(
                "INSERT INTO setting (key, value, at) VALUES (?1, ?2, ?3) "
                "ON CONFLICT (key) DO UPDATE SET value = ?2, at = ?3",
                (key, value, self.clock()),
            )
        )

    def set_resume(self, item_id: str) -> None:
        self.set_setting("resume", item_id)

    # --- reading

    def state(self, item_id: str) -> ItemState:
        return self.states().get(self.current(item_id), ItemState(self.current(item_id)))

    def states(self) -> dict[str, ItemState]:
        """By present id. What was recorded under an old id of an item is joined to it."""
        joined: dict[str, ItemState] = {}
        for row in self._connection.execute(
            "SELECT item, best, passed, attempts, position, hints, gave_up, seen_at FROM item_state ORDER BY seen_at"
        ):
            item = self.current(row[0])
            state = ItemState(item, row[1], bool(row[2]), row[3], row[4], row[5], bool(row[6]), row[7])
            joined[item] = _join(joined[item], state) if item in joined else state
        return joined

    def attempts(self, item_id: str | None = None, limit: int | None = None) -> tuple[Attempt, ...]:
        """Newest first."""
        rows = self._connection.execute(
            "SELECT item, kind, correct, score, seconds, at, detail, day, rating FROM attempt "
            "ORDER BY at DESC, number DESC"
        )
        wanted = None if item_id is None else self.current(item_id)
        found: list[Attempt] = []
        for row in rows:
            item = self.current(row[0])
            if wanted is not None and item != wanted:
                continue
            found.append(
                Attempt(item, row[1], bool(row[2]), row[3], row[4], row[5], json.loads(row[6]), row[7], row[8])
            )
            if limit is not None and len(found) >= limit:
                break
        return tuple(found)

    def cards(self) -> dict[str, Card]:
        """By present id: when each answered item comes back."""
        return {self.current(card.item_id): card for card in read_cards(self._connection)}

    def setting(self, key: str, default: str = "") -> str:
        row = self._connection.execute("SELECT value FROM setting WHERE key = ?", (key,)).fetchone()
        return row[0] if row else default

    def resume(self) -> str | None:
        return self.current(self.setting("resume")) or None

    # --- for whoever merges or exports

    def query(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside belongs together, whatever other processes write meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    def names_of(self, item: str) -> tuple[str, ...]:
        """The present id of an item, and those it had before."""
        return (item, *sorted(old for old, now in self._now_called.items() if now == item))

    def transact(self, action: Callable[[sqlite3.Connection], Result], item: str | None = None) -> None:
        """One transaction, about `item`. A full disk or a vanished folder must not end the session: what was committed
        stays in the file, and progress goes on in memory."""
        try:
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                action(self._connection)
        except sqlite3.OperationalError as error:
            if self.path is None:
                raise
            self._go_on_in_memory(error)
            with self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                action(self._connection)
        if item is not None and not self.lasting:
            self.unkept.append(item)

    def _go_on_in_memory(self, error: sqlite3.OperationalError) -> None:
        memory = connect(":memory:", self._minutes, self._now_called)
        try:
            self._connection.backup(memory)
        except sqlite3.Error:
            memory = connect(":memory:", self._minutes, self._now_called)
        notice = (
            f"Progress can no longer be kept in {self.path} ({error}). What was kept until now is safe there; what you "
            "do from now on lasts only until you leave."
        )
        self.lasting = False
        self._connection.close()
        self.path, self._connection = None, memory
        self.notices += (notice,)
        if self.on_notice is not None:
            self.on_notice(notice)

    def current(self, item_id: str) -> str:
        return self._now_called.get(item_id, item_id)


def exercise_id(course: Course, slug: str) -> str:
    """The id under which an exercise's grades are kept, also when no module has an item for it."""
    item = course.exercise_item(slug)
    return item.id if item else f"exercise.{slug}"


def minutes_of(course: Course) -> dict[str, int]:
    """What each item should take, by id."""
    return {item.id: item.minutes for item in course.items()}


def _help_taken(database: sqlite3.Connection, item: str, day: str) -> int:
    row = database.execute("SELECT helped FROM item_state WHERE item = ? AND helped_on = ?", (item, day)).fetchone()
    return int(row[0]) if row else UNAIDED


def _passed_before(database: sqlite3.Connection, item: str, digest: Any) -> bool:
    """Whether the last right answer was this very file."""
    if not digest:
        return False
    row = database.execute(
        "SELECT detail FROM attempt WHERE item = ? AND correct ORDER BY at DESC, number DESC LIMIT 1", (item,)
    ).fetchone()
    return row is not None and json.loads(row[0]).get("sha256") == digest


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
