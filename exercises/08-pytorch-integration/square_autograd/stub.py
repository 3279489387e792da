"""square_autograd: out = x * x, differentiable

Called as      square(x)
x              any shape, any strides (also transposed); float32, float16 or bfloat16; requires grad
returns        a new contiguous tensor of x's shape and dtype, with a grad_fn
then           the grader sends a gradient back: torch.autograd.grad(square(x), x, grad_out)
grad_out       x's shape and dtype, any strides: contiguous, transposed, or expanded (stride 0, as after .sum())
n              0, 1, and sizes that are no multiple of a block

PyTorch sees no gradient through a kernel launch. Write an autograd.Function that says what the gradient is, with one
kernel for the value and one for the gradient. In each, one program owns one slice of BLOCK elements.
The kernels may assume dense memory, if you see to it that they get it. The launches are yours to write.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pass  # out = x * x


@triton.jit
def square_backward_kernel(x_ptr, grad_ptr, grad_x_ptr, n, BLOCK: tl.constexpr):
    pass  # grad_x = grad * (the derivative of x * x)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        # launch the first kernel, and save what backward will need
        raise NotImplementedError

    @staticmethod
    def backward(ctx, grad_out):
        # launch the second kernel; return one gradient for each argument of forward
        raise NotImplementedError


def square(x: torch.Tensor) -> torch.Tensor:
    return Square.apply(x)
