"""debug_me: the three faults mended; each mended line says what was wrong and what shows it."""

import torch
import triton
import triton.language as tl


@triton.jit
def logsumexp_kernel(
    x_ptr, out_ptr,
    n_rows, n_cols,
    stride_m, stride_n,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    first = tl.program_id(axis=0) * ROWS
    for row in range(first, tl.minimum(first + ROWS, n_rows)):
        # once a row: before the loop over rows, row 1 began with the maximum and the sum of row 0. Two rows show it
        m = -float("inf")
        l = 0.0
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            # rows go with stride_m: exchanged, row i was column i. One row whose elements differ shows it
            x_ptrs = x_ptr + row * stride_m + cols * stride_n
            # -inf is the fill for a maximum and for exp: 0 added exp(0 - m) a lane. N = 63 shows it
            x = tl.load(x_ptrs, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
            m_new = tl.maximum(m, tl.max(x, axis=0))
            l = l * tl.exp(m - m_new) + tl.sum(tl.exp(x - m_new), axis=0)
            m = m_new
        tl.store(out_ptr + row, m + tl.log(l))


def logsumexp(x: torch.Tensor) -> torch.Tensor:
    n_rows, n_cols = x.shape
    out = torch.empty(n_rows, dtype=torch.float32, device=x.device)
    if n_rows == 0:
        return out  # no row, no program
    grid = (triton.cdiv(n_rows, 4),)
    logsumexp_kernel[grid](
        x, out, n_rows, n_cols, x.stride(0), x.stride(1), ROWS=4, BLOCK=64
    )  # fmt: skip
    return out
