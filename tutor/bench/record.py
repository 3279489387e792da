"""What one bench run found, as JSON that a later run can be compared with."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1


class NotARecord(ValueError):
    """The file is no bench record; the message says what to give."""


@dataclass(frozen=True)
class Result:
    """One exercise: a row for each size, or why there is none."""

    exercise: str
    rows: tuple[dict[str, Any], ...]
    reason: str = ""
    sha256: str = ""  # of the file that was timed


@dataclass(frozen=True)
class Record:
    """`model`: whether every row was modelled; else every row was measured. `whose`: solutions or mine."""

    device: str
    model: bool
    whose: str
    date: str
    versions: dict[str, Any]
    results: tuple[Result, ...]

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Exercise and row, of every size that has a figure."""
        for result in self.results:
            for row in result.rows:
                if not row.get("reason"):
                    yield result.exercise, row

    def as_json(self) -> dict[str, Any]:
        results = [vars(result) | {"rows": list(result.rows)} for result in self.results]
        return {"schema": SCHEMA, "kind": "bench", **vars(self), "results": results}


def record_of(answers: Sequence[tuple[str, dict[str, Any] | str]], whose: str) -> Record:
    """`answers`: exercise and what the grader answered, or the text of its failure."""
    given = [data for _, data in answers if isinstance(data, dict)]
    first: dict[str, Any] = given[0] if given else {}
    if any((data["model"], data["device"]) != (first["model"], first["device"]) for data in given):
        raise ValueError("measured and modelled rows, or two devices, in one run")
    return Record(
        str(first.get("device", "none")),
        bool(first.get("model")),
        whose,
        datetime.date.today().isoformat(),
        dict(first.get("versions") or {}),
        tuple(
            Result(name, tuple(data["rows"]), sha256=str(data.get("sha256", "")))
            if isinstance(data, dict)
            else Result(name, (), data)
            for name, data in answers
        ),
    )


def read(path: Path) -> Record:
    """Raises NotARecord and OSError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["kind"] != "bench" or data["schema"] != SCHEMA:
            raise KeyError("kind")
        results = tuple(
            Result(r["exercise"], tuple(r["rows"]), r.get("reason", ""), r.get("sha256", "")) for r in data["results"]
        )
        return Record(data["device"], data["model"], data["whose"], data["date"], data["versions"], results)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotARecord(f"{path} is no record of `triton-prep bench`: give the JSON file of an earlier run") from error
