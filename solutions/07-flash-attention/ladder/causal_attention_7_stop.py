"""Causal attention, rung 7: each program stops where its last row sees no more keys. One loop, masked throughout."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_on, stride_od,
    H, N, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    rows = offs_m[:, None] < N
    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    k_ptrs = k_base + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kn  # K transposed: [D, BLOCK_N]
    v_ptrs = v_base + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
    q = tl.load(q_base + offs_m[:, None] * stride_qn + offs_d[None, :] * stride_qd, mask=rows, other=0.0)

    m = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e)
    for first in range(0, tl.minimum((tl.program_id(0) + 1) * BLOCK_M, N), BLOCK_N):
        keys = first + offs_n
        k = tl.load(k_ptrs + first * stride_kn, mask=(keys < N)[None, :], other=0.0)
        v = tl.load(v_ptrs + first * stride_vn, mask=(keys < N)[:, None], other=0.0)
        s = tl.where(keys[None, :] <= offs_m[:, None], tl.dot(q, k), float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1) * scale)
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s * scale - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new

    out_base = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=rows)


def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N, D = q.shape
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    BLOCK_M, BLOCK_N = 128, 64
    grid = (triton.cdiv(N, BLOCK_M), B * H)
    causal_attention_kernel[grid](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(), H, N, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out
