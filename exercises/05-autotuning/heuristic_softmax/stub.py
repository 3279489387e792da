"""heuristic_softmax: softmax over each row; what follows from the shape is computed, what does not is tuned

Called as      heuristic_softmax(x)
x              (M, N), columns side by side in memory, rows at any distance; float32, float16 or bfloat16
returns        a new contiguous (M, N) tensor of the dtype of x
M, N           M from 0; N from 1 to 4096, below, at and above powers of two

One program owns BLOCK_M whole rows, as one tile of BLOCK_M x BLOCK_N: short rows leave a program too little to do.
The launcher is given, and names no tile size and no num_warps. Write the kernel, and above it two decorators:

1. @triton.autotune measures BLOCK_M: configurations with 4, 2 and 1 rows, tuned anew for each n_cols
2. @triton.heuristics computes BLOCK_N, the least power of two that covers n_cols, and num_warps, which grows with
   the tile: one warp for 512 elements, at least 1, at most 16. That needs BLOCK_M and BLOCK_N.

Which of the two stands on top decides whether a heuristic may read BLOCK_M.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    stride_xm, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # 1. which rows do I own? which elements of the tile exist?
    # 2. load, maximum, exp, sum: along which axis?
    # 3. store what exists
    pass


def heuristic_softmax(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out  # no row, no program
    grid = lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]),)
    softmax_kernel[grid](x, out, n_rows, n_cols, x.stride(0), out.stride(0))
    return out
