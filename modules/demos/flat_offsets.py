"""A transposed view, read as if it were contiguous: program i means to read row i."""

import torch
import triton
import triton.language as tl


@triton.jit
def flat_kernel(x_ptr, out_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + row * N + cols)  # not row * stride_m + cols * stride_n
    tl.store(out_ptr + row * N + cols, x)


def row_scale(x, scale):
    x = torch.arange(8.0).reshape(2, 4).t()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    flat_kernel[(4,)](x, out, N=2)
    return out
