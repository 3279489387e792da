"""debug_me: a complete kernel with three faults: find them all

Called as      logsumexp(x)
x              (M, N), any strides; float32 or float16; finite values of any size and sign
returns        a new float32 tensor of M elements: out[i] = log(sum over j of exp(x[i, j])), as torch.logsumexp gives
M, N           M from 0; N from 1: 5, 63, 64, 65, 300

One program owns ROWS rows, one after another, and walks through each in tiles of BLOCK columns, with a running maximum
and a rescaled sum.

Three things in the kernel are wrong; the launcher is right. The faults hide each other: mending one changes the answer
and leaves it wrong. Do not rewrite it. For each fault think of the smallest input that shows this one and not the
other two, run it, and mend the line.
"""

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
    m = -float("inf")
    l = 0.0
    for row in range(first, tl.minimum(first + ROWS, n_rows)):
        for start in range(0, n_cols, BLOCK):
            cols = start + tl.arange(0, BLOCK)
            x_ptrs = x_ptr + row * stride_n + cols * stride_m
            x = tl.load(x_ptrs, mask=cols < n_cols, other=0.0).to(tl.float32)
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
