"""softmax, rung 6: several programs share a row, so that a few very wide rows fill the GPU. Two launches."""

import torch
import triton
import triton.language as tl

BLOCK = 4096
MOST_PARTS = 128  # of a row; each program of the second launch reads all of its row's pairs


@triton.jit
def statistics_kernel(x_ptr, m_ptr, l_ptr, n_cols, stride_xm, stride_xn, per_part, BLOCK: tl.constexpr):
    """The maximum m and the sum l of exp(x - m), over this program's part of the row."""
    row, part = tl.program_id(axis=0).to(tl.int64), tl.program_id(axis=1)
    m = -float("inf")
    l = 0.0
    for start in range(part * per_part, tl.minimum((part + 1) * per_part, n_cols), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < n_cols, other=-float("inf"))
        x = x.to(tl.float32)
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    pair = row * tl.num_programs(axis=1) + part
    tl.store(m_ptr + pair, m)
    tl.store(l_ptr + pair, l)


@triton.jit
def output_kernel(
    x_ptr, out_ptr, m_ptr, l_ptr, n_cols, stride_xm, stride_xn, per_part, PARTS: tl.constexpr, BLOCK: tl.constexpr
):
    row, part = tl.program_id(axis=0).to(tl.int64), tl.program_id(axis=1)
    # The end of the first launch is the barrier: all pairs of the row are there. Everyone merges them for itself.
    parts = tl.arange(0, PARTS)
    pairs = row * tl.num_programs(axis=1) + parts
    there = parts < tl.num_programs(axis=1)
    m_parts = tl.load(m_ptr + pairs, mask=there, other=-float("inf"))
    l_parts = tl.load(l_ptr + pairs, mask=there, other=0.0)
    m = tl.max(m_parts, axis=0)
    l = tl.sum(l_parts * tl.exp(m_parts - m), axis=0)
    for start in range(part * per_part, tl.minimum((part + 1) * per_part, n_cols), BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < n_cols, other=-float("inf"))
        tl.store(out_ptr + row * n_cols + cols, tl.exp(x.to(tl.float32) - m) / l, mask=cols < n_cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n_rows, n_cols = x.shape
    if out.numel() == 0:
        return out
    blocks = triton.cdiv(n_cols, BLOCK)
    per_part = triton.cdiv(blocks, MOST_PARTS) * BLOCK  # columns a program: whole tiles
    parts = triton.cdiv(n_cols, per_part)
    m, l = (torch.empty((n_rows, parts), dtype=torch.float32, device=x.device) for _ in "ml")
    grid = (n_rows, parts)
    statistics_kernel[grid](x, m, l, n_cols, x.stride(0), x.stride(1), per_part, BLOCK=BLOCK, num_warps=8)
    output_kernel[grid](
        x, out, m, l, n_cols, x.stride(0), x.stride(1), per_part,
        PARTS=triton.next_power_of_2(parts), BLOCK=BLOCK, num_warps=8,
    )  # fmt: skip
    return out
