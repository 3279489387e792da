"""18 elements in tiles of 8: the last program has lanes to spare."""

import torch
import triton
import triton.language as tl


@triton.jit
def tiles_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)


def add(x, y):
    x = torch.zeros(18)
    out = torch.empty_like(x)
    tiles_kernel[(triton.cdiv(18, 8),)](x, out, 18, BLOCK=8)
    return out
