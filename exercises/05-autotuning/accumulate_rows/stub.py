"""accumulate_rows: out[j] = x[0, j] + x[1, j] + … + x[M-1, j], added up by many programs

Called as      accumulate_rows(x)
x              two dimensions, M rows, N columns, any strides (transposed, sliced and expanded views come);
               float32 or float16
returns        a new float32 tensor of N elements
M, N           0, 1, and sizes that are no multiple of a tile: 100 by 70, 129 by 33

One program owns one tile of BLOCK_M rows and BLOCK_N columns. It sums its tile over the rows, in float32, and adds the
BLOCK_N partial sums to out with tl.atomic_add: several programs add to one column.

The launcher is given. Write the kernel, and the decorator that picks BLOCK_M and BLOCK_N among three configurations or
more. Mind what a tuner does to a kernel that adds to memory.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def accumulate_kernel(
    x_ptr, out_ptr,
    M, N,
    stride_m, stride_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # 1. which rows and which columns do I own? which of them exist?
    # 2. load the tile; sum it over the rows, in float32
    # 3. add the BLOCK_N partial sums to out
    pass


def accumulate_rows(x: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    out = torch.zeros(N, device=x.device, dtype=torch.float32)
    if x.numel() == 0:
        return out  # no element, no program
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]), triton.cdiv(N, meta["BLOCK_N"]))
    accumulate_kernel[grid](x, out, M, N, x.stride(0), x.stride(1))
    return out
