"""batched_matmul: one program computes one tile of one product; the batch is the slowest part of its number."""

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
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(axis=0)
    # All tiles of one product come after each other, so that they find its A and B in L2.
    matrix = (pid // (tiles_m * tiles_n)).to(tl.int64)  # matrix * stride may pass 2^31
    tile = pid % (tiles_m * tiles_n)
    a_ptr += matrix * stride_as
    b_ptr += matrix * stride_bs
    c_ptr += matrix * stride_cs

    offs_m = tile // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tile % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
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

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def batched_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    S, M, K = a.shape
    N = b.shape[2]
    c = torch.empty((S, M, N), device=a.device, dtype=a.dtype)
    if c.numel() == 0:
        return c  # no element, no program
    # Products of a batch are small. A tile much larger than the matrix is mostly padding.
    if M >= 128 and N >= 128:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps = 128, 128, 64, 8
    else:
        BLOCK_M, BLOCK_N, BLOCK_K, num_warps = 32, 32, 32, 4
    # Axis 0 alone: axes 1 and 2 end at 65535, and a batch may be longer.
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N) * S,)
    batched_matmul_kernel[grid](
        a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=num_warps, num_stages=3,
    )  # fmt: skip
    return c
