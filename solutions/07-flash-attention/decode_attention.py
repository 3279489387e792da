"""decode_attention: one program streams one key-value head of one sequence, for all the query heads that share it."""

import torch
import triton
import triton.language as tl


@triton.jit
def decode_attention_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr,
    stride_qb, stride_qh, stride_qd,
    stride_kb, stride_ks, stride_kh, stride_kd,
    stride_vb, stride_vs, stride_vh, stride_vd,
    stride_ob, stride_oh, stride_od,
    stride_l, scale,
    G, D: tl.constexpr, BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    batch = tl.program_id(0).to(tl.int64)  # batch * stride passes 2^31 in a large cache
    kv_head = tl.program_id(1).to(tl.int64)
    length = tl.load(lengths_ptr + batch * stride_l)

    offs_g = tl.arange(0, BLOCK_G)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    heads = kv_head * G + offs_g  # query heads that share this key-value head are neighbours
    mine = (offs_g < G)[:, None]
    q_ptrs = q_ptr + batch * stride_qb + heads[:, None] * stride_qh + offs_d[None, :] * stride_qd
    q = tl.load(q_ptrs, mask=mine, other=0.0)
    k_base = k_ptr + batch * stride_kb + kv_head * stride_kh
    v_base = v_ptr + batch * stride_vb + kv_head * stride_vh
    k_ptrs = k_base + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_ks  # K transposed: [D, BLOCK_N]
    v_ptrs = v_base + offs_n[:, None] * stride_vs + offs_d[None, :] * stride_vd

    m = tl.full([BLOCK_G], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK_G], dtype=tl.float32)
    acc = tl.zeros([BLOCK_G, D], dtype=tl.float32)
    scale *= 1.4426950408889634  # log2(e): exp(x) = exp2(x * log2(e))

    for first in range(0, length, BLOCK_N):
        real = first + offs_n < length
        k = tl.load(k_ptrs + first * stride_ks, mask=real[None, :], other=0.0)
        # The weights behind the last token are 0, but 0 times a stale NaN is NaN: v is masked too.
        v = tl.load(v_ptrs + first * stride_vs, mask=real[:, None], other=0.0)
        s = tl.where(real[None, :], tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))  # finite: each tile has a real token
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new

    out = acc / tl.where(l == 0.0, 1.0, l)[:, None]  # a sequence of length 0 gives 0 / 1
    out_ptrs = out_ptr + batch * stride_ob + heads[:, None] * stride_oh + offs_d[None, :] * stride_od
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=mine)


def decode_attention(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    B, H_q, D = q.shape
    H_kv = k_cache.shape[2]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out  # no element, no program
    G = H_q // H_kv
    BLOCK_G = max(16, triton.next_power_of_2(G))  # tl.dot takes its rows from the query heads
    decode_attention_kernel[(B, H_kv)](
        q, k_cache, v_cache, lengths, out,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), *out.stride(),
        lengths.stride(0), D**-0.5,
        # nothing but the stream of the cache matters here: more stages keep more of it in flight
        G, D=D, BLOCK_G=BLOCK_G, BLOCK_N=64, num_warps=4, num_stages=4,
    )  # fmt: skip
    return out
