"""grid_2d: out[i, j] = rows[i] * cols[j]

Called as      outer(rows, cols)
rows           one dimension, M elements, contiguous
cols           one dimension, N elements, contiguous; both float32 or both float16
returns        a new contiguous tensor of shape (M, N), of the same dtype
M, N           0, 1, square and not; N is often no multiple of BLOCK = 64

The grid has two axes: program (i, j) owns row i, columns j * BLOCK to j * BLOCK + BLOCK - 1.
Element (i, j) of out lies at out_ptr + i * N + j. Write the kernel and its grid.

On a GPU tiles of 64 are slow: too little work for a program. 8192 x 8192 is 1,048,576 programs; on an H200 they take
634 us, 10 % of the bandwidth of a copy, where PyTorch takes 162 us. The timing marks allow for it.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def outer_kernel(rows_ptr, cols_ptr, out_ptr, N, BLOCK: tl.constexpr):
    # axis 0 of the grid counts rows, axis 1 counts tiles of columns
    pass


def outer(rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
    M, N = rows.numel(), cols.numel()
    out = torch.empty((M, N), device=rows.device, dtype=rows.dtype)
    # a grid with two numbers; BLOCK=64
    return out
