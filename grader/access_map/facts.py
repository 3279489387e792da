"""In the runner, after the call: what was recorded, as JSON of the form of `grader.access_map.model.Recorded`.

Addresses are taken relative to a tensor's element 0, which counts as the start of a 32-byte sector: allocators on a GPU
align tensors further than that, the memory of this process need not be like theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grader.access_map.recorder import Lanes, MapRecorder, Place, SeenTensor
from grader.access_map.runs import compressed

SECTOR = 32  # bytes; what an NVIDIA GPU moves at least
GROUP = 32  # lanes; as many as a warp has threads


class Elements:
    """From offsets in memory to elements of a tensor, row by row through its shape."""

    def __init__(self, seen: SeenTensor) -> None:
        tensor = seen.tensor
        self.itemsize = tensor.element_size()
        self.origin, self.low, self.high = seen.origin, seen.low, seen.high
        offsets = np.zeros(1, dtype=np.int64)
        for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
            steps = np.arange(min(n, 1) if stride == 0 else n, dtype=np.int64) * stride
            offsets = (offsets[:, None] + steps[None, :]).reshape(-1)
        self.offsets, self.elements = np.unique(offsets, return_index=True)
        self.count = offsets.size

    def of(self, addresses: Any) -> tuple[Any, Any]:
        """For each address its element, -1 where there is none; and its offset, in elements of memory."""
        offsets, rest = np.divmod(addresses - self.origin, self.itemsize)
        if not self.offsets.size:
            return np.full(addresses.shape, -1), offsets
        near = np.minimum(np.searchsorted(self.offsets, offsets), self.offsets.size - 1)
        hit = (self.offsets[near] == offsets) & (rest == 0)
        return np.where(hit, self.elements[near], -1), offsets


def recorded(recorder: MapRecorder, parameters: Sequence[str], args: Sequence[Any], results: Sequence[Any]) -> dict:
    """`parameters` and `args` of the entry, `results` as far as it came back."""
    elements = [Elements(seen) for seen in recorder.tensors]
    tallies = [_Tally(each, _programs(recorder)) for each in elements]
    sites, loaded, stored = [], 0, 0
    for place, visits in recorder.places.items():
        tensor = place.tensor
        own = elements[tensor] if tensor is not None else None
        site = _site(place, visits, own, tallies[tensor] if tensor is not None else None)
        moved = (site["active"] - site["outside"]) * place.itemsize
        loaded += moved if place.kind in ("load", "atomic") else 0
        stored += moved if place.kind in ("store", "atomic") else 0
        sites.append(site)
    named = dict(zip(parameters, args, strict=False))
    tensors = [
        _tensor(seen, own, named, results) | {"facts": tally.facts()}
        for seen, own, tally in zip(recorder.tensors, elements, tallies, strict=True)
    ]
    bad = recorder.bad
    return {
        "launches": [{"kernel": kernel, "grid": grid} for kernel, grid in recorder.launches],
        "tensors": tensors,
        "sites": sites,
        "loaded_bytes": loaded,
        "stored_bytes": stored,
        "full": recorder.full,
        "bad": bad
        and {
            "kind": bad.access,
            "tensor": bad.name,
            "index": bad.index,
            "end": bad.count,
            "program": bad.program,
            "line": bad.line,
        },
    }


def _programs(recorder: MapRecorder) -> int:
    return max((int(np.prod(grid)) for _, grid in recorder.launches if grid), default=1)


def _tensor(seen: SeenTensor, own: Elements, named: dict[str, Any], results: Sequence[Any]) -> dict[str, Any]:
    role, parameter = "allocated", ""
    if any(_holds(value, seen.origin) for value in results):
        role = "result"
    for name, value in named.items():
        if _holds(value, seen.origin):
            role, parameter = "argument", name
            break
    return {
        "names": seen.names,
        "role": role,
        "parameter": parameter,
        "shape": list(seen.tensor.shape),
        "strides": list(seen.tensor.stride()),
        "dtype": str(seen.tensor.dtype).removeprefix("torch."),
        "itemsize": own.itemsize,
        "low": (own.low - own.origin) // own.itemsize,
        "high": (own.high - own.origin) // own.itemsize,
    }


def _holds(value: Any, address: int) -> bool:
    """Whether a tensor's memory holds this address."""
    if not hasattr(value, "data_ptr") or not value.numel():
        return False
    span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
    first = value.data_ptr()
    return bool(first <= address < first + span * value.element_size())


class _Tally:
    """Which program touched which element of one tensor; the pairs as elements and programs, over launches."""

    def __init__(self, own: Elements, programs: int) -> None:
        self.own, self.programs = own, programs
        self.pairs: dict[str, list[tuple[Any, int]]] = {"load": [], "store": [], "atomic": []}

    def add(self, kind: str, elements: Any, launch: int, program: int) -> None:
        self.pairs[kind].append((elements, launch * self.programs + program))

    def facts(self) -> dict[str, Any]:
        loads, stores, atomics = (self._of(kind) for kind in ("load", "store", "atomic"))
        times = self._most(*loads)
        owners, shared = self._shared(*stores)
        facts: dict[str, Any] = {
            "loaded": int(np.unique(loads[0]).size),
            "repeated": int(np.unique(times[0][times[1] > 1]).size),
            "most_times": int(times[1].max(initial=0)),
            "most_programs": int(self._most(*self._once(*loads))[1].max(initial=0)),
            "overlap": int(shared.size),
            "updated": int(self._shared(*atomics)[1].size),
        }
        written = np.unique(np.r_[stores[0], atomics[0]])
        facts["stored"] = int(written.size)
        if shared.size:
            first = int(shared[0])
            facts |= {"overlap_at": first, "overlap_programs": np.unique(owners[first] % self.programs)[:8].tolist()}
        if 0 < written.size < self.own.count:
            missing = np.ones(self.own.count, dtype=bool)
            missing[written] = False
            facts["unstored_at"] = int(np.flatnonzero(missing)[0])
        return facts

    def _of(self, kind: str) -> tuple[Any, Any]:
        pairs = self.pairs[kind]
        if not pairs:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        return np.concatenate([e for e, _ in pairs]), np.repeat([p for _, p in pairs], [e.size for e, _ in pairs])

    def _once(self, elements: Any, programs: Any) -> tuple[Any, Any]:
        """Each pair of element and program once."""
        pair = np.unique(programs * self.own.count + elements) if self.own.count else programs
        return (pair % self.own.count, pair // self.own.count) if self.own.count else (elements, programs)

    def _most(self, elements: Any, programs: Any) -> tuple[Any, Any]:
        """Elements of a launch, and how often each occurs in it."""
        key, times = np.unique(programs // self.programs * max(1, self.own.count) + elements, return_counts=True)
        return key % max(1, self.own.count), times

    def _shared(self, elements: Any, programs: Any) -> tuple[dict[int, Any], Any]:
        """The elements that several programs of one launch touch, in order; of the first, which programs."""
        elements, programs = self._once(elements, programs)
        key = programs // self.programs * max(1, self.own.count) + elements
        keys, times = np.unique(key, return_counts=True)
        found = np.unique(keys[times > 1] % max(1, self.own.count))
        if not found.size:
            return {}, found
        first = keys[times > 1][keys[times > 1] % self.own.count == found[0]][0]
        return {int(found[0]): programs[key == first]}, found


def _site(place: Place, visits: list[Lanes], own: Elements | None, tally: _Tally | None) -> dict[str, Any]:
    programs: dict[int, list[dict[str, Any]]] = {}
    counts = {"lanes": 0, "active": 0, "outside": 0, "between": 0}
    for lanes in visits:
        here = slice(None) if lanes.here is None else lanes.here
        addresses, active = lanes.addresses[here], lanes.active[here]
        elements, offsets = _of(own, addresses)
        none = elements < 0
        # as the bounds check does: a whole access of `itemsize` bytes lies inside, or is outside
        outside = none & ((addresses < own.low) | (addresses + place.itemsize > own.high)) if own else none
        counts["lanes"] += active.size
        counts["active"] += int(active.sum())
        counts["outside"] += int((active & outside).sum())
        counts["between"] += int((active & none & ~outside).sum())
        programs.setdefault(lanes.program, []).append(_visit(active, elements, offsets, none, own is not None))
        if tally is not None:
            tally.add(place.kind, elements[active & ~none], place.launch, lanes.program)
    return {
        "launch": place.launch,
        "kind": place.kind,
        "line": place.line,
        "tensor": place.tensor,
        "block": list(place.block),
        "itemsize": place.itemsize,
        "programs": [{"program": program, "visits": found} for program, found in programs.items()],
        "order": _order(place, visits, own),
        **counts,
    }


def _of(own: Elements | None, addresses: Any) -> tuple[Any, Any]:
    return own.of(addresses) if own is not None else (np.full(addresses.shape, -1), addresses)


def _visit(active: Any, elements: Any, offsets: Any, none: Any, known: bool) -> dict[str, Any]:
    """Only what is not empty. Addresses of memory that is no argument mean nothing to a reader, and are left out."""
    parts = {"at": elements[active & ~none], "masked": elements[~active & ~none]}
    if known:
        parts |= {"beyond": offsets[active & none], "masked_beyond": offsets[~active & none]}
    return {name: compressed(part) for name, part in parts.items() if part.size}


# -- the order of addresses over lanes ------------------------------------------------------------------------------


def _order(place: Place, visits: list[Lanes], own: Elements | None) -> dict[str, Any]:
    origin = own.origin if own is not None else 0
    axes = [{"size": n, **_axis(place, visits, axis)} for axis, n in enumerate(place.block) if n > 1]
    last = axes[-1] if axes else None
    word, step = "one", None
    if last is not None:
        step = last["step"]
        named = {1: "contiguous", -1: "backwards", 0: "broadcast"}
        word = named.get(step, "strided") if step is not None else "scattered" if last["differs"] else "masked"
    counted = [_sectors(lanes, origin, place.itemsize) for lanes in visits]
    whole = [found for found in counted if found[4]]
    lanes, groups, sectors, fewest = (sum(found[i] for found in whole or counted) for i in range(4))
    sums = {"lanes": lanes, "groups": groups, "sectors": sectors, "fewest": fewest}
    return {"word": word, "step": step, "axes": axes, **sums}


def _axis(place: Place, visits: list[Lanes], axis: int) -> dict[str, Any]:
    """The step between neighbouring active lanes along one axis of the block, where it is always the same."""
    steps: set[int] = set()
    for lanes in visits:
        block = lanes.addresses.reshape(place.block)
        used = lanes.active if lanes.here is None else lanes.active & lanes.here
        both = used.reshape(place.block)
        both = np.take(both, range(1, place.block[axis]), axis) & np.take(both, range(place.block[axis] - 1), axis)
        steps |= set(np.unique(np.diff(block, axis=axis)[both])[:2].tolist())
        if len(steps) > 1:
            return {"step": None, "differs": True}
    bytes_ = steps.pop() if steps else None
    if bytes_ is None or bytes_ % place.itemsize:
        return {"step": None, "differs": bytes_ is not None}
    return {"step": bytes_ // place.itemsize, "differs": False}


def _sectors(lanes: Lanes, origin: int, size: int) -> tuple[int, int, int, int, bool]:
    """Lanes, groups, sectors, fewest sectors, and whether every counted group has all of its lanes active.

    Where whole groups are there, only they are counted."""
    used = lanes.active if lanes.here is None else lanes.active & lanes.here
    group = np.arange(used.size) // GROUP
    full = np.bincount(group, weights=used) == np.bincount(group)
    whole = bool(full.any())
    if whole:
        used = used & full[group]
    first = (lanes.addresses[used] - origin) // SECTOR
    last = (lanes.addresses[used] - origin + size - 1) // SECTOR
    groups = int(np.unique(group[used]).size)
    touched = np.unique(np.r_[np.c_[group[used], first], np.c_[group[used], last]], axis=0).shape[0]
    if not groups:
        return 0, 0, 0, 0, False
    fewest = max(int(np.unique(np.r_[first, last]).size), groups)
    return int(used.sum()), groups, int(touched), fewest, whole
