"""What the interpreter's hooks know and report: extents of arguments, traffic, accesses, and those out of bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

MOST_LANES = 2_000_000  # lanes recorded in one call; what comes after is not looked at


class OutOfBounds(Exception):
    """An access outside its tensor, seen by the interpreter."""

    def __init__(
        self, access: str, name: str, index: int, count: int, program: tuple[int, ...], line: int, masked: bool
    ) -> None:
        self.access, self.name, self.index, self.count = access, name, index, count
        self.program, self.line, self.masked = program, line, masked
        super().__init__(f"{access} at element {index} of {name}, whose memory ends at element {count - 1}")


@dataclass(frozen=True)
class Extent:
    """The memory one kernel argument may touch: from its lowest to its highest element."""

    name: str
    low: int  # address of the first byte
    high: int  # address after the last byte
    origin: int  # data_ptr: element 0
    itemsize: int


@dataclass
class Traffic:
    """Bytes that unmasked lanes loaded and stored, over all launches since the last reset."""

    loaded_bytes: int = 0
    stored_bytes: int = 0
    launches: int = 0
    programs: int = 0  # of the largest launch


@dataclass(frozen=True)
class Access:
    """What one load, store or atomic of one program touched. Arrays hold one entry an active lane."""

    kind: Literal["load", "store", "atomic"]
    program: int  # its place in the grid, x slowest
    addresses: Any  # uint64
    lanes: Any  # the lanes' places in the block, flat
    values: Any  # bits loaded or stored, as uint64; of an atomic: zeros
    before: Any  # bits that were there before a store; of loads and atomics: zeros
    itemsize: int
    line: int
    epoch: int  # barriers the program had passed


@dataclass
class LaunchTrace:
    """The accesses of one launch, in the order in which the interpreter made them."""

    grid: tuple[int, ...]
    extents: list[Extent]
    accesses: list[Access] = field(default_factory=list)
    locks: bool = False  # compares, exchanges or polls: programs may wait for each other
    counters: bool = False  # a one-lane atomic on integers: the last program may be told by it


@dataclass
class Watch:
    """State of the interpreter hooks. `filler` is what a masked-off lane of a load without `other` gives."""

    learner_file: str
    filler: str = "poison"
    noop: bool = False
    order: str = "forward"  # of the grid's programs: forward, reversed or shuffled
    stores: list[tuple[tuple[int, ...], Any]] | None = None  # program and addresses of each store, when asked for
    launches: list[LaunchTrace] | None = None  # what each launch touched, when asked for
    map: Any = None  # a MapRecorder, when an access map is asked for
    lanes: int = 0  # recorded so far
    undefined: int = 0  # lanes that a load without `other` left undefined
    traffic: Traffic = field(default_factory=Traffic)
    extents: dict[int, Extent] = field(default_factory=dict)
    # whole-number values of a kernel's constexprs, by the names of both, over all calls
    constexprs: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    def new_call(self, *, filler: str, noop: bool, order: str, trace: str | None) -> None:
        """Forget the last call. `trace` is None, "stores", "accesses" or "map"."""
        self.filler, self.noop, self.order = filler, noop, order
        self.stores = [] if trace == "stores" else None
        self.launches = [] if trace == "accesses" else None
        self.map = _new_map() if trace == "map" else None
        self.lanes, self.undefined, self.traffic = 0, 0, Traffic()


def _new_map() -> Any:
    from grader.access_map.recorder import MapRecorder

    return MapRecorder()


@dataclass
class Tuning:
    """Whether an autotuner is trying a configuration: such launches are not part of a call's traffic."""

    active: bool = False
    configuration: str | None = None  # the one being tried, or the one whose trial raised


TUNING = Tuning()


def extent_of(name: str, tensor: Any) -> Extent:
    origin, size = tensor.data_ptr(), tensor.element_size()
    if tensor.numel() == 0:
        return Extent(name, origin, origin, origin, size)
    low = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s < 0)
    high = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s > 0)
    return Extent(name, origin + low * size, origin + (high + 1) * size, origin, size)
