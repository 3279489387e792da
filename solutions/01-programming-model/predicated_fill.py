"""predicated_fill: the mask of a store says which lanes write; it may say more than where the tensor ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_where_kernel(out_ptr, flags_ptr, first, value, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = offs < n  # protects memory
    # a mask is made of booleans: `!= 0` turns any number into one
    flag = tl.load(flags_ptr + offs, mask=exists, other=0) != 0
    chosen = exists & (offs >= first) & flag  # does what the task says
    # out is never loaded: a lane that does not store leaves its element alone
    tl.store(out_ptr + offs, value, mask=chosen)


def fill_where(out: torch.Tensor, flags: torch.Tensor, first: int, value: float) -> None:
    n = out.numel()
    if n == 0:
        return  # no program has anything to own
    BLOCK = 1024
    fill_where_kernel[(triton.cdiv(n, BLOCK),)](out, flags, first, value, n, BLOCK=BLOCK)
