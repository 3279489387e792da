"""persistent_matmul: C = A @ B by a fixed number of programs, each of which works through many tiles

Called as      persistent_matmul(a, b, programs)
a              (M, K) float16, stride(1) = 1, stride(0) a multiple of 8
b              (K, N) float16, stride(1) = 1, stride(0) a multiple of 8
programs       how many programs to launch at most; the number of multiprocessors when timed, 4 in most cases
returns        a new contiguous (M, N) float16 tensor
M, N, K        N and K are multiples of 8, from 8; M anything from 0. Fewer tiles than programs, and many more

Grouped order has given you tile_of. New are two things.
Persistence: program p takes tiles p, p + P, p + 2 P, … of all tiles, where P is the number of programs launched.
Tensor descriptors: made in the kernel, once for each matrix, with tl.make_tensor_descriptor(pointer, shape, strides,
block_shape). desc.load([row, column]) takes the corner of a tile, in elements; what lies outside the matrix comes
as 0, and desc.store leaves it out. On an H100 or H200 each is one TMA copy: no pointers, no masks.

The launcher is given; write the kernel. A descriptor made in a kernel needs a little memory on a GPU, which Triton
asks an allocator for: see allocate below.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_of(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """The tile row and tile column of tile number `tile`, in grouped order."""
    tiles_per_group = GROUP_M * tiles_n
    first_row = tile // tiles_per_group * GROUP_M
    rows = min(tiles_m - first_row, GROUP_M)
    place = tile % tiles_per_group
    return first_row + place % rows, place // rows


@triton.jit
def persistent_matmul_kernel(
    a_ptr, b_ptr, c_ptr,
    M, N, K,
    stride_am, stride_bk, stride_cm,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    # 1. three descriptors: shape, strides and block shape of A, of B, of C
    # 2. for each of my tiles: where is it? a fresh accumulator; the K loop; store
    pass


def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory on the GPU in which the kernels keep their descriptors."""
    return torch.empty(size, device="cuda", dtype=torch.int8)


def persistent_matmul(a: torch.Tensor, b: torch.Tensor, programs: int) -> torch.Tensor:
    M, K = a.shape
    _, N = b.shape
    c = torch.empty((M, N), device=a.device, dtype=a.dtype)
    if M == 0 or N == 0:
        return c
    BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M = 32, 32, 32, 4
    triton.set_allocator(allocate)
    grid = (min(programs, triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)),)
    persistent_matmul_kernel[grid](
        a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0),
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, GROUP_M=GROUP_M, num_warps=4, num_stages=3,
    )  # fmt: skip
    return c
