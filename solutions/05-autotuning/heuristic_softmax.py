"""heuristic_softmax: the rows of a tile are measured, its width and its warps follow by arithmetic."""

import torch
import triton
import triton.language as tl


def warps(args) -> int:
    # 16 elements a thread
    return min(max(args["BLOCK_M"] * args["BLOCK_N"] // 512, 1), 16)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 4}),
        triton.Config({"BLOCK_M": 2}),
        triton.Config({"BLOCK_M": 1}),
    ],
    key=["n_cols"],
)
# under autotune, so that it sees the BLOCK_M of the configuration; in the order written, so that warps sees BLOCK_N
@triton.heuristics(
    {
        "BLOCK_N": lambda args: triton.next_power_of_2(args["n_cols"]),
        "num_warps": warps,  # overrides what the configuration says, 4
    }
)
@triton.jit
def softmax_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    stride_xm, stride_om,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(axis=0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :], mask=mask, other=-float("inf")).to(tl.float32)
    # a row past the end is all -inf and becomes NaN; the mask keeps it from being stored
    numerator = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
    out = numerator / tl.sum(numerator, axis=1, keep_dims=True)
    tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :], out, mask=mask)


def heuristic_softmax(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if n_rows == 0:
        return out  # no row, no program
    grid = lambda meta: (triton.cdiv(n_rows, meta["BLOCK_M"]),)
    softmax_kernel[grid](x, out, n_rows, n_cols, x.stride(0), out.stride(0))
    return out
