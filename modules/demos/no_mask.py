"""1000 elements, one block of 1024 lanes, and no mask."""

import torch
import triton
import triton.language as tl


@triton.jit
def no_mask_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x)


def add(x, y):
    out = torch.empty_like(x)
    no_mask_kernel[(1,)](x, out, BLOCK=1024)
    return out
