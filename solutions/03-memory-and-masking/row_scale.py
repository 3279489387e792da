"""row_scale: one program scales one row, in chunks of BLOCK_N columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_scale_kernel(
    x_ptr,
    scale_ptr,
    out_ptr,
    n_cols,
    stride_xm,
    stride_xn,
    stride_om,
    stride_on,
    BLOCK_N: tl.constexpr,
):
    # row * stride is int32 arithmetic unless one side is wider: it would wrap at 2^31 elements
    row = tl.program_id(axis=0).to(tl.int64)
    scale = tl.load(scale_ptr + row)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask)
        tl.store(out_ptr + row * stride_om + cols * stride_on, x * scale, mask=mask)


def row_scale(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out  # no row, or no column: nothing to own
    row_scale_kernel[(n_rows,)](
        x,
        scale,
        out,
        n_cols,
        x.stride(0),
        x.stride(1),
        out.stride(0),
        out.stride(1),
        BLOCK_N=1024,
    )
    return out
