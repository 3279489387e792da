"""docs/coverage.md: every item that it names exists, with that page, and every statement names one."""

from __future__ import annotations

import re
from pathlib import Path

from tutor.course.loader import load
from tutor.course.model import Lesson

TABLE = Path(__file__).resolve().parents[1] / "docs" / "coverage.md"


def rows() -> list[list[str]]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not row[0].startswith(("---", "statement"))]


def test_every_statement_names_items_that_exist_with_their_pages() -> None:
    course = load()
    ids = {item.id: item for item in course.items()}
    wrong = []
    assert len(rows()) > 150
    for row in rows():
        assert len(row) == 3, row
        names = row[1].split()
        if not names:
            wrong.append(f"no item: {row[0]}")
        for name in [*names, *re.findall(r"\bm\d\d\.[\w.:-]+", row[2])]:
            item_id, _, page = name.partition(":")
            item = ids.get(item_id)
            if item is None:
                wrong.append(f"no such item: {name} ({row[0]})")
            elif page and not (isinstance(item, Lesson) and 1 <= int(page) <= len(item.pages)):
                wrong.append(f"no such page: {name} ({row[0]})")
    assert wrong == []


def test_no_statement_stands_twice_in_one_table() -> None:
    for part in TABLE.read_text(encoding="utf-8").split("\n## ")[1:]:
        said = [line.split("|")[1].strip() for line in part.splitlines() if line.startswith("| ")]
        assert len(said) == len(set(said)), part.splitlines()[0]
