"""online_softmax: one program walks its row twice; the maximum and the sum are found in one walk."""

import torch
import triton
import triton.language as tl


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, n_cols, stride_xm, stride_om, BLOCK: tl.constexpr):
    row = tl.program_id(axis=0).to(tl.int64)
    x_row = x_ptr + row * stride_xm
    out_row = out_ptr + row * stride_om
    cols = tl.arange(0, BLOCK)

    m = -float("inf")  # running maximum
    l = 0.0  # running sum of exp(x - m)
    for start in range(0, n_cols, BLOCK):
        x = tl.load(x_row + start + cols, mask=start + cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        # while only -inf has been seen, subtract 0: -inf - (-inf) would be NaN
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        # what l holds was taken against m: exp(m - m_new) moves it to the new maximum
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new

    for start in range(0, n_cols, BLOCK):
        mask = start + cols < n_cols
        x = tl.load(x_row + start + cols, mask=mask, other=-float("inf")).to(tl.float32)
        tl.store(out_row + start + cols, tl.exp(x - m) / l, mask=mask)


def online_softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out  # no row, or no column: nothing to own
    online_softmax_kernel[(n_rows,)](x, out, n_cols, x.stride(0), out.stride(0), BLOCK=1024, num_warps=4)
    return out
