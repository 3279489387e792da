"""grid_2d: axis 0 of the grid counts rows, axis 1 counts tiles of columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def outer_kernel(rows_ptr, cols_ptr, out_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < N  # rows need no mask: there are exactly M programs on axis 0
    r = tl.load(rows_ptr + row)  # one value for the whole tile
    c = tl.load(cols_ptr + offs, mask=mask)
    tl.store(out_ptr + row * N + offs, r * c, mask=mask)


def outer(rows: torch.Tensor, cols: torch.Tensor) -> torch.Tensor:
    M, N = rows.numel(), cols.numel()
    out = torch.empty((M, N), device=rows.device, dtype=rows.dtype)
    if out.numel() == 0:
        return out  # no program has anything to own
    grid = (M, triton.cdiv(N, 64))  # many small programs: their starts cost more than the bytes they move
    outer_kernel[grid](rows, cols, out, N, BLOCK=64)
    return out
