"""matmul, rung 4: loads run ahead of the dots, and the tile, the warps and the depth of the pipeline are measured."""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_of(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """The tile row and tile column of C that program `pid` owns: down GROUP_M tiles, then one to the right."""
    first_row = pid // (GROUP_M * tiles_n) * GROUP_M
    rows = min(tiles_m - first_row, GROUP_M)  # the last group may be smaller
    place = pid % (GROUP_M * tiles_n)
    return first_row + place % rows, place // rows


def config(BLOCK_M: int, BLOCK_N: int, BLOCK_K: int, num_warps: int, num_stages: int) -> triton.Config:
    tile = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "GROUP_M": 8}
    return triton.Config(tile, num_warps=num_warps, num_stages=num_stages)


@triton.autotune(
    # Small tiles for small products, which need many programs; large ones use every loaded byte more often.
    # The last is the largest that fits: 128 * 256 float32 in the registers of 8 warps, 3 stages in 144 KB.
    configs=[
        config(32, 32, 64, num_warps=4, num_stages=3),
        config(128, 128, 64, num_warps=4, num_stages=4),
        config(128, 256, 64, num_warps=8, num_stages=3),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_ak,
    stride_bk, stride_bn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tile_of(tl.program_id(axis=0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    # Rows and columns past the edge wrap round to ones that exist, are computed, and are not stored:
    # the loop needs a mask along K only.
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

    c_ptrs = c_ptr + offs_m[:, None] * N + offs_n[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def grouped_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return c
    grid = lambda meta: (triton.cdiv(M, meta["BLOCK_M"]) * triton.cdiv(N, meta["BLOCK_N"]),)
    grouped_matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride())
    return c
