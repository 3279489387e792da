"""gelu: one source, two kernels; the constexpr switch costs nothing when it runs."""

import torch
import triton
import triton.language as tl


@triton.jit
def gelu_kernel(x_ptr, out_ptr, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)  # tl.erf takes no float16, and x * x * x would overflow there
    if TANH:
        z = 0.7978845608028654 * (x + 0.044715 * x * x * x)  # sqrt(2 / pi)
        # 0.5 * (1 + tanh(z)) is sigmoid(2z), which overflows for no z
        y = x * tl.sigmoid(2.0 * z)
    else:
        y = x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476))  # 1 / sqrt(2)
    tl.store(out_ptr + offs, y, mask=mask)


def gelu(x: torch.Tensor, approximate: str) -> torch.Tensor:
    out = torch.empty_like(x)
    n = x.numel()  # x is contiguous: its shape does not matter here
    if n == 0:
        return out  # no program has anything to own
    BLOCK = 1024
    gelu_kernel[(triton.cdiv(n, BLOCK),)](x, out, n, TANH=approximate == "tanh", BLOCK=BLOCK)
    return out
