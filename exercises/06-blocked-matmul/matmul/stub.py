"""matmul: C = A @ B, one tile of C per program

Called as      matmul(a, b)
a              (M, K), any strides: contiguous, transposed, every second column, …
b              (K, N), any strides
dtypes         float16, bfloat16 or float32, the same for both
returns        a new contiguous (M, N) tensor of that dtype
M, N, K        0, 1, exact multiples of a tile, and sizes such as 17 x 33 x 65; 4096 x 4096 x 4096 when timed

One program owns one BLOCK_M x BLOCK_N tile of C and sweeps the whole of K for it, BLOCK_K columns of A and
rows of B at a time. Accumulate in float32, round to the output's dtype once, at the end. float32 inputs must
be multiplied as float32, not as TF32.

The launcher is given; write the kernel. Tile sizes, num_warps and num_stages are yours to change afterwards:
these are small, so that a first version is quick to check, and slow on a GPU.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # 1. which tile of C is mine? programs walk C row of tiles by row of tiles
    # 2. pointers to my first A tile (BLOCK_M, BLOCK_K) and my first B tile (BLOCK_K, BLOCK_N)
    # 3. for each step along K: load both tiles, multiply into the accumulator, move the pointers on
    # 4. store my tile of C
    pass


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return c
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 32
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_kernel[grid](
        a, b, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4, num_stages=3,
    )  # fmt: skip
    return c
