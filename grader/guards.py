"""The judge's memory: every tensor of a case inside guard bands, outputs filled with poison.

Guard bytes are 0xFF: NaN in every float dtype, -1 in every integer dtype. Outputs hold another NaN, so that what was
never written and what was read beside a tensor can be told apart; integer outputs hold 0xA5, because -1 is a likely
answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

GUARD_BYTE = 0xFF
INTEGER_POISON = 0xA5
# one NaN, cut to each width: a narrower copy of what was never written is poison too, where a cast keeps the bits
FLOAT_POISON = {
    torch.float64: (torch.int64, 0xFFFC_B4B4_A000_0001),
    torch.float32: (torch.int32, 0xFFE5_A5A5),
    torch.float16: (torch.int16, 0xFF2D),
    torch.bfloat16: (torch.int16, 0xFFE5),
}
ALIGN = 256  # as torch's allocators align


def poison_of(dtype: torch.dtype) -> tuple[torch.dtype, int]:
    """The integer dtype as which memory of `dtype` is filled, and the number it is filled with."""
    if dtype not in FLOAT_POISON:  # 8-bit floats know hardly another NaN
        return torch.uint8, GUARD_BYTE if dtype.is_floating_point or dtype.is_complex else INTEGER_POISON
    raw, bits = FLOAT_POISON[dtype]
    return raw, bits - (1 << 8 * raw.itemsize)  # the sign bit is set


def fill_with_poison(memory: torch.Tensor, dtype: torch.dtype) -> None:
    """Fill bytes (uint8) that will hold elements of `dtype`."""
    raw, value = poison_of(dtype)
    memory.view(raw).fill_(value)


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
    fill_with_poison(arena[region.offset : region.offset + region.nbytes], region.dtype)


def poisoned(tensor: torch.Tensor) -> torch.Tensor:
    """Which elements still hold the poison, bit for bit."""
    raw, value = poison_of(tensor.dtype)
    if raw != torch.uint8:
        return tensor.contiguous().view(raw) == value
    bytes_ = tensor.contiguous().view(torch.uint8).reshape(*tensor.shape, tensor.element_size())
    return (bytes_ == value).all(dim=-1)


def breached(arena: torch.Tensor, layout: Layout) -> Region | None:
    """The first region with a changed byte in the guard band before or after it, or None."""
    for region in layout.regions:
        before = arena[max(0, region.offset - layout.guard) : region.offset]
        start = region.offset + region.nbytes
        after = arena[start : start + layout.guard]
        if bool((before != GUARD_BYTE).any()) or bool((after != GUARD_BYTE).any()):
            return region
    return None
