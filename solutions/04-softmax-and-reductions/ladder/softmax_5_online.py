"""softmax, rung 5: one program walks along its row, so that the row need not fit into the registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, stride_xm, stride_xn, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_row = x_ptr + row * stride_xm
    out_row = out_ptr + row * n_cols

    # Every lane keeps a maximum and a sum of its own: the lanes meet once a row, not once a tile.
    m = tl.full([BLOCK], -float("inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, x)
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)  # -inf - (-inf) would be NaN
        l = l * tl.exp(m - shift) + tl.exp(x - shift)
        m = m_new
    m_row = tl.max(m, axis=0)
    shift = tl.where(m_row == -float("inf"), 0.0, m_row)
    l_row = tl.sum(l * tl.exp(m - shift), axis=0)

    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_row + cols * stride_xn, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        tl.store(out_row + cols, tl.exp(x - m_row) / l_row, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out
    BLOCK = min(triton.next_power_of_2(n_cols), 4096)
    softmax_kernel[(n_rows,)](
        x, out, n_cols, x.stride(0), x.stride(1), BLOCK=BLOCK, num_warps=min(max(BLOCK // 512, 1), 8)
    )
    return out
