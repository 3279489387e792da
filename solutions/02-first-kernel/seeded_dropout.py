"""seeded_dropout: random numbers are computed where they are used, and never stored."""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    u = tl.rand(seed, offs)  # by element, not by lane: any BLOCK gives the same numbers
    # a choice, not a product: inf * 0 would be NaN, and for p = 1 so would be x / 0 * 0
    y = tl.where(u >= p, x / (1 - p), 0.0)
    tl.store(out_ptr + offs, y, mask=mask)


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out  # no program has anything to own
    BLOCK = 1024
    dropout_kernel[(triton.cdiv(n, BLOCK),)](x, out, n, p, seed, BLOCK=BLOCK)
    return out
