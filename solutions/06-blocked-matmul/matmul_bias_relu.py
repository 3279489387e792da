"""matmul_bias_relu: bias and ReLU are applied to the float32 tile in registers; the output is written once."""

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

    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        left = K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=offs_k[None, :] < left, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < left, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    # The epilogue, in float32. Adding after the loop and not before it frees the registers of the bias during the loop.
    bias = tl.load(bias_ptr + offs_n * stride_bias, mask=offs_n < N, other=0.0)
    acc += bias.to(tl.float32)[None, :]
    acc = tl.where(acc < 0, 0.0, acc)  # not tl.maximum(acc, 0.0): on a GPU that turns a NaN into 0

    out_ptrs = out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def matmul_bias_relu(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    out = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return out  # no element, no program
    # Large products take the largest tile that fits in the registers; small ones small tiles, so that there are
    # enough programs for every multiprocessor.
    if triton.cdiv(M, 128) * triton.cdiv(N, 256) >= 100:
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps = 128, 256, 64, 8, 8
    else:
        BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, num_warps = 32, 32, 32, 4, 4
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_bias_relu_kernel[grid](
        a, b, bias, out, M, N, K,
        a.stride(0), a.stride(1), b.stride(0), b.stride(1), bias.stride(0), out.stride(0), out.stride(1),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=num_warps, num_stages=3,
    )  # fmt: skip
    return out
