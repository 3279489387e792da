"""In the runner: what the learner allocates uninitialised comes poisoned and, on a GPU, between guard bands.

torch's caching allocator would otherwise hand a wrong kernel the memory that held the previous right answer.
"""

from __future__ import annotations

from typing import Any

import torch

from grader.dispatch_mode import DispatchMode
from grader.guards import GUARD_BYTE, fill_with_poison

GUARD = 4096  # bytes on each side; a multiple of every alignment torch promises
EMPTY = torch.ops.aten


class GuardedAllocations(DispatchMode):
    """Redirects torch.empty and its kin into buffers filled with poison."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        self.buffers: list[tuple[torch.Tensor, int]] = []  # the whole buffer, the bytes in use

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _UNINITIALISED and isinstance(result, torch.Tensor) and type(result) is torch.Tensor:
            return self._guarded(result)
        return result

    def _guarded(self, like: torch.Tensor) -> torch.Tensor:
        span = 0 if like.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(like.shape, like.stride(), strict=True))
        if span == 0 or like.device.type not in ("cpu", "cuda") or like.layout != torch.strided:
            return like
        nbytes = span * like.element_size()
        buffer = like.new_full((nbytes + 2 * GUARD,), GUARD_BYTE, dtype=torch.uint8)
        fill_with_poison(buffer[GUARD : GUARD + nbytes], like.dtype)
        self.buffers.append((buffer, nbytes))
        return buffer[GUARD : GUARD + nbytes].view(like.dtype).as_strided(like.shape, like.stride())

    def breached(self) -> bool:
        """Whether a store went past any tensor that the learner allocated."""
        for buffer, nbytes in self.buffers:
            edges = (buffer[:GUARD], buffer[GUARD + nbytes :])
            if any(bool((edge != GUARD_BYTE).any()) for edge in edges):
                return True
        return False


_UNINITIALISED = {
    EMPTY.empty.memory_format,
    EMPTY.empty_like.default,
    EMPTY.empty_strided.default,
    EMPTY.new_empty.default,
    EMPTY.new_empty_strided.default,
}
