"""causal_attention: attention in which row i sees keys 0..i. Tiles above the diagonal are not visited at all."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q, k_ptrs, v_ptrs, m_i, l_i, acc, start, stop,
    stride_kn, stride_vn, offs_m, N, scale,
    DIAGONAL: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Take the keys [start, stop) into the running maximum m_i, denominator l_i and weighted sum acc."""
    for first in range(start, stop, BLOCK_N):
        if DIAGONAL:
            cols = first + tl.arange(0, BLOCK_N)
            k = tl.load(k_ptrs + first * stride_kn, mask=cols[None, :] < N, other=0.0)
            v = tl.load(v_ptrs + first * stride_vn, mask=cols[:, None] < N, other=0.0)
        else:
            k = tl.load(k_ptrs + first * stride_kn)
            v = tl.load(v_ptrs + first * stride_vn)

        s = tl.dot(q, k)
        if DIAGONAL:
            # Keys past N need no test of their own: a row below N is smaller than every one of them.
            s = tl.where(cols[None, :] <= offs_m[:, None], s, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale)
        alpha = tl.exp2(m_i - m_new)  # what was counted against the old maximum shrinks by this
        p = tl.exp2(s * scale - m_new[:, None])  # one fused multiply-add for each score, then exp2
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])  # 16-bit operands, float32 sum
        m_i = m_new
    return m_i, l_i, acc


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
    # The last row tile has the most keys. Heads on axis 0, which counts fastest, and the rows backwards: the long
    # programs of all heads start first, and none is left for the end.
    pid_m = tl.num_programs(1) - 1 - tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    batch = (tl.program_id(0) // H).to(tl.int64)  # batch * stride may pass 2^31
    head = (tl.program_id(0) % H).to(tl.int64)

    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    k_ptrs = k_base + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kn  # K transposed: [D, BLOCK_N]
    v_ptrs = v_base + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
    rows = offs_m[:, None] < N
    q = tl.load(q_base + offs_m[:, None] * stride_qn + offs_d[None, :] * stride_qd, mask=rows, other=0.0)

    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exp(x) = exp2(x * log2(e)), and the GPU has exp2 in hardware

    # [0, below): every key is seen by every row of this tile. [below, stop): the diagonal runs through. Then: nothing.
    below = pid_m * BLOCK_M // BLOCK_N * BLOCK_N
    stop = tl.minimum((pid_m + 1) * BLOCK_M, N)
    m_i, l_i, acc = attend(
        q, k_ptrs, v_ptrs, m_i, l_i, acc, 0, below,
        stride_kn, stride_vn, offs_m, N, scale,
        DIAGONAL=False, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    m_i, l_i, acc = attend(
        q, k_ptrs, v_ptrs, m_i, l_i, acc, below, stop,
        stride_kn, stride_vn, offs_m, N, scale,
        DIAGONAL=True, BLOCK_N=BLOCK_N,
    )  # fmt: skip

    out = acc / l_i[:, None]  # one division for each output element, after the loop
    out_base = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=rows)


def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N, D = q.shape
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out  # no element, no program
    BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3
    grid = (B * H, triton.cdiv(N, BLOCK_M))
    causal_attention_kernel[grid](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(), H, N, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out
