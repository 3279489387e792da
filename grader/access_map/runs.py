"""Many numbers in few: runs [start], [start, step, count] or [start, step, count, step between rows, rows]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Run = Sequence[int]


def compressed(values: Any) -> list[list[int]]:
    """`values`: a NumPy array of whole numbers, in their order. Equal rows of equal distance become one run."""
    return _rows(_stretches(values))


def expanded(runs: Sequence[Run]) -> Iterator[int]:
    """The numbers again, in their order."""
    for run in runs:
        start, step, count, between, rows = _filled(run)
        for row in range(rows):
            first = start + row * between
            yield from range(first, first + step * count, step) if step else [first] * count


def size_of(runs: Sequence[Run]) -> int:
    """How many numbers they stand for."""
    return sum(filled[2] * filled[4] for filled in map(_filled, runs))


def _filled(run: Run) -> tuple[int, int, int, int, int]:
    start, step, count, between, rows = (*run, *(1, 1, 0, 1)[len(run) - 1 :])
    return start, step, count, between, rows


def _stretches(values: Any) -> list[tuple[int, int, int]]:
    """Start, step and count of each stretch of equal steps, greedily from the front."""
    import numpy as np

    numbers = np.asarray(values, dtype=np.int64)
    n = numbers.size
    steps = np.diff(numbers)
    changes = np.flatnonzero(np.diff(steps)) + 1  # places where the step is another than the one before
    ends = iter([*changes.tolist(), n - 1])
    found, i, end = [], 0, next(ends)
    while i < n:
        if i == n - 1:
            found.append((int(numbers[i]), 1, 1))
            break
        while end <= i:
            end = next(ends)
        found.append((int(numbers[i]), int(steps[i]), end - i + 1))
        i = end + 1
    return found


def _rows(stretches: list[tuple[int, int, int]]) -> list[list[int]]:
    """Neighbouring stretches alike but for their start, at equal distances, as one."""
    found: list[list[int]] = []
    i = 0
    while i < len(stretches):
        start, step, count = stretches[i]
        j = i + 1
        between = stretches[j][0] - start if j < len(stretches) else 0
        while j < len(stretches) and stretches[j] == (start + (j - i) * between, step, count):
            j += 1
        if j - i > 1:
            found.append([start, step, count, between, j - i])
        else:
            found.append([start] if count == 1 else [start, step, count])
        i = j
    return found
