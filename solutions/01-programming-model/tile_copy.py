"""tile_copy: one program moves one tile, bit for bit."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    # the kernel names no dtype: it follows from the tensors it is given
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def tile_copy(x: torch.Tensor, block: int) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out  # no program has anything to own
    grid = (triton.cdiv(n, block),)  # rounded up, so that the rest has an owner
    copy_kernel[grid](x, out, n, BLOCK=block)
    return out
