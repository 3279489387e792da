"""seeded_dropout: out[i] = x[i] / (1 - p) where element i is kept, else 0

Called as      dropout(x, p, seed)
x              one dimension, n elements, contiguous; float32, float16 or bfloat16
p              a Python float from 0 to 1, both included: the probability that an element is dropped
seed           a Python int from 0 to 2^62
returns        a new tensor like x
n              0, 1, and sizes that are no multiple of your BLOCK

Element i is kept where u >= p, with u = tl.rand(seed, i). tl.rand makes float32 numbers in [0, 1) from a seed and a
tile of offsets, and nothing else: the same seed and offset give the same number on every device, in any program. So the
answer depends on p and seed alone, not on your BLOCK, and a backward pass could make the same mask again.

A dropped element is 0 even if x[i] is inf or NaN. Compute in float32 whatever x is. One program owns one slice of BLOCK
elements. Write the kernel and the launch.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    # one random number an element: which offset belongs to which element?
    pass


def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    # size the grid, launch; no mask tensor is needed
    return out
