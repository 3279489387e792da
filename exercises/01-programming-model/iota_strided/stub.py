"""iota_strided: out[i, j] = (i * N + j) * step, written into a view

Called as      fill_iota(out, step)
out            (M, N), any strides but 0: contiguous, transposed, every third column of a wider matrix, a window;
               float32, int32 or int64. Written in place; its old values do not matter
step           a Python int, also negative; no result passes 2^24
returns        nothing
M, N           0, 1, one below, at and one above BLOCK, and several times BLOCK

out[i, j] lies i * stride_m + j * stride_n elements from out_ptr. Where out is a view, there is memory between its
elements that belongs to others: it must stay as it is.

The grid has two axes: program (i, t) owns columns t * BLOCK to t * BLOCK + BLOCK - 1 of row i. The launcher is given;
write the kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def iota_kernel(
    out_ptr,
    n_cols,
    stride_m,  # elements from out[i, j] to out[i + 1, j]
    stride_n,  # elements from out[i, j] to out[i, j + 1]
    step,
    BLOCK: tl.constexpr,
):
    # 1. which row and which columns are mine, and which of the columns exist?
    # 2. what is the value of each element? (its index)
    # 3. where does each element lie? (its offset)
    pass


def fill_iota(out: torch.Tensor, step: int) -> None:
    n_rows, n_cols = out.shape
    if out.numel() == 0:
        return
    BLOCK = 1024
    grid = (n_rows, triton.cdiv(n_cols, BLOCK))
    iota_kernel[grid](out, n_cols, out.stride(0), out.stride(1), step, BLOCK=BLOCK)
