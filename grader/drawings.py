"""Inputs and expected outputs, kept between grades: references in float64 cost more than many a grade."""

from __future__ import annotations

import threading
from collections import OrderedDict

import torch

from grader.expectation import Values, draw
from grader.problem import Case, Problem

BUDGET = 192 << 20  # bytes of tensors kept


class Drawings:
    """Every drawing of every case, the least recently used forgotten first.

    A problem that was loaded anew is another object: what was drawn for its old version is never found again.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget, self.held = budget, 0
        self._lock = threading.Lock()
        # the problem is kept in the value too: no other object may get its id
        self._kept: OrderedDict[tuple[int, str, int, int], tuple[Problem, Values, int]] = OrderedDict()

    def values(self, problem: Problem, case: Case, seed: int, drawing: int = 0) -> Values:
        """The drawing, made at most once while it is kept. Nobody may change its tensors."""
        key = (id(problem), case.name, seed, drawing)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
            values = draw(problem, case, seed, drawing)
            size = _bytes(values)
            self._kept[key] = (problem, values, size)
            self.held += size
            while self.held > self.budget and len(self._kept) > 1:
                self.held -= self._kept.popitem(last=False)[1][2]
            return values


def _bytes(values: Values) -> int:
    tensors = [a for a in values.args if isinstance(a, torch.Tensor)]
    tensors += [t for e in values.expected for t in vars(e).values() if isinstance(t, torch.Tensor)]
    return sum(t.untyped_storage().nbytes() for t in tensors)
