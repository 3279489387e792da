"""autotuned_add: out[i] = x[i] + y[i], with a tile size that Triton picks by measuring

Called as      autotuned_add(x, y)
x, y           one dimension, n elements each, contiguous; float32, float16 or bfloat16, the same for both
returns        a new tensor like x
n              0, 1, and sizes that are no multiple of any tile: 1000, 4099

One program owns one slice of BLOCK elements. The kernel is given and right for every BLOCK; write what is around it:

1. @triton.autotune with three or four configurations (BLOCK 512 to 4096, 4 or 8 warps) and the right key
2. a grid that covers n whichever configuration runs
3. the launch, which no longer names BLOCK
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def autotuned_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out  # no element, no program
    # launch add_kernel here
    return out
