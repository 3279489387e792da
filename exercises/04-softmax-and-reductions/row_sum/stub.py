"""row_sum: out[i] = x[i, 0] + x[i, 1] + … + x[i, N - 1], summed in float32

Called as      row_sum(x)
x              (M, N), any strides; float32, float16 or bfloat16
returns        a new (M,) tensor, always float32
M, N           0, 1, one below, at and one above BLOCK_N, and several times BLOCK_N; the sum of no terms is 0

One program owns one row, of any length: it walks along the row in chunks of BLOCK_N columns and keeps a tile
of running sums. The sum of a float16 row may exceed 65504, the largest float16. The launcher is given; write
the kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(
    x_ptr,
    out_ptr,
    n_cols,
    stride_m,
    stride_n,
    BLOCK_N: tl.constexpr,
):
    # 1. which row is mine? which dtype must the running sums have?
    # 2. for each chunk of BLOCK_N columns: load (what do the padded lanes hold?), add
    # 3. fold the tile into one number; store it
    pass


def row_sum(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out
    row_sum_kernel[(n_rows,)](
        x,
        out,
        n_cols,
        x.stride(0),
        x.stride(1),
        BLOCK_N=1024,
    )
    return out
