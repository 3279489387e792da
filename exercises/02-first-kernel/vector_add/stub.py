"""vector_add: out[i] = x[i] + y[i]

Called as      add(x, y)
x, y           one dimension, n elements each, contiguous; float32, float16 or bfloat16, the same for both
returns        a new tensor like x
n              0, 1, and sizes that are no multiple of BLOCK: 1023, 1025, 4099

One program owns one slice of BLOCK elements. The launcher is given; write the kernel.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 1. which program am I, and which BLOCK offsets do I own?
    # 2. which of them exist?
    # 3. load both tiles, add, store
    pass


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out
