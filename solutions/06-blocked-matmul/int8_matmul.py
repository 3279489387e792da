"""int8_matmul: a K loop in whole numbers; the scales stand outside the sum and are applied once, in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def int8_matmul_kernel(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    # Programs in groups of GROUP_M tile rows, as in grouped_matmul: neighbours in time share tiles of A and B in L2.
    pid = tl.program_id(axis=0)
    programs_per_group = GROUP_M * tl.cdiv(N, BLOCK_N)
    first_row = pid // programs_per_group * GROUP_M
    rows = min(tl.cdiv(M, BLOCK_M) - first_row, GROUP_M)
    place = pid % programs_per_group
    offs_m = (first_row + place % rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = place // rows * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # Rows and columns past the edge wrap round to ones that exist, and are never stored: no masks along M and N.
    a_ptrs = a_ptr + (offs_m % M)[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + (offs_n % N)[None, :] * stride_bn

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.int32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0)
        acc = tl.dot(a, b, acc, out_dtype=tl.int32)  # without out_dtype Triton 3.6 to 3.8 expect a float32 acc
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    a_scale = tl.load(a_scale_ptr + offs_m, mask=offs_m < M, other=0.0)
    b_scale = tl.load(b_scale_ptr + offs_n, mask=offs_n < N, other=0.0)
    c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, c.to(tl.float16), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def int8_matmul(a: torch.Tensor, b: torch.Tensor, a_scale: torch.Tensor, b_scale: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float16)
    if M == 0 or N == 0:
        return c  # no element, no program
    # An int8 tile has half the bytes of a float16 one, so BLOCK_K is twice as long for the same shared memory.
    if triton.cdiv(M, 128) * triton.cdiv(N, 256) >= 100:
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps = 128, 256, 128, 8, 8
    else:
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps = 32, 32, 64, 4, 4
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    int8_matmul_kernel[grid](
        a, b, a_scale, b_scale, c, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), c.stride(0), c.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=num_warps, num_stages=3,
    )  # fmt: skip
    return c
