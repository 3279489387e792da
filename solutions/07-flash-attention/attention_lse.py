"""attention_lse: causal attention, aligned at the bottom right, with the logsumexp of each row beside it."""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(
    q, k_ptrs, v_ptrs, m_i, l_i, acc, start, stop,
    stride_kn, stride_vn, last_seen, N_k, scale,
    DIAGONAL: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Take the keys [start, stop) into the running maximum m_i, denominator l_i and weighted sum acc."""
    for first in range(start, stop, BLOCK_N):
        if DIAGONAL:
            keys = first + tl.arange(0, BLOCK_N)
            k = tl.load(k_ptrs + first * stride_kn, mask=keys[None, :] < N_k, other=0.0)
            v = tl.load(v_ptrs + first * stride_vn, mask=keys[:, None] < N_k, other=0.0)
        else:
            k = tl.load(k_ptrs + first * stride_kn)
            v = tl.load(v_ptrs + first * stride_vn)

        s = tl.dot(q, k)
        if DIAGONAL:
            # Keys past N_k need no test of their own: the last real row sees key N_k - 1 and none after it.
            s = tl.where(keys[None, :] <= last_seen[:, None], s, float("-inf"))

        m_new = tl.maximum(m_i, tl.max(s, axis=1) * scale)
        shift = m_new
        if DIAGONAL:
            # A row that has seen nothing: -inf - (-inf) would be NaN, -inf - 0 gives the weight 0 that is right.
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        alpha = tl.exp2(m_i - shift)
        p = tl.exp2(s * scale - shift[:, None])
        l_i = l_i * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m_i = m_new
    return m_i, l_i, acc


@triton.jit
def attention_lse_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_on, stride_od,
    stride_lb, stride_lh, stride_ln,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    # The last row tile has the most keys: start it first, so that no long program is left for the end.
    pid_m = tl.num_programs(0) - 1 - tl.program_id(0)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    batch = (tl.program_id(1) // H).to(tl.int64)  # batch * stride may pass 2^31
    head = (tl.program_id(1) % H).to(tl.int64)

    q_base = q_ptr + batch * stride_qb + head * stride_qh
    k_base = k_ptr + batch * stride_kb + head * stride_kh
    v_base = v_ptr + batch * stride_vb + head * stride_vh
    k_ptrs = k_base + offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kn  # K transposed: [D, BLOCK_N]
    v_ptrs = v_base + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
    rows = offs_m < N_q
    q = tl.load(q_base + offs_m[:, None] * stride_qn + offs_d[None, :] * stride_qd, mask=rows[:, None], other=0.0)

    m_i = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l_i = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)

    # [0, below): every row of this tile sees every key. [below, stop): the diagonal runs through. Then: nothing.
    last_seen = offs_m + N_k - N_q
    first_row_sees = tl.maximum(pid_m * BLOCK_M + N_k - N_q + 1, 0)
    below = tl.minimum(first_row_sees, N_k) // BLOCK_N * BLOCK_N
    stop = tl.minimum((pid_m + 1) * BLOCK_M + N_k - N_q, N_k)
    base_two = scale * 1.4426950408889634  # log2(e): exp(x) = exp2(x * log2(e))
    m_i, l_i, acc = attend(
        q, k_ptrs, v_ptrs, m_i, l_i, acc, 0, below,
        stride_kn, stride_vn, last_seen, N_k, base_two,
        DIAGONAL=False, BLOCK_N=BLOCK_N,
    )  # fmt: skip
    m_i, l_i, acc = attend(
        q, k_ptrs, v_ptrs, m_i, l_i, acc, below, stop,
        stride_kn, stride_vn, last_seen, N_k, base_two,
        DIAGONAL=True, BLOCK_N=BLOCK_N,
    )  # fmt: skip

    empty = l_i == 0.0  # these rows saw nothing: out = 0 / 1, and lse = -inf
    out = acc / tl.where(empty, 1.0, l_i)[:, None]
    lse = tl.where(empty, float("-inf"), (m_i + tl.log2(l_i)) * 0.6931471805599453)  # ln 2: back to base e
    out_base = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_base + offs_m[:, None] * stride_on + offs_d[None, :] * stride_od
    tl.store(out_ptrs, out.to(out_ptr.dtype.element_ty), mask=rows[:, None])
    tl.store(lse_ptr + batch * stride_lb + head * stride_lh + offs_m * stride_ln, lse, mask=rows)


def attention_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    out = torch.empty_like(q)
    lse = torch.empty((B, H, N_q), device=q.device, dtype=torch.float32)
    if out.numel() == 0:
        return out, lse  # no element, no program
    BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3
    grid = (triton.cdiv(N_q, BLOCK_M), B * H)
    attention_lse_kernel[grid](
        q, k, v, out, lse,
        *q.stride(), *k.stride(), *v.stride(), *out.stride(), *lse.stride(),
        H, N_q, N_k, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps, num_stages=num_stages,
    )  # fmt: skip
    return out, lse
