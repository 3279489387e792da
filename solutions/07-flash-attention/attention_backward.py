"""attention_backward: two kernels. One owns rows of queries and makes dq; one owns rows of keys and makes dk and dv.

Each computes the weights again from q, k and lse: seven products of tiles where five would do, and no atomics.
"""

import torch
import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x * log2(e))


@triton.jit
def load_rows(ptr, rows, stride_n, stride_d, N, D: tl.constexpr):
    """The rows of one head as a [rows, D] tile; zeros past N."""
    offs_d = tl.arange(0, D)
    return tl.load(ptr + rows[:, None] * stride_n + offs_d[None, :] * stride_d, mask=rows[:, None] < N, other=0.0)


@triton.jit
def store_rows(ptr, value, rows, stride_n, stride_d, N, D: tl.constexpr):
    ptrs = ptr + rows[:, None] * stride_n + tl.arange(0, D)[None, :] * stride_d
    tl.store(ptrs, value.to(ptr.dtype.element_ty), mask=rows[:, None] < N)


@triton.jit
def grad_q_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_ob, stride_oh, stride_on, stride_od,
    stride_gb, stride_gh, stride_gn, stride_gd,
    stride_dqb, stride_dqh, stride_dqn, stride_dqd,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(1).to(tl.int64)  # batch * stride may pass 2^31
    batch, head = pid // H, pid % H
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    k_ptr += batch * stride_kb + head * stride_kh
    v_ptr += batch * stride_vb + head * stride_vh

    q = load_rows(q_ptr + batch * stride_qb + head * stride_qh, rows, stride_qn, stride_qd, N_q, D)
    do = load_rows(do_ptr + batch * stride_gb + head * stride_gh, rows, stride_gn, stride_gd, N_q, D)
    out = load_rows(out_ptr + batch * stride_ob + head * stride_oh, rows, stride_on, stride_od, N_q, D)
    lse = tl.load(lse_ptr + pid * N_q + rows, mask=rows < N_q, other=0.0) * LOG2_E
    # The sum over all keys of p * dp, had from a row of D numbers: the second kernel needs it too.
    delta = tl.sum(do.to(tl.float32) * out.to(tl.float32), axis=1)
    tl.store(delta_ptr + pid * N_q + rows, delta, mask=rows < N_q)

    dq = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    for first in range(0, N_k, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k = load_rows(k_ptr, keys, stride_kn, stride_kd, N_k, D)
        v = load_rows(v_ptr, keys, stride_vn, stride_vd, N_k, D)
        p = tl.exp2(tl.dot(q, tl.trans(k)) * (scale * LOG2_E) - lse[:, None])
        # A padded key has score 0: where lse is far below 0 its weight is inf, and inf * 0 is NaN.
        p = tl.where(keys[None, :] < N_k, p, 0.0)
        ds = p * (tl.dot(do, tl.trans(v)) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    store_rows(dq_ptr + batch * stride_dqb + head * stride_dqh, dq * scale, rows, stride_dqn, stride_dqd, N_q, D)


@triton.jit
def grad_kv_kernel(
    q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    stride_qb, stride_qh, stride_qn, stride_qd,
    stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd,
    stride_gb, stride_gh, stride_gn, stride_gd,
    stride_dkb, stride_dkh, stride_dkn, stride_dkd,
    stride_dvb, stride_dvh, stride_dvn, stride_dvd,
    H, N_q, N_k, scale,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(1).to(tl.int64)
    batch, head = pid // H, pid % H
    keys = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    q_ptr += batch * stride_qb + head * stride_qh
    do_ptr += batch * stride_gb + head * stride_gh

    k = load_rows(k_ptr + batch * stride_kb + head * stride_kh, keys, stride_kn, stride_kd, N_k, D)
    v = load_rows(v_ptr + batch * stride_vb + head * stride_vh, keys, stride_vn, stride_vd, N_k, D)
    dk = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    dv = tl.zeros([BLOCK_N, D], dtype=tl.float32)
    for first in range(0, N_q, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        q = load_rows(q_ptr, rows, stride_qn, stride_qd, N_q, D)
        do = load_rows(do_ptr, rows, stride_gn, stride_gd, N_q, D)
        lse = tl.load(lse_ptr + pid * N_q + rows, mask=rows < N_q, other=0.0) * LOG2_E
        delta = tl.load(delta_ptr + pid * N_q + rows, mask=rows < N_q, other=0.0)
        # Transposed from the start, [BLOCK_N, BLOCK_M]: dk and dv are sums over queries. Padded queries need no mask:
        # p is exp(0 - 0) = 1 there, and do, dp and delta are 0.
        p = tl.exp2(tl.dot(k, tl.trans(q)) * (scale * LOG2_E) - lse[None, :])
        dv = tl.dot(p.to(do.dtype), do, dv)
        ds = p * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    store_rows(dk_ptr + batch * stride_dkb + head * stride_dkh, dk * scale, keys, stride_dkn, stride_dkd, N_k, D)
    store_rows(dv_ptr + batch * stride_dvb + head * stride_dvh, dv, keys, stride_dvn, stride_dvd, N_k, D)


def attention_backward(q, k, v, out, lse, grad_out) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    if q.numel() == 0 or k.numel() == 0:
        return dq.zero_(), dk.zero_(), dv.zero_()  # nothing was computed, so nothing has a gradient
    delta = torch.empty_like(lse)
    sizes = (H, N_q, N_k, D**-0.5)
    # The owner's tile is the larger one: it is loaded once, the streamed tiles many times.
    OWN, STREAMED, num_warps = 128, 64, 8
    grad_q_kernel[(triton.cdiv(N_q, OWN), B * H)](
        q, k, v, out, grad_out, lse, delta, dq,
        *q.stride(), *k.stride(), *v.stride(), *out.stride(), *grad_out.stride(), *dq.stride(), *sizes,
        D=D, BLOCK_M=OWN, BLOCK_N=STREAMED, num_warps=num_warps, num_stages=2,
    )  # fmt: skip
    grad_kv_kernel[(triton.cdiv(N_k, OWN), B * H)](
        q, k, v, grad_out, lse, delta, dk, dv,
        *q.stride(), *k.stride(), *v.stride(), *grad_out.stride(), *dk.stride(), *dv.stride(), *sizes,
        D=D, BLOCK_M=STREAMED, BLOCK_N=OWN, num_warps=num_warps, num_stages=2,
    )  # fmt: skip
    return dq, dk, dv
