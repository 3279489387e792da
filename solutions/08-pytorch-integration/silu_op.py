"""silu_op: silu(x) = x * sigmoid(x) as an operator of PyTorch's own kind, with its gradient."""

import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton


@triton.jit
def silu_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)  # exp wants float32
    tl.store(out_ptr + offs, x * tl.sigmoid(x), mask=mask)  # the store casts to the output's dtype


@triton.jit
def silu_backward_kernel(x_ptr, grad_ptr, grad_x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    grad = tl.load(grad_ptr + offs, mask=mask).to(tl.float32)
    s = tl.sigmoid(x)
    # product rule: d(x * s)/dx = s + x * s * (1 - s)
    tl.store(grad_x_ptr + offs, grad * (s + x * s * (1 - s)), mask=mask)


@triton_op("triton_prep::silu", mutates_args=())
def silu(x: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        wrap_triton(silu_kernel)[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024)
    return out


# The backward is an operator as well: then torch.compile can trace it, which a bare launch would prevent.
@triton_op("triton_prep::silu_backward", mutates_args=())
def silu_backward(x: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    x, grad = x.contiguous(), grad.contiguous()
    grad_x = torch.empty_like(x)
    n = x.numel()
    if n > 0:
        wrap_triton(silu_backward_kernel)[(triton.cdiv(n, 1024),)](x, grad, grad_x, n, BLOCK=1024)
    return grad_x


def setup_context(ctx, inputs, output):
    (x,) = inputs
    ctx.save_for_backward(x)


def backward(ctx, grad):
    (x,) = ctx.saved_tensors
    return silu_backward(x, grad)


silu.register_autograd(backward, setup_context=setup_context)
