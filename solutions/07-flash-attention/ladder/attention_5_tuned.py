"""attention, rung 5: a taller tile, more warps, a deeper pipeline; masks in the last tile only."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q, k_ptrs, v_ptrs, m, l, acc, start, stop, stride_kn, stride_vn, N_k, scale,
    RAGGED: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Take the keys [start, stop) into m, l and acc."""
    for first in range(start, stop, BLOCK_N):
        if RAGGED:
            real = first + tl.arange(0, BLOCK_N) < N_k
            k = tl.load(k_ptrs + first * stride_kn, mask=real[None, :], other=0.0)
            v = tl.load(v_ptrs + first * stride_vn, mask=real[:, None], other=0.0)
            s = tl.where(real[None, :], tl.dot(q, k), float("-inf"))
        else:
            k = tl.load(k_ptrs + first * stride_kn)
            v = tl.load(v_ptrs + first * stride_vn)
            s = tl.dot(q, k)
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
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_on, stride_od,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    rows = offs_m[:, None] < N_q
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
    whole = N_k // BLOCK_N * BLOCK_N  # keys in whole tiles: no mask there
    m, l, acc = attend(
        q, k_ptrs, v_ptrs, m, l, acc, 0, whole, stride_kn, stride_vn, N_k, scale, RAGGED=False, BLOCK_N=BLOCK_N
    )
    m, l, acc = attend(
        q, k_ptrs, v_ptrs, m, l, acc, whole, N_k, stride_kn, stride_vn, N_k, scale, RAGGED=True, BLOCK_N=BLOCK_N
    )

    out_base = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / l[:, None]).to(out_ptr.dtype.element_ty), mask=rows)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    # Two groups of 4 warps: a row tile of 64 each, as in rung 4, but k and v are loaded once for both. Three stages of
    # k and v and the tile of q are 128 KB at D = 128. Tiles of 128 keys with two stages took a tenth longer there.
    BLOCK_M, BLOCK_N = 128, 64
    grid = (triton.cdiv(N_q, BLOCK_M), B * H)
    attention_kernel[grid](
        q, k, v, out, *q.stride(), *k.stride(), *v.stride(), *out.stride(), H, N_q, N_k, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=8, num_stages=3,
    )  # fmt: skip
    return out
