"""transpose: out[j, i] = x[i, j], tile by tile, into new memory

Called as      transpose(x)
x              (M, N), any strides: contiguous, transposed, sliced, expanded (stride 0);
               float32, float16, bfloat16 or int32
returns        a new contiguous (N, M) tensor of the dtype of x; x.t() itself moves nothing and is no answer
M, N           0, 1, one below, at and one above BLOCK, and several times BLOCK; M and N differ

One program owns one tile of BLOCK x BLOCK elements of x, and writes it to the mirrored place in out. The grid has two
axes: axis 0 counts tiles down the rows of x, axis 1 along its columns. Write the kernel and its launch.
"""

import torch
import triton
import triton.language as tl

BLOCK = 64


@triton.jit
def transpose_kernel(
    x_ptr,
    out_ptr,
    n_rows,  # of x
    n_cols,
    stride_xm,
    stride_xn,
    stride_on,  # elements from out[j, i] to out[j + 1, i]
    stride_om,  # elements from out[j, i] to out[j, i + 1]
    BLOCK: tl.constexpr,
):
    # 1. which rows and columns of x are mine?
    # 2. load the tile of x
    # 3. where in out does each of its elements lie? tile, addresses and mask must have the same axes
    pass


def transpose(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    # 4. launch: a grid of two axes, and four strides
    return out
