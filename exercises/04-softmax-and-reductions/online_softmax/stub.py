"""online_softmax: the softmax of rows that are wider than one tile

Called as      online_softmax(x)
x              M x N, float32 or float16, any row stride, the elements of a row side by side
returns        a new contiguous tensor of x's shape and dtype: softmax over each row, as torch.softmax(x, dim=1)
M, N           from 0; N below, at and above BLOCK and mostly no multiple of it; BLOCK stays 1024
values         large (exp alone would overflow), all negative, rising along the row, or -inf for a whole first tile;
               no row is -inf throughout

One program owns one row and walks over it in tiles of BLOCK columns, twice: the first walk keeps a running maximum m
and a running sum l of exp(x - m), the second writes exp(x - m) / l. Two walks, not three: the maximum and the sum are
found together. When a tile raises m, everything summed so far was taken against the old maximum and must be rescaled.
The launcher is given; write the kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, n_cols, stride_xm, stride_om, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    # 1. m = -inf, l = 0; for each tile: the new maximum, rescale l, add the tile's sum
    # 2. for each tile: write exp(x - m) / l


def online_softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out
    online_softmax_kernel[(n_rows,)](x, out, n_cols, x.stride(0), out.stride(0), BLOCK=1024, num_warps=4)
    return out
