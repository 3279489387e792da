"""An access map as values. No torch and no NumPy here: screens and commands read it too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from grader.access_map.runs import size_of

Count = Annotated[int, Meta(ge=0)]
Runs = tuple[Annotated[tuple[int, ...], Meta(min_length=1, max_length=5)], ...]
Kind = Literal["load", "store", "atomic"]
MOST_NUMBERS = 1 << 23  # that the runs of one map may stand for


class Base(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class Visit(Base, frozen=True, kw_only=True):
    """One execution of an access by one program. Elements count row by row through the tensor's shape; offsets count
    elements of memory from element 0. Both are in lane order."""

    at: Runs = ()  # elements that active lanes touch
    masked: Runs = ()  # elements that masked-off lanes point at
    beyond: Runs = ()  # offsets that active lanes touch and that are no element
    masked_beyond: Runs = ()  # the same of masked-off lanes


class ByProgram(Base, frozen=True, kw_only=True):
    program: Count  # its place in the grid, the last axis fastest
    visits: tuple[Visit, ...]  # loop iterations, in order


class Axis(Base, frozen=True, kw_only=True):
    size: Count
    step: int | None = None  # elements from one lane to the next; None: it differs, or no two neighbours are active
    differs: bool = False


class Order(Base, frozen=True, kw_only=True):
    """How addresses follow each other over the lanes of a block, row by row; the compiler may deal the lanes out to
    threads in another order."""

    word: Literal["one", "contiguous", "backwards", "strided", "broadcast", "scattered", "masked"]
    step: int | None = None  # elements between neighbouring lanes
    axes: tuple[Axis, ...] = ()  # of the block, those longer than 1
    lanes: Count = 0  # in the groups counted below: of 32 neighbouring lanes, or the whole of a smaller block
    groups: Count = 0
    sectors: Count = 0  # 32-byte sectors that the groups touch, each group for itself
    fewest: Count = 0  # the least that groups of as many lanes of the same blocks touch in any order


class Site(Base, frozen=True, kw_only=True):
    """One access in the source, to one tensor, in one launch."""

    launch: Count
    kind: Kind
    line: Count  # of the learner's file; 0: not known
    tensor: Annotated[int, Meta(ge=0)] | None  # None: memory that is no argument
    block: tuple[Count, ...]  # shape of the block of pointers
    itemsize: Count
    programs: tuple[ByProgram, ...]
    order: Order
    lanes: Count = 0  # over all programs and iterations
    active: Count = 0
    outside: Count = 0  # active lanes outside the tensor's memory
    between: Count = 0  # active lanes inside its memory, at no element of it
    source: str = ""


class TensorFacts(Base, frozen=True, kw_only=True):
    loaded: Count = 0  # elements loaded at least once
    repeated: Count = 0  # elements loaded more than once in a launch
    most_times: Count = 0  # loads of one element in a launch
    most_programs: Count = 0  # programs of a launch that load one element
    stored: Count = 0  # elements stored at least once, also by atomics
    overlap: Count = 0  # elements that two programs of a launch store
    overlap_at: int | None = None  # the first of them
    overlap_programs: tuple[Count, ...] = ()
    updated: Count = 0  # elements that two programs of a launch update with atomics
    unstored_at: int | None = None  # the first element never stored, where others are


class MappedTensor(Base, frozen=True, kw_only=True):
    names: tuple[str, ...]  # of the kernels' parameters
    role: Literal["argument", "result", "allocated"]
    parameter: str = ""  # of the entry, when an argument
    shape: tuple[Count, ...]
    strides: tuple[int, ...]
    dtype: str
    itemsize: Count
    low: int  # offsets of the first element's memory and of the end, in elements from element 0
    high: int
    facts: TensorFacts = TensorFacts()

    @property
    def seen_shape(self) -> tuple[int, ...]:
        """An expanded axis is one element of memory, and counts as one."""
        return tuple(min(n, 1) if s == 0 else n for n, s in zip(self.shape, self.strides, strict=True))

    @property
    def elements(self) -> int:
        count = 1
        for n in self.seen_shape:
            count *= n
        return count

    @property
    def bytes(self) -> int:
        return self.elements * self.itemsize


class Launch(Base, frozen=True, kw_only=True):
    kernel: str
    grid: tuple[Count, ...]


class Bad(Base, frozen=True, kw_only=True):
    """The first access out of range."""

    kind: Kind
    tensor: str
    index: int
    end: int  # its memory ends before this element
    program: tuple[Count, ...]
    line: Count


class Recorded(Base, frozen=True, kw_only=True):
    """What the runner saw of one call."""

    launches: tuple[Launch, ...] = ()
    tensors: tuple[MappedTensor, ...] = ()
    sites: tuple[Site, ...] = ()
    loaded_bytes: Count = 0  # by active lanes in range; an atomic counts on both sides
    stored_bytes: Count = 0
    bad: Bad | None = None
    full: bool = False  # the call touched more than is recorded, and was ended


class AccessMap(Recorded, frozen=True, kw_only=True):
    exercise: str
    file: str
    case: str
    cases: tuple[str, ...]  # that may be asked for
    parameters: tuple[str, ...] = ()
    status: str = "passed"  # as in a verdict; of this call alone
    message: str = ""
    line: int | None = None
    minimum_bytes: Count = 0

    @property
    def ratio(self) -> float | None:
        """Bytes moved over the least that the task needs."""
        return (self.loaded_bytes + self.stored_bytes) / self.minimum_bytes if self.minimum_bytes else None


def sound(recorded: Recorded) -> bool:
    """Whether what came from the learner's process can be shown: no index past a list, no endless run."""
    numbers = 0
    for site in recorded.sites:
        if site.launch >= len(recorded.launches) or (site.tensor or 0) >= max(1, len(recorded.tensors)):
            return False
        for visit in _visits(site):
            for runs in (visit.at, visit.masked, visit.beyond, visit.masked_beyond):
                if any(n < 1 for run in runs for n in (*run[2:3], *run[4:5])):
                    return False
                numbers += size_of(runs)
                if numbers > MOST_NUMBERS:
                    return False
    return all(len(tensor.shape) == len(tensor.strides) and tensor.itemsize for tensor in recorded.tensors)


def _visits(site: Site) -> Iterable[Visit]:
    return (visit for by in site.programs for visit in by.visits)
