"""scale_in_place: a tuned kernel that overwrites its input; the tuner must put back what its trials changed."""

import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=4),
        triton.Config({"BLOCK": 2048}, num_warps=8),
        triton.Config({"BLOCK": 4096}, num_warps=8),
    ],
    key=["n"],  # not scale: no configuration is faster for one factor than for another
    # every trial multiplies x once more: keep a copy, and copy it back after each trial
    restore_value=["x_ptr"],
)
@triton.jit
def scale_kernel(x_ptr, scale, n, stride, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x_ptrs = x_ptr + offs * stride
    x = tl.load(x_ptrs, mask=mask)
    # float16 times a float32 scalar would be float16, with the factor rounded to it: cast first
    tl.store(x_ptrs, x.to(tl.float32) * scale, mask=mask)


def scale_in_place(x: torch.Tensor, scale: float) -> None:
    n = x.numel()
    if n == 0:
        return  # no element, no program
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    scale_kernel[grid](x, scale, n, x.stride(0))
