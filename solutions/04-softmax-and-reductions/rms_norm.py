"""rms_norm: one program owns one row of the last dimension, whatever the other dimensions are."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK_N: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    # cast before the square: 300 is a float16, 90000 is not. Padded lanes hold 0, and so do their squares
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / n_cols  # by the number of elements, not of lanes
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # one rounding to the dtype of out, by the store
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(mean_square + eps) * weight, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out  # no row, no program
    n_cols = x.shape[-1]
    n_rows = x.numel() // n_cols  # contiguous: all leading dimensions are one dimension of rows
    BLOCK_N = triton.next_power_of_2(n_cols)
    # 32 elements a thread: fewer threads would hold too much each, more would wait for each other in the reduction
    num_warps = min(max(BLOCK_N // 1024, 1), 16)
    rms_norm_kernel[(n_rows,)](x, weight, out, n_cols, eps, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return out
