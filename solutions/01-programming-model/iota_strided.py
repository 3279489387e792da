"""iota_strided: the index says what an element is worth, the offset says where it lies."""

import torch
import triton
import triton.language as tl


@triton.jit
def iota_kernel(
    out_ptr,
    n_cols,
    stride_m,
    stride_n,
    step,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    index = row * n_cols + cols  # counts elements of the view
    offset = row * stride_m + cols * stride_n  # counts elements of the memory under it
    # nothing is loaded: a kernel may make its values from its ids alone
    tl.store(out_ptr + offset, index * step, mask=cols < n_cols)


def fill_iota(out: torch.Tensor, step: int) -> None:
    n_rows, n_cols = out.shape
    if out.numel() == 0:
        return  # no program has anything to own
    BLOCK = 1024
    grid = (n_rows, triton.cdiv(n_cols, BLOCK))
    iota_kernel[grid](out, n_cols, out.stride(0), out.stride(1), step, BLOCK=BLOCK)
