"""The judge's memory: every tensor of a case inside guard bands, outputs filled with poison.

Guard and poison bytes are 0xFF: NaN in every float dtype, -1 in every integer dtype. Integer outputs are poisoned with
0xA5 instead, because -1 is a likely answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

GUARD_BYTE = 0xFF
INTEGER_POISON = 0xA5
ALIGN = 256  # as torch's allocators align


def poison_byte(dtype: torch.dtype) -> int:
    return GUARD_BYTE if dtype.is_floating_point else INTEGER_POISON


@dataclass(frozen=True)
class Region:
    """One tensor's place in the arena. `span` counts elements from the lowest to the highest address (0 if empty)."""

    offset: int  # bytes, of element 0
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    @property
    def span(self) -> int:
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True))

    @property
    def nbytes(self) -> int:
        return self.span * self.dtype.itemsize

    def described(self) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "shape": list(self.shape),
            "stride": list(self.stride),
            "dtype": str(self.dtype).removeprefix("torch."),
        }


def view(arena: torch.Tensor, region: Region) -> torch.Tensor:
    """The region as a tensor over the arena's bytes."""
    if region.span == 0:
        return torch.empty(region.shape, dtype=region.dtype, device=arena.device)
    piece = arena[region.offset : region.offset + region.nbytes].view(region.dtype)
    return piece.as_strided(region.shape, region.stride)


class Layout:
    """Hands out regions of an arena, `guard` bytes apart."""

    def __init__(self, guard: int) -> None:
        self.guard = guard
        self.end = guard
        self.regions: list[Region] = []

    def place(self, shape: tuple[int, ...], stride: tuple[int, ...], dtype: torch.dtype) -> Region:
        region = Region(self.end, shape, stride, dtype)
        self.regions.append(region)
        self.end += -(-(region.nbytes + self.guard) // ALIGN) * ALIGN
        return region

    @property
    def size(self) -> int:
        return self.end


def fill(arena: torch.Tensor) -> None:
    arena.fill_(GUARD_BYTE)


def poison(arena: torch.Tensor, region: Region) -> None:
    arena[region.offset : region.offset + region.nbytes].fill_(poison_byte(region.dtype))


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """Which elements still hold the poison, bit for bit."""
    raw = tensor.contiguous().view(torch.uint8).reshape(*tensor.shape, tensor.element_size())
    return (raw == poison_byte(tensor.dtype)).all(dim=-1)


def breached(arena: torch.Tensor, layout: Layout) -> Region | None:
    """The first region with a changed byte in the guard band before or after it, or None."""
    for region in layout.regions:
        before = arena[max(0, region.offset - layout.guard) : region.offset]
        start = region.offset + region.nbytes
        after = arena[start : start + layout.guard]
        if bool((before != GUARD_BYTE).any()) or bool((after != GUARD_BYTE).any()):
            return region
    return None
