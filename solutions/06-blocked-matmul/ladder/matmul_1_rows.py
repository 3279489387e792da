"""matmul, rung 1: one program owns a piece of one row of C and multiplies without the tensor cores."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0)
    cols = tl.program_id(axis=1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros([BLOCK_N], dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        ks = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + row * stride_am + ks * stride_ak, mask=ks < K, other=0.0).to(tl.float32)
        b = tl.load(
            b_ptr + ks[:, None] * stride_bk + cols[None, :] * stride_bn,
            mask=(ks[:, None] < K) & (cols[None, :] < N),
            other=0.0,
        )
        # each element of B that was loaded is used for one product, then dropped
        acc += tl.sum(a[:, None] * b.to(tl.float32), axis=0)
    tl.store(c_ptr + row * N + cols, acc.to(c_ptr.dtype.element_ty), mask=cols < N)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return c
    BLOCK_N, BLOCK_K = 128, 32
    matmul_kernel[(M, triton.cdiv(N, BLOCK_N))](
        a, b, c, M, N, K, *a.stride(), *b.stride(), BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4
    )
    return c
