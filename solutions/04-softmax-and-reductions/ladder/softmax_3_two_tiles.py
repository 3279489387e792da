"""softmax, rung 3: a row that is no power of two is held as two tiles, so that fewer lanes lie past its end."""

import torch
import triton
import triton.language as tl

TILE = 4096  # elements a program: 32 for each of 128 threads


@triton.jit
def softmax_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_xm, stride_xn, ROWS: tl.constexpr, FIRST: tl.constexpr, REST: tl.constexpr
):
    """Rows of FIRST columns, all of them real, and up to REST more; REST = 0: none."""
    rows = tl.program_id(axis=0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    real = rows < n_rows
    x_rows, out_rows = x_ptr + rows * stride_xm, out_ptr + rows * n_cols
    cols = tl.arange(0, FIRST)[None, :]
    x = tl.load(x_rows + cols * stride_xn, mask=real, other=-float("inf")).to(tl.float32)
    m = tl.max(x, axis=1, keep_dims=True)
    if REST > 0:
        more_cols = FIRST + tl.arange(0, REST)[None, :]
        more_real = real & (more_cols < n_cols)
        more = tl.load(x_rows + more_cols * stride_xn, mask=more_real, other=-float("inf")).to(tl.float32)
        m = tl.maximum(m, tl.max(more, axis=1, keep_dims=True))

    numerator = tl.exp(x - m)
    l = tl.sum(numerator, axis=1, keep_dims=True)
    if REST > 0:
        more_numerator = tl.exp(more - m)
        l += tl.sum(more_numerator, axis=1, keep_dims=True)
        tl.store(out_rows + more_cols, more_numerator / l, mask=more_real)
    tl.store(out_rows + cols, numerator / l, mask=real)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out
    whole = triton.next_power_of_2(n_cols)
    FIRST = whole if whole == n_cols else whole // 2  # the largest power of two that fits into the row
    REST = 0 if whole == n_cols else triton.next_power_of_2(n_cols - FIRST)
    ROWS = max(TILE // whole, 1)
    num_warps = min(max(whole // 1024, 4), 32)
    softmax_kernel[(triton.cdiv(n_rows, ROWS),)](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), ROWS=ROWS, FIRST=FIRST, REST=REST, num_warps=num_warps
    )
    return out
