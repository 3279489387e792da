"""Two compiles compared: the figures, then a stage line by line, as pairs that stand side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from tutor.compiler.compilation import Kernel, StageText

CONTEXT = 3  # equal lines kept around a change
NUMBER_NAMES = {
    "registers": "registers a thread",
    "spill_bytes": "spilled bytes a thread",
    "shared_bytes": "shared memory, bytes",
    "occupancy": "occupancy",
    "num_warps": "warps",
    "num_stages": "stages",
    "instructions": "instructions",
}


def compared_numbers(left: Kernel, right: Kernel) -> list[tuple[str, str, str]]:
    """What is measured, then the two figures; a dash where there is none. First the resources, then what is counted."""
    rows = [
        (words, _figure(name, left.numbers.get(name)), _figure(name, right.numbers.get(name)))
        for name, words in NUMBER_NAMES.items()
    ]
    counts = dict(left.counts), dict(right.counts)
    for words in dict.fromkeys([*counts[0], *counts[1]]):
        rows.append((words, str(counts[0].get(words, 0)), str(counts[1].get(words, 0))))
    return rows


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "-"
    return f"{100 * value:.3g}%" if name == "occupancy" else str(value)


_NUMBERED = re.compile(
    r"/\*[0-9a-f]{4,}\*/|%[a-z]*\d+|(%\w+?)_\d+\b|\bU?[RP]\d+\b|\$?\.?L_?_?[A-Za-z]*\d+(?:_\d+)?|\b[vs]\d+\b|\b[vs]\[\d+:\d+\]"
)


def without_numbers(row: str) -> str:
    """A row for comparing: which register holds a value is not what makes two versions differ."""
    return _NUMBERED.sub(lambda found: found[1] or "#", row).strip()


@dataclass(frozen=True)
class Pair:
    """A row of both sides. `sort`: same, changed, less (left only), more (right only), or none of a comparison's rows.

    `joined` is what one column shows in place of both.
    """

    sort: str
    left: str = ""
    right: str = ""
    joined: str = ""

    @property
    def differs(self) -> bool:
        return self.sort in ("changed", "less", "more")


def pairs(titles: tuple[str, str], kernels: tuple[Kernel, Kernel], stages: tuple[StageText, StageText]) -> list[Pair]:
    """Titles, figures, and the stage."""
    left, right = titles
    heads = Pair("title", stages[0].name, stages[1].name, stages[0].name)
    figures = [Pair("title", left, right, f"{left} → {right}"), *_figures(*kernels)]
    return [*figures, Pair("title"), heads, *diff(stages[0].rows, stages[1].rows)]


def summary(rows: Sequence[Pair]) -> str:
    """How many lines of the stage differ."""
    sorts = [pair.sort for pair in rows if not pair.joined]
    if not any(pair.differs for pair in rows):
        return "Nothing differs."
    return (
        f"* differs. Lines: {sorts.count('changed')} changed, {sorts.count('less')} gone, {sorts.count('more')} new, "
        "register numbers aside."
    )


def _figures(left: Kernel, right: Kernel) -> Iterator[Pair]:
    figures = compared_numbers(left, right)
    width = max(len(words) for words, _, _ in figures)
    for words, a, b in figures:
        joined = f"{words:<{width}}  {a}" + (f" → {b}" if a != b else "")
        yield Pair("changed" if a != b else "same", f"{words:<{width}}  {a}", f"{words:<{width}}  {b}", joined)


def diff(left: Sequence[str], right: Sequence[str]) -> Iterator[Pair]:
    """Both sides in step, register numbers apart; long equal stretches are one row that says how many."""
    bare = [without_numbers(row) for row in left], [without_numbers(row) for row in right]
    matcher = SequenceMatcher(None, *bare)
    blocks = matcher.get_opcodes()
    for number, (tag, a, b, c, d) in enumerate(blocks):
        if tag == "equal":
            same = list(zip(left[a:b], right[c:d], strict=True))
            yield from _equal(same, first=number == 0, last=number == len(blocks) - 1)
            continue
        both = min(b - a, d - c)
        for n in range(both):  # the matcher passes over frequent lines: some of these are equal
            yield Pair("same" if bare[0][a + n] == bare[1][c + n] else "changed", left[a + n], right[c + n])
        yield from (Pair("less", left[n]) for n in range(a + both, b))
        yield from (Pair("more", "", right[n]) for n in range(c + both, d))


def _equal(same: Sequence[tuple[str, str]], *, first: bool, last: bool) -> Iterator[Pair]:
    before, after = 0 if first else CONTEXT, 0 if last else CONTEXT
    skipped = len(same) - before - after
    if skipped <= 1:
        before, after, skipped = len(same), 0, 0
    yield from (Pair("same", left, right) for left, right in same[:before])
    if skipped:
        words = f"    … {skipped} equal lines …"
        yield Pair("title", words, words, words)
    yield from (Pair("same", left, right) for left, right in same[len(same) - after :])
