"""What in a launch depends on timing: the interpreter runs programs one after another, a GPU runs them together.

Looks at the recorded accesses of one launch, with NumPy only. Two things are found:

- One address that two programs use without an atomic, at least one of them writing a value that changes something.
- A load of what the same program stored before, at another place of its block, with no `tl.debug_barrier()` between:
  on a GPU another thread of the program stores than loads. (A scalar that is stored and loaded again is stored by one
  thread and loaded by all; whether the others use it cannot be told here, so it is let pass.)

Both rules follow the values, so that programs that store the same value do not count.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from grader.watch import Access, Extent, LaunchTrace

LOAD, STORE, ATOMIC = range(3)


@dataclass(frozen=True)
class Conflict:
    """One address, and the accesses that nothing orders."""

    cause: str  # race_between_programs, missing_barrier
    name: str  # of the kernel's argument, as the kernel calls it
    index: int  # element of that argument
    programs: tuple[tuple[int, ...], ...]
    what: str  # stores and stores, stores and loads, …
    line: int | None  # of the access at fault


def described(launches: list[LaunchTrace]) -> dict[str, Any]:
    """The first conflict of a call's launches as JSON, which atomics there are, and what they may be for."""
    found = None
    for launch in launches:
        found = conflict(launch)
        if found is not None:
            break
    locks = any(launch.locks for launch in launches)
    counters = any(launch.counters for launch in launches)
    atomics = any(access.kind == "atomic" for launch in launches for access in launch.accesses)
    return {"first": asdict(found) if found else None, "locks": locks, "counters": counters, "atomics": atomics}


def conflict(launch: LaunchTrace) -> Conflict | None:
    """The first conflict of a launch, or None. Where atomics order programs, only the barrier rule is looked at."""
    accesses = [access for access in launch.accesses if access.addresses.size]
    if not any(access.kind != "load" for access in accesses):
        return None
    found = None
    if not launch.locks and not launch.counters:
        found = _between_programs(launch, _Lanes(accesses))
    return found or _within_a_program(launch, accesses)


class _Lanes:
    """All lanes of a launch as flat arrays, in the order in which the interpreter touched them."""

    def __init__(self, accesses: list[Access]) -> None:
        counts = [access.addresses.size for access in accesses]
        kinds = {"load": LOAD, "store": STORE, "atomic": ATOMIC}
        self.address = np.concatenate([access.addresses for access in accesses])
        self.program = np.repeat([access.program for access in accesses], counts)
        self.kind = np.repeat([kinds[access.kind] for access in accesses], counts)
        self.line = np.repeat([access.line for access in accesses], counts)
        self.value = np.concatenate([access.values for access in accesses])
        self.changes = self.value != np.concatenate([access.before for access in accesses])
        self._share()

    def _share(self) -> None:
        """Keep the addresses that more than one program touches, grouped, in order within each."""
        order = np.argsort(self.address, kind="stable")
        address, program = self.address[order], self.program[order]
        starts = np.flatnonzero(np.r_[True, address[1:] != address[:-1]])
        lowest, highest = np.minimum.reduceat(program, starts), np.maximum.reduceat(program, starts)
        lengths = np.diff(np.r_[starts, address.size])
        order = order[np.repeat(lowest != highest, lengths)]
        for name in ("address", "program", "kind", "line", "value", "changes"):
            setattr(self, name, getattr(self, name)[order])
        self.group = np.cumsum(np.r_[True, self.address[1:] != self.address[:-1]]) - 1 if order.size else order


def _between_programs(launch: LaunchTrace, lanes: _Lanes) -> Conflict | None:
    if not lanes.address.size:
        return None
    loads, stores, atomics = (lanes.kind == kind for kind in (LOAD, STORE, ATOMIC))
    before_own_store = loads & ~_after_own(lanes, stores)
    last_own_store = stores & _last_own(lanes, stores)
    rules = (
        ("one stores what the other updates with an atomic", stores, atomics),
        ("one stores what the other loads", stores & lanes.changes, before_own_store),
        ("one updates with an atomic what the other loads", atomics, loads),
        ("both store, and not the same value", last_own_store, last_own_store),
    )
    for what, one, other in rules:
        pair = _pair(lanes, one, other, differ=one is other)
        if pair is not None:
            first, second = pair
            name, index = _element(launch.extents, int(lanes.address[first]))
            programs = tuple(_index(int(lanes.program[i]), launch.grid) for i in (first, second))
            blamed = second if lanes.kind[first] == ATOMIC else first  # an atomic is not at fault
            return Conflict("race_between_programs", name, index, programs, what, int(lanes.line[blamed]) or None)
    return None


def _pair(lanes: _Lanes, one: Any, other: Any, differ: bool) -> tuple[int, int] | None:
    """Two lanes of two programs at one address, the first of `one`, the second of `other`; with unequal values if so
    asked, where each program has one lane at an address."""
    groups = int(lanes.group[-1]) + 1
    both = np.zeros(groups, dtype=bool)
    both[lanes.group[one]] = True
    held = np.zeros(groups, dtype=bool)
    held[lanes.group[other]] = True
    used = one | other
    subject = lanes.value if differ else lanes.program
    lowest = np.full(groups, np.iinfo(subject.dtype).max, dtype=subject.dtype)
    highest = np.full(groups, np.iinfo(subject.dtype).min, dtype=subject.dtype)
    np.minimum.at(lowest, lanes.group[used], subject[used])
    np.maximum.at(highest, lanes.group[used], subject[used])
    found = np.flatnonzero(both & held & (lowest < highest))
    if not found.size:
        return None
    inside = lanes.group == found[0]
    for first in np.flatnonzero(inside & one):
        apart = inside & other & (lanes.program != lanes.program[first])
        if differ:
            apart &= lanes.value != lanes.value[first]
        if apart.any():
            return int(first), int(np.flatnonzero(apart)[0])
    return None


def _own(lanes: _Lanes) -> Any:
    """A number for each pair of address and program."""
    return lanes.group.astype(np.int64) * (int(lanes.program.max()) + 1) + lanes.program


def _after_own(lanes: _Lanes, stores: Any) -> Any:
    """Which lanes come after a store of their own program to their address."""
    own = _own(lanes)
    place = np.arange(own.size)
    kinds, inverse = np.unique(own, return_inverse=True)
    first = np.full(kinds.size, own.size)
    np.minimum.at(first, inverse[stores], place[stores])
    return place > first[inverse]


def _last_own(lanes: _Lanes, stores: Any) -> Any:
    """Which stores are the last of their program to their address."""
    own = _own(lanes)
    place = np.arange(own.size)
    kinds, inverse = np.unique(own, return_inverse=True)
    last = np.full(kinds.size, -1)
    np.maximum.at(last, inverse[stores], place[stores])
    return stores & (place == last[inverse])


def _within_a_program(launch: LaunchTrace, accesses: list[Access]) -> Conflict | None:
    """A load at another place of the block than the store before it, in the same program and with no barrier."""
    stored: list[Access] = []
    owner = (-1, -1)
    for access in accesses:
        if (access.program, access.epoch) != owner:
            stored, owner = [], (access.program, access.epoch)
        if access.kind == "store":
            stored.append(access)
        elif access.kind == "load" and stored:
            address = _loaded_elsewhere(stored, access)
            if address is not None:
                name, index = _element(launch.extents, address)
                program = _index(access.program, launch.grid)
                return Conflict("missing_barrier", name, index, (program,), "stores, then loads", access.line or None)
    return None


def _loaded_elsewhere(stored: list[Access], load: Access) -> int | None:
    """The first address that the newest store before put there from another lane. The same lane of both is taken for
    the same thread: one pointer has one layout."""
    addresses, lanes = load.addresses, load.lanes
    for store in reversed(stored):
        order = np.argsort(store.addresses, kind="stable")
        place = order[np.searchsorted(store.addresses[order], addresses, side="right") - 1]
        hit = store.addresses[place] == addresses
        elsewhere = hit & (store.lanes[place] != lanes) & (store.values[place] != store.before[place])
        if elsewhere.any():
            return int(addresses[elsewhere].min())
        addresses, lanes = addresses[~hit], lanes[~hit]
    return None


def _element(extents: list[Extent], address: int) -> tuple[str, int]:
    """Which argument, and which of its elements; of several that hold the address the narrowest."""
    holding = [extent for extent in extents if extent.low <= address < extent.high]
    if not holding:
        return "memory that is no argument", 0
    extent = min(holding, key=lambda e: e.high - e.low)
    return extent.name, (address - extent.origin) // extent.itemsize


def _index(place: int, grid: tuple[int, ...]) -> tuple[int, ...]:
    """The program id of a place in the grid."""
    return tuple(int(i) for i in np.unravel_index(place, grid))
