"""attention, rung 1: the textbook. One launch stores all scores; another walks over them twice and multiplies by v."""

import torch
import triton
import triton.language as tl


@triton.jit
def scores_kernel(
    q_ptr, k_ptr, s_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """s = q @ k.T * scale: float32 [B * H, N_q, N_k], all of it in memory."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    both = tl.program_id(2).to(tl.int64)
    rows, keys = offs_m[:, None] < N_q, offs_n[None, :] < N_k
    q_base = q_ptr + both // H * stride_qb + both % H * stride_qh
    k_base = k_ptr + both // H * stride_kb + both % H * stride_kh
    q = tl.load(q_base + offs_m[:, None] * stride_qn + offs_d[None, :] * stride_qd, mask=rows, other=0.0)
    k = tl.load(k_base + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kn, mask=keys, other=0.0)
    s_row = s_ptr + (both * N_q + offs_m[:, None]) * N_k  # both is 64-bit: scores may pass 2^31
    tl.store(s_row + offs_n[None, :], tl.dot(q, k) * scale, mask=rows & keys)


@triton.jit
def output_kernel(
    s_ptr, v_ptr, out_ptr,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_on, stride_od,
    H, N_q, N_k,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    both = tl.program_id(1).to(tl.int64)
    rows = offs_m[:, None] < N_q
    s_row = s_ptr + (both * N_q + offs_m[:, None]) * N_k
    v_ptrs = v_ptr + both // H * stride_vb + both % H * stride_vh + offs_n[:, None] * stride_vn
    v_ptrs += offs_d[None, :] * stride_vd

    m = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    for first in range(0, N_k, BLOCK_N):
        keys = first + offs_n[None, :]
        s = tl.load(s_row + keys, mask=rows & (keys < N_k), other=float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        l = l * tl.exp(m - m_new) + tl.sum(tl.exp(s - m_new[:, None]), axis=1)
        m = m_new

    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for first in range(0, N_k, BLOCK_N):
        keys = first + offs_n[None, :]
        p = tl.exp(tl.load(s_row + keys, mask=rows & (keys < N_k), other=float("-inf")) - m[:, None])
        v = tl.load(v_ptrs + first * stride_vn, mask=first + offs_n[:, None] < N_k, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)

    out_base = out_ptr + both // H * stride_ob + both % H * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=rows)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 64, 64
    s = torch.empty((B * H, N_q, N_k), dtype=torch.float32, device=q.device)
    tiles_m, tiles_n = triton.cdiv(N_q, BLOCK_M), triton.cdiv(N_k, BLOCK_N)
    scores_kernel[(tiles_m, tiles_n, B * H)](
        q, k, s, *q.stride(), *k.stride(), H, N_q, N_k, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4,
    )  # fmt: skip
    output_kernel[(tiles_m, B * H)](
        s, v, out, *v.stride(), *out.stride(), H, N_q, N_k,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out
