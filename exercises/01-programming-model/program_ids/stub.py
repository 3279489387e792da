"""program_ids: out[i] = x[i] + the id of the program that owns element i

Called as      add_program_ids(x)
x              one dimension, n elements, contiguous; int32
returns        a new tensor like x
n              0, 1, and sizes that are no multiple of BLOCK: 63, 65, 1009

One program owns one slice of BLOCK = 64 elements: program 0 owns 0..63, program 1 owns 64..127, and so on.
The launcher is given; write the kernel. For n = 130 the last program owns only elements 128 and 129.

On a GPU this launch is slow, and no kernel can help it: 64 elements are too little work for a program. 2^25 elements
are 524,288 programs; on an H200 they take 320 us, 20 % of the bandwidth of a copy. The timing marks allow for it.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_ids_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 1. which program am I?
    # 2. which BLOCK offsets do I own, and which of them are smaller than n?
    # 3. load the tile, add my id, store it
    pass


def add_program_ids(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    grid = (triton.cdiv(n, 64),)
    add_ids_kernel[grid](x, out, n, BLOCK=64)
    return out
