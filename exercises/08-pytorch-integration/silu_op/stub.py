"""silu_op: silu(x) = x * sigmoid(x), as a PyTorch operator with a gradient

Called as      silu(x)
x              any shape, any strides; float32, float16 or bfloat16; compute in float32
returns        a new contiguous tensor of x's shape and dtype
then           a gradient is sent back (contiguous, transposed or expanded), and torch.library.opcheck looks at silu
n              0, 1, and sizes that are no multiple of a block

With s = sigmoid(x), the derivative is s + x * s * (1 - s).

Write the kernels (one program owns one slice of BLOCK elements), register `silu` with triton_op, launch through
wrap_triton, and register the gradient. backward may be PyTorch operations, or a second triton_op, which is faster.
On a GPU all of opcheck runs; without one only its schema and registration tests do, and wrap_triton does nothing.
"""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass


@triton_op("triton_prep::silu", mutates_args=())
def silu(x: torch.Tensor) -> torch.Tensor:
    # launch silu_kernel through wrap_triton
    raise NotImplementedError


def setup_context(ctx, inputs, output):
    # save what backward needs
    raise NotImplementedError


def backward(ctx, grad):
    # the gradient with respect to x
    raise NotImplementedError


# last: tell PyTorch that these two belong to silu
