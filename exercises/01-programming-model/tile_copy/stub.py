"""tile_copy: out[i] = x[i]

Called as      tile_copy(x, block)
x              one dimension, n elements, contiguous; float32, float16, bfloat16, int8, int64 or bool
block          how many elements one program owns: a power of two, 16 to 1024
returns        a new tensor like x
n              0, 1, and sizes that are no multiple of block

One program owns one tile of `block` elements. The kernel's signature is given: write its body, and write the launch.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # which offsets does this program own, and which of them exist?
    pass


def tile_copy(x: torch.Tensor, block: int) -> torch.Tensor:
    out = torch.empty_like(x)
    # how many programs does it take to cover x? launch that many
    return out
