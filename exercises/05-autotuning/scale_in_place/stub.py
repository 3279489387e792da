"""scale_in_place: x[i] = x[i] * scale, in the memory of x itself

Called as      scale_in_place(x, scale)
x              one dimension, n elements, any positive stride (a slice x[::2] comes: what lies between its elements
               must stay as it is); float32, float16 or bfloat16
scale          a float
returns        nothing: x is changed
n              0, 1, and sizes that are no multiple of any tile: 1000, 4099

One program owns one slice of BLOCK elements: loads it, multiplies in float32, stores it where it was.
The launcher is given. Write the kernel, and the decorator that picks BLOCK among three configurations or more.
Mind what a tuner does to a kernel that changes its own input.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, scale, n, stride, BLOCK: tl.constexpr):
    # 1. which elements do I own? which of them exist?
    # 2. load, multiply, store to the same place
    pass


def scale_in_place(x: torch.Tensor, scale: float) -> None:
    n = x.numel()
    if n == 0:
        return  # no element, no program
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    scale_kernel[grid](x, scale, n, x.stride(0))
