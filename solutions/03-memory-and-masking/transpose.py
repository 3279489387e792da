"""transpose: a tile is read along the rows of x and written along the rows of out."""

import torch
import triton
import triton.language as tl

# square, and wide along both axes: whichever way x and out lie, both are touched in long runs
BLOCK = 64


@triton.jit
def transpose_kernel(
    x_ptr,
    out_ptr,
    n_rows,
    n_cols,
    stride_xm,
    stride_xn,
    stride_on,
    stride_om,
    BLOCK: tl.constexpr,
):
    # int64: the last row times its stride passes 2^31 in a large matrix
    rows = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(axis=1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    rows = rows[:, None]  # (BLOCK, 1)
    cols = cols[None, :]  # (1, BLOCK)
    mask = (rows < n_rows) & (cols < n_cols)
    tile = tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)
    # the same elements, each at its mirrored address. The compiler sees which axis lies side by side in out, and
    # exchanges elements between threads in shared memory, so that loads and stores are both wide
    tl.store(out_ptr + rows * stride_om + cols * stride_on, tile, mask=mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty((n_cols, n_rows), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out  # no row, or no column: nothing to own
    grid = (triton.cdiv(n_rows, BLOCK), triton.cdiv(n_cols, BLOCK))
    transpose_kernel[grid](
        x,
        out,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        out.stride(0),
        out.stride(1),
        BLOCK=BLOCK,
    )
    return out
