"""predicated_fill: out[i] = value, but only where i >= first and flags[i] is set

Called as      fill_where(out, flags, first, value)
out            one dimension, n elements, contiguous; float32, float16 or int32. Written in place
flags          one dimension, n elements, contiguous; bool or int8. Set means not 0, so -1 and 2 are set too
first          a Python int from 0 to n; elements before it keep what they hold
value          a Python float, or an int where out is int32
returns        nothing
n              0, 1, and sizes that are no multiple of your BLOCK

Every other element keeps what it holds, bit for bit. One program owns one tile of BLOCK elements. Write the kernel
and the launch.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def fill_where_kernel(out_ptr, flags_ptr, first, value, n, BLOCK: tl.constexpr):
    # three conditions decide about a lane: which of them protects the load of flags, and which the store?
    pass


def fill_where(out: torch.Tensor, flags: torch.Tensor, first: int, value: float) -> None:
    # size the grid, launch
    pass
