"""layer_norm: one program owns one row; mean, then variance, of a tile that stays in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr,
    n_cols, eps,
    stride_xm, stride_om,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    # 0 changes no sum, so the padded lanes do not reach the mean; the sum needs more than 16 bits
    x = tl.load(x_ptr + row * stride_xm + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols  # by the number of elements, not of lanes
    # a padded lane holds 0 - mean by now, and its square would count: put 0 back
    centred = tl.where(mask, x - mean, 0.0)
    # from the distances, not as mean(x^2) - mean^2: that cancels when the mean is large beside the deviation
    variance = tl.sum(centred * centred, axis=0) / n_cols
    normalised = centred * tl.rsqrt(variance + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # one rounding to the dtype of out, by the store
    tl.store(out_ptr + row * stride_om + cols, normalised * weight + bias, mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if n_rows == 0:
        return out  # no row: no program has anything to own
    BLOCK_N = triton.next_power_of_2(n_cols)
    # Few warps, up to 64 elements a thread: the two reductions, one after the other, make every warp of a program wait
    # for all the others, and several small programs on a multiprocessor fill that time for each other.
    num_warps = max(min(BLOCK_N // 512, 4), BLOCK_N // 2048, 1)
    layer_norm_kernel[(n_rows,)](
        x, weight, bias, out,
        n_cols, eps,
        x.stride(0), out.stride(0),
        BLOCK_N=BLOCK_N,
        num_warps=num_warps,
    )  # fmt: skip
    return out
