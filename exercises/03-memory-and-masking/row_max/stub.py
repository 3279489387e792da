"""row_max: out[i] = the largest of x[i, 0], x[i, 1], …, x[i, N - 1]

Called as      row_max(x)
x              (M, N), any strides; float32, float16 or bfloat16; all values may be negative or -inf; no NaN
returns        a new (M,) tensor of the dtype of x
M, N           M from 0, N from 1 to a few thousand, mostly no power of two

One program owns one row, as one tile: the launcher rounds N up to a power of two, because tl.arange takes
nothing else, so the tile has lanes that are no column of the row. The launcher is given; write the kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def row_max_kernel(
    x_ptr,
    out_ptr,
    n_cols,
    stride_m,
    stride_n,
    BLOCK_N: tl.constexpr,
):
    # 1. which row is mine? which lanes are columns of it?
    # 2. load the row; what must the other lanes hold so that they never win?
    # 3. tl.max(…, axis=0) gives one scalar; store it
    pass


def row_max(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out
    row_max_kernel[(n_rows,)](
        x,
        out,
        n_cols,
        x.stride(0),
        x.stride(1),
        BLOCK_N=triton.next_power_of_2(n_cols),
    )
    return out
