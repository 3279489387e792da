"""Two versions of a text, row beside row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest


@dataclass(frozen=True)
class Version:
    name: str  # stub, backup, solution
    words: str  # what it is, as in "against the stub"
    text: str


@dataclass(frozen=True)
class Row:
    """A line of each side with its number from 1; None where a side has none."""

    left: tuple[int, str] | None
    right: tuple[int, str] | None
    same: bool


@dataclass(frozen=True)
class Gap:
    """Rows left out, as both sides are the same there."""

    rows: int


def compared(old: str, new: str) -> list[Row]:
    left, right = list(enumerate(old.splitlines(), 1)), list(enumerate(new.splitlines(), 1))
    texts = [text for _, text in left], [text for _, text in right]
    rows = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        rows += [Row(one, other, tag == "equal") for one, other in zip_longest(left[i1:i2], right[j1:j2])]
    return rows


def near_changes(rows: Sequence[Row], around: int) -> list[Row | Gap]:
    """The changed rows with `around` rows before and after each."""
    changed = [index for index, row in enumerate(rows) if not row.same]
    kept = {near for index in changed for near in range(index - around, index + around + 1)}
    shown: list[Row | Gap] = []
    for index, row in enumerate(rows):
        if index in kept:
            shown.append(row)
        elif shown and isinstance(shown[-1], Gap):
            shown[-1] = Gap(shown[-1].rows + 1)
        else:
            shown.append(Gap(1))
    return shown


def blocks(rows: Sequence[Row | Gap]) -> list[range]:
    """Where changed rows stand, each run of them one change."""
    found: list[range] = []
    for index, row in enumerate(rows):
        if isinstance(row, Gap) or row.same:
            continue
        if found and found[-1].stop == index:
            found[-1] = range(found[-1].start, index + 1)
        else:
            found.append(range(index, index + 1))
    return found
