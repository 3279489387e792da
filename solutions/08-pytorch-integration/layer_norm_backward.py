"""layer_norm_backward: grad_x row by row; the sums over all rows in two stages, without atomics."""

import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr,
    mean_ptr, rstd_ptr,
    n_cols, eps,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    tl.store(out_ptr + row * n_cols + cols, centred * rstd * weight + bias, mask=mask)
    # two numbers a row are kept for backward: cheaper than finding them again
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def backward_kernel(
    x_ptr, weight_ptr, mean_ptr, rstd_ptr, grad_ptr,
    grad_x_ptr, partial_weight_ptr, partial_bias_ptr,
    n_rows, n_cols,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(axis=0)
    programs = tl.num_programs(axis=0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    # this program's share of two sums over all rows
    sum_weight = tl.zeros((BLOCK_N,), dtype=tl.float32)
    sum_bias = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for row in range(program.to(tl.int64), n_rows, programs):
        # 0 in the padded lanes of grad keeps them out of all four sums
        grad = tl.load(grad_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        xhat = (x - tl.load(mean_ptr + row)) * rstd
        g = grad * weight
        # mean and rstd depend on every x of the row: hence the two means
        along_one = tl.sum(g, axis=0) / n_cols
        along_xhat = tl.sum(g * xhat, axis=0) / n_cols
        grad_x = rstd * (g - along_one - xhat * along_xhat)
        tl.store(grad_x_ptr + row * n_cols + cols, grad_x, mask=mask)
        sum_weight += grad * xhat
        sum_bias += grad
    tl.store(partial_weight_ptr + program * n_cols + cols, sum_weight, mask=mask)
    tl.store(partial_bias_ptr + program * n_cols + cols, sum_bias, mask=mask)


@triton.jit
def column_sum_kernel(
    partial_ptr, out_ptr,
    n_rows, n_cols,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    cols = tl.program_id(axis=0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
        acc += tl.load(partial_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=0.0)
    # the store rounds to the dtype of the gradient
    tl.store(out_ptr + cols, tl.sum(acc, axis=0), mask=cols < n_cols)


def launch_shape(n_cols: int) -> dict[str, int]:
    BLOCK_N = triton.next_power_of_2(n_cols)
    return {"BLOCK_N": BLOCK_N, "num_warps": min(max(BLOCK_N // 512, 1), 16)}


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        x = x.contiguous()
        n_rows, n_cols = x.shape
        out = torch.empty_like(x)
        mean = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        rstd = torch.empty(n_rows, dtype=torch.float32, device=x.device)
        forward_kernel[(n_rows,)](x, weight, bias, out, mean, rstd, n_cols, eps, **launch_shape(n_cols))
        ctx.save_for_backward(x, weight, mean, rstd)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        x, weight, mean, rstd = ctx.saved_tensors
        n_rows, n_cols = x.shape
        grad_out = grad_out.contiguous()  # after .sum() it is one number with stride 0
        programs = min(triton.cdiv(n_rows, 2), 528)  # four for each of the 132 multiprocessors of an H200
        grad_x = torch.empty_like(x)
        partial_weight = torch.empty(programs, n_cols, dtype=torch.float32, device=x.device)
        partial_bias = torch.empty(programs, n_cols, dtype=torch.float32, device=x.device)
        backward_kernel[(programs,)](
            x, weight, mean, rstd, grad_out,
            grad_x, partial_weight, partial_bias,
            n_rows, n_cols,
            **launch_shape(n_cols),
        )  # fmt: skip
        grad_weight, grad_bias = torch.empty_like(weight), torch.empty_like(weight)
        grid = (triton.cdiv(n_cols, 64),)
        column_sum_kernel[grid](partial_weight, grad_weight, programs, n_cols, BLOCK_M=32, BLOCK_N=64)
        column_sum_kernel[grid](partial_bias, grad_bias, programs, n_cols, BLOCK_M=32, BLOCK_N=64)
        return grad_x, grad_weight, grad_bias, None  # eps has no gradient


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    return LayerNorm.apply(x, weight, bias, eps)
