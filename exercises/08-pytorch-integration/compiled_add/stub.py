"""compiled_add: relu(2 * x + y) with the addition in a Triton kernel, in one compiled graph

Called as      compiled_add(x, y); on a GPU as torch.compile(compiled_add, fullgraph=True)(x, y)
x, y           the same shape, any strides (also transposed); float32, float16 or bfloat16, the same for both
returns        a new contiguous tensor of that shape and dtype
n              0, 1, and sizes that are no multiple of BLOCK

The kernel is given: one program adds one slice of BLOCK elements of dense memory. Write the function around it:
double x with PyTorch, add y with the kernel, apply relu with PyTorch. fullgraph=True turns whatever breaks the graph
into an error: a print, an if on a tensor's value. Without a GPU the function is called as it is, uncompiled.
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


def compiled_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    # 1. PyTorch: 2 * x
    # 2. the kernel: allocate the output, compute the grid, launch
    # 3. PyTorch: relu
    raise NotImplementedError
