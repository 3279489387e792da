"""What the interpreter's hooks know and report: extents of arguments, traffic, accesses out of bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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


@dataclass
class Watch:
    """State of the interpreter hooks. `filler` is what a masked-off lane of a load without `other` gives."""

    learner_file: str
    filler: str = "poison"
    noop: bool = False
    stores: list[tuple[tuple[int, ...], Any]] | None = None  # program and addresses of each store, when asked for
    undefined: int = 0  # lanes that a load without `other` left undefined
    traffic: Traffic = field(default_factory=Traffic)
    extents: dict[int, Extent] = field(default_factory=dict)


@dataclass
class Tuning:
    """Whether an autotuner is trying a configuration: such launches are not part of a call's traffic."""

    active: bool = False


TUNING = Tuning()


def extent_of(name: str, tensor: Any) -> Extent:
    origin, size = tensor.data_ptr(), tensor.element_size()
    if tensor.numel() == 0:
        return Extent(name, origin, origin, origin, size)
    low = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s < 0)
    high = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True) if s > 0)
    return Extent(name, origin + low * size, origin + (high + 1) * size, origin, size)
