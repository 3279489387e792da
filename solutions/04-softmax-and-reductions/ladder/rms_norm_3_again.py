"""rms_norm, rung 3: the row is read again after the reduction, and not kept."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, n_cols, eps, BLOCK_N: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x_row = x_ptr + row * n_cols + cols
    x = tl.load(x_row, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(x * x, axis=0) / n_cols
    # The hint keeps the compiler from seeing the first load here: of two equal ones it would make one.
    x = tl.load(x_row, mask=mask, other=0.0, eviction_policy="evict_first").to(tl.float32)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, x * tl.rsqrt(mean_square + eps) * weight, mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    out = torch.empty_like(x)
    if x.numel() == 0:
        return out
    n_cols = x.shape[-1]
    BLOCK_N = triton.next_power_of_2(n_cols)
    num_warps = min(max(BLOCK_N // 512, 1), 32)  # 16 elements a thread
    rms_norm_kernel[(x.numel() // n_cols,)](x, weight, out, n_cols, eps, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return out
