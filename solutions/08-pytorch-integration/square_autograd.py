"""square_autograd: an autograd.Function with one kernel for the value and one for the gradient."""

import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * x, mask=mask)


@triton.jit
def square_backward_kernel(x_ptr, grad_ptr, grad_x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    grad = tl.load(grad_ptr + offs, mask=mask)
    tl.store(grad_x_ptr + offs, 2 * x * grad, mask=mask)  # dx = dout * d(x^2)/dx


def launch(kernel, *tensors: torch.Tensor) -> None:
    n = tensors[0].numel()
    if n > 0:  # no element, no program
        kernel[(triton.cdiv(n, 1024),)](*tensors, n, BLOCK=1024)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()  # the kernels address memory as one dense run of n elements
        out = torch.empty_like(x)
        launch(square_kernel, x, out)
        ctx.save_for_backward(x)
        return out

    @staticmethod
    def backward(ctx, grad_out: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        grad_x = torch.empty_like(x)
        # after .sum() the gradient is one number with stride 0; after .t() it is transposed
        launch(square_backward_kernel, x, grad_out.contiguous(), grad_x)
        return grad_x  # forward took one argument, so one gradient goes back


def square(x: torch.Tensor) -> torch.Tensor:
    return Square.apply(x)
