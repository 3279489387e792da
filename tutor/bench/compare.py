"""Two runs beside each other: what got slower, or faster, by more than the noise of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from grader.ranking import apart, wide
from tutor.bench.record import Record

DRIFT = 0.03  # of the measured limit between two runs, from which the device itself may have changed


class NotComparable(ValueError):
    """Why the two runs say nothing about each other."""


@dataclass(frozen=True)
class Change:
    """One size that both runs have. `ratio`: the new median over the old one."""

    exercise: str
    case: str
    old_us: float
    new_us: float
    state: Literal["slower", "faster", "same", "too_noisy"]

    @property
    def ratio(self) -> float:
        return self.new_us / self.old_us


@dataclass(frozen=True)
class Comparison:
    changes: tuple[Change, ...]
    missing: tuple[str, ...]  # sizes of the old run that have no figure now
    notes: tuple[str, ...]

    def of(self, state: str) -> list[Change]:
        """The largest change first."""
        found = [change for change in self.changes if change.state == state]
        return sorted(found, key=lambda change: change.ratio, reverse=state == "slower")


def compare(old: Record, new: Record) -> Comparison:
    """Slower or faster: the spreads (p20 to p80) of the two runs do not overlap. Too noisy to say: one of them is wide.

    Raises NotComparable.
    """
    if old.model or new.model:
        raise NotComparable("a model has no noise: only measured runs can be compared")
    if old.device != new.device:
        raise NotComparable(f"the earlier run is of {old.device}, this one of {new.device}")
    before = {(name, str(row["case"])): row for name, row in old.rows()}
    after = {(name, str(row["case"])): row for name, row in new.rows()}
    ran = {result.exercise for result in new.results}
    changes = tuple(_change(*key, before[key], row) for key, row in after.items() if key in before)
    missing = tuple(f"{name}, {case}" for name, case in before if name in ran and (name, case) not in after)
    return Comparison(changes, missing, tuple(_notes(old, new, before, after)))


def _change(name: str, case: str, old: dict[str, Any], new: dict[str, Any]) -> Change:
    before, after = _spread(old), _spread(new)
    state: Literal["slower", "faster", "same", "too_noisy"] = "same"
    if wide(before) or wide(after):
        state = "too_noisy"
    elif apart(before, after):
        state = "slower" if after[0] > before[0] else "faster"
    return Change(name, case, before[0], after[0], state)


def _spread(row: dict[str, Any]) -> list[float]:
    return [float(row[key]) for key in ("median_us", "p20_us", "p80_us")]


def _notes(old: Record, new: Record, before: dict[Any, Any], after: dict[Any, Any]) -> list[str]:
    notes = []
    if old.whose != new.whose:
        notes.append(f"the earlier run is of {old.whose}, this one of {new.whose}")
    changed = [
        f"{name} {old.versions.get(name)} then, {v} now"
        for name, v in new.versions.items()
        if v != old.versions.get(name)
    ]
    if changed:
        notes.append(f"other versions: {'; '.join(changed)}")
    drifts = [_drift(before[key], row) for key, row in after.items() if key in before]
    worst = max((d for d in drifts if d is not None), key=abs, default=0.0)
    if abs(worst) > DRIFT:
        off = f"the limit measured beside it is {100 * worst:+.0f} % off the earlier run's"
        notes.append(f"{off}: the device may differ, not the kernels")
    return notes


def _drift(old: dict[str, Any], new: dict[str, Any]) -> float | None:
    limits: Sequence[dict[str, Any]] = [row.get("limit_measured") or {} for row in (old, new)]
    for name in ("matmul_tflop_per_s", "copy_gb_per_s"):
        if all(limit.get(name) for limit in limits):
            return float(limits[1][name]) / float(limits[0][name]) - 1
    return None
