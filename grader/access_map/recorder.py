"""In the runner: every load, store and atomic of one call in the interpreter, lane by lane, masked lanes included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_LANES = 2_000_000  # recorded in one call; a call that touches more is ended
MOST_VISITS = 20_000
BESIDE = 4096  # bytes next to a tensor that count as an overrun of it, for pointers made from integers


class MapFull(Exception):
    """The call touches more than a map holds."""


@dataclass
class SeenTensor:
    """A kernel argument. The tensor is held, so that nothing else comes to lie at its address in this call."""

    tensor: Any
    low: int  # addresses
    high: int
    origin: int
    names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """One access in the source, to one tensor, in one launch."""

    launch: int
    kind: str
    line: int
    instruction: int  # of the innermost function of the learner's: two loads on one line are two places
    function: str
    tensor: int | None
    block: tuple[int, ...]
    itemsize: int


@dataclass(frozen=True)
class Lanes:
    """One execution of an access by one program: an address and a flag for each lane, flat, and which belong here."""

    program: int
    addresses: Any  # int64
    active: Any  # bool
    here: Any  # bool, or None for all: the lanes that belong to this place's tensor


class MapRecorder:
    def __init__(self) -> None:
        self.launches: list[tuple[str, tuple[int, ...]]] = []
        self.tensors: list[SeenTensor] = []
        self.places: dict[Place, list[Lanes]] = {}
        self.bad: Any = None  # the first OutOfBounds
        self.full = False
        self._known: dict[tuple[Any, ...], int] = {}
        self._arguments: dict[int, int] = {}  # of this launch: origin to tensor
        self._lanes = self.visits = 0

    def launch(self, kernel: str) -> None:
        self.launches.append((kernel, ()))
        self._arguments = {}

    def grid(self, grid: Sequence[Any]) -> None:
        if self.launches:
            self.launches[-1] = (self.launches[-1][0], tuple(int(n) for n in grid))

    def take(self, name: str, tensor: Any, extent: Any) -> None:
        """A tensor argument; the launch keeps the widest of those that start at one address, as the bounds do."""
        key = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
        if key not in self._known:
            self._known[key] = len(self.tensors)
            self.tensors.append(SeenTensor(tensor, extent.low, extent.high, extent.origin))
        position = self._known[key]
        seen = self.tensors[position]
        if name not in seen.names:
            seen.names.append(name)
        old = self._arguments.get(extent.origin)
        if old is None or self.tensors[old].high <= extent.high:
            self._arguments[extent.origin] = position

    def note(
        self,
        kind: str,
        program: int,
        addresses: Any,
        active: Any,
        size: int,
        origin: int | None,
        at: tuple[int, int, str],
    ) -> None:
        """`at`: line, instruction and function of the learner's file. Raises MapFull."""
        if not self.launches:
            return
        self._lanes += addresses.size
        self.visits += 1
        if self._lanes > MOST_LANES or self.visits > MOST_VISITS:
            self.full = True
            raise MapFull(f"the call touches more than {MOST_LANES:,} lanes: choose a smaller case")
        flat = addresses.reshape(-1).astype(np.int64)
        line, instruction, function = at
        flags = np.array(active, dtype=bool).reshape(-1)
        for tensor, here in self._owners(flat, origin):
            block = tuple(addresses.shape)
            place = Place(len(self.launches) - 1, kind, line, instruction, function, tensor, block, size)
            self.places.setdefault(place, []).append(Lanes(program, flat, flags, here))

    def _owners(self, addresses: Any, origin: int | None) -> list[tuple[int | None, Any]]:
        """The tensors that these pointers belong to, each with its lanes (None: all of them)."""
        known = self._arguments.get(origin) if origin is not None else None
        if known is not None:
            return [(known, None)]
        left = np.ones(addresses.shape, dtype=bool)
        found: list[tuple[int | None, Any]] = []
        for beside in (0, BESIDE):
            for position in dict.fromkeys(self._arguments.values()):
                seen = self.tensors[position]
                here = left & (addresses >= seen.low - beside) & (addresses < seen.high + beside)
                if here.any():
                    found.append((position, here))
                    left &= ~here
        return [*found, (None, left)] if left.any() else found
