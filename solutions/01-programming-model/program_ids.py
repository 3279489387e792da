"""program_ids: each program adds its own id to the slice it owns."""

import torch
import triton
import triton.language as tl


@triton.jit
def add_ids_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)  # one number for the whole tile
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n  # the last tile runs past the end
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + pid, mask=mask)


def add_program_ids(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out  # no program has anything to own
    grid = (triton.cdiv(n, 64),)  # many small programs: their starts cost more than the bytes they move
    add_ids_kernel[grid](x, out, n, BLOCK=64)
    return out
