"""gelu: out = x * Phi(x), where Phi is the normal distribution's cumulative function; exact, or the tanh variant

Called as      gelu(x, approximate)
x              any shape, contiguous; float32, float16 or bfloat16
approximate    "none":  x * 0.5 * (1 + erf(x / sqrt(2)))
               "tanh":  x * 0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
returns        a new tensor like x
x.numel()      0, 1, and sizes that are no multiple of your BLOCK; values up to 1e4 in size, and inf

Compute in float32 whatever x is. One kernel serves both: TANH is a constexpr, so each variant is compiled without the
other. One program owns one slice of BLOCK elements. Write the kernel and the launch.

There is tl.erf, tl.exp and tl.sigmoid, but no tl.tanh: make it from one of these. Write the constants as numbers:
sqrt(2) = 1.4142135623730951, sqrt(2 / pi) = 0.7978845608028654. A kernel may not use a plain global such as C = 0.7.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    # if TANH: … else: … is decided when the kernel is compiled
    pass


def gelu(x: torch.Tensor, approximate: str) -> torch.Tensor:
    out = torch.empty_like(x)
    # size the grid, launch
    return out
