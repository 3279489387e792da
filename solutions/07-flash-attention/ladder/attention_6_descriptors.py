"""attention, rung 6: q, k and v come through descriptors; 4 warps a program, and two programs share a multiprocessor.

A descriptor wants rows of stride 1 that start at multiples of 16 bytes: other inputs are copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(q, k_desc, v_desc, m, l, acc, start, stop, N_k, scale, RAGGED: tl.constexpr, BLOCK_N: tl.constexpr):
    """Take the keys [start, stop) into m, l and acc."""
    for first in range(start, stop, BLOCK_N):
        k = k_desc.load([first, 0])
        v = v_desc.load([first, 0])
        s = tl.dot(q, k.T)
        if RAGGED:  # what lies past N_k comes as 0, and a score of 0 would count
            s = tl.where((first + tl.arange(0, BLOCK_N) < N_k)[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1) * scale)
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s * scale - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    return m, l, acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    stride_qb, stride_qh, stride_qn,
    stride_kb, stride_kh, stride_kn,
    stride_vb, stride_vh, stride_vn,
    stride_ob, stride_oh, stride_on, stride_od,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    rows = offs_m[:, None] < N_q
    # one descriptor a head: it ends where the head ends
    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    q_desc = tl.make_tensor_descriptor(q_base, shape=[N_q, D], strides=[stride_qn, 1], block_shape=[BLOCK_M, D])
    k_desc = tl.make_tensor_descriptor(k_base, shape=[N_k, D], strides=[stride_kn, 1], block_shape=[BLOCK_N, D])
    v_desc = tl.make_tensor_descriptor(v_base, shape=[N_k, D], strides=[stride_vn, 1], block_shape=[BLOCK_N, D])
    q = q_desc.load([tl.program_id(0) * BLOCK_M, 0])

    m = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e)
    whole = N_k // BLOCK_N * BLOCK_N  # keys in whole tiles: no mask there
    m, l, acc = attend(q, k_desc, v_desc, m, l, acc, 0, whole, N_k, scale, RAGGED=False, BLOCK_N=BLOCK_N)
    m, l, acc = attend(q, k_desc, v_desc, m, l, acc, whole, N_k, N_k, scale, RAGGED=True, BLOCK_N=BLOCK_N)

    out_base = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=rows)


def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
    """Memory on the GPU in which the kernels keep their descriptors."""
    return torch.empty(size, device="cuda", dtype=torch.int8)


def described(x: torch.Tensor) -> torch.Tensor:
    """x, or a contiguous copy of it where no descriptor can be made of x."""
    whole = x.stride(3) == 1 and all(s * x.element_size() % 16 == 0 for s in x.stride()[:3])
    return x if whole and x.data_ptr() % 16 == 0 else x.contiguous()


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    q, k, v = described(q), described(k), described(v)
    # At D = 128 a program takes 96 KB of shared memory and 255 registers a thread: two fit beside each other, and the
    # tensor cores work for one while the other computes its exponentials.
    BLOCK_M, BLOCK_N = (128, 64) if D == 128 else (64, 128)
    triton.set_allocator(allocate)
    grid = (triton.cdiv(N_q, BLOCK_M), B * H)
    attention_kernel[grid](
        q, k, v, out, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride(), H, N_q, N_k, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
