"""matmul_bias_relu: out = relu(A @ B + bias), with the last two steps done before the tile leaves the registers

Called as      matmul_bias_relu(a, b, bias)
a              (M, K), any strides
b              (K, N), any strides: often w.t() of a weight w of shape (N, K)
bias           (N,), any stride: one value for each column of the output
dtype          float16 or bfloat16, the same for all three
M, N, K        0, 1, exact multiples of a tile, and sizes such as 17 x 33 x 65; 4096^3 when timed
values         A @ B may lie beyond 65504 where A @ B + bias does not; a NaN in the sum stays NaN, as in torch.relu
returns        a new contiguous (M, N) tensor of that dtype, rounded once

One program owns one tile of the output. Its K loop is given; what follows the loop is yours: the epilogue.
Unfused, bias and ReLU would each read and write the whole output once more. Here they cost one load of BLOCK_N values.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_bias_relu_kernel(
    a_ptr, b_ptr, bias_ptr, out_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_bias,
    stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(axis=0)
    tiles_n = tl.cdiv(N, BLOCK_N)
    offs_m = pid // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_k[:, None] < left) & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    # 1. load the bias of my columns; which mask?
    # 2. add it to the tile; which axis of the tile does it run along?
    # 3. ReLU, keeping NaN
    # 4. round to the output's dtype, store


def matmul_bias_relu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return out
    BLOCK_M, BLOCK_N, BLOCK_K = 32, 32, 32
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_bias_relu_kernel[grid](
        a, b, bias, out, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), bias.stride(0), out.stride(0), out.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out
