"""batched_matmul: C[i] = A[i] @ B[i] for every i of a batch, in one launch

Called as      batched_matmul(a, b)
a              (S, M, K) float16 or bfloat16, any strides
b              (S, K, N), the same dtype, any strides
strides        transposed matrices, slices, and a batch stride of 0: w.expand(S, K, N) is one matrix for the whole batch
returns        a new contiguous (S, M, N) tensor of that dtype
sizes          S: 0, 1, a handful, and 70000 in one case; M, N, K: 0, 1, one tile, 17 x 33 x 65; 16 x 1024^3 when timed

One program owns one BLOCK_M x BLOCK_N tile of one matrix C[i]. Which one, and over how many axes your grid
runs, is yours to decide: the launch is not given. A CUDA grid holds 2^31 - 1 programs along axis 0, but only
65535 along axes 1 and 2. Offsets: i * stride may pass 2^31 when the batch is large, so make i a tl.int64.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def batched_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_as, stride_am, stride_ak,
    stride_bs, stride_bk, stride_bn,
    stride_cs, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    # 1. which matrix of the batch is mine, and which tile of it?
    # 2. move the three base pointers to that matrix
    # 3. as in matmul from here on
    pass


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    S, M, K = a.shape
    N = b.shape[2]
    c = torch.empty((S, M, N), device=a.device, dtype=a.dtype)
    # choose the tile sizes and the grid, and launch the kernel; 32 x 32 x 32 will do at first
    return c
