"""attention_backward: the gradients of attention, with the weights computed again tile by tile

Called as      attention_backward(q, k, v, out, lse, grad_out)
q              [B, H, N_q, D] float16 or bfloat16
k, v           [B, H, N_k, D], the same dtype; no mask: every query sees every key
out            [B, H, N_q, D], what the forward pass returned
lse            [B, H, N_q] float32, contiguous, what it saved: log(sum over j of exp(score_ij)), natural logarithm
grad_out       [B, H, N_q, D], the gradient that came in, any strides
D              32, 64 or 128
N_q, N_k       any from 1: 1, 63, 64, 65, 100, 130
strides        any, each tensor its own, lse excepted
returns        (grad_q, grad_k, grad_v): new tensors, shapes and dtypes of q, k and v

With s = q k^T * scale, scale = 1 / sqrt(D), and all in float32:

    p   = exp(s - lse)                     the weights, final at once: nothing online is left
    dv  = p^T grad_out
    dp  = grad_out v^T
    ds  = p * (dp - delta)                 delta_i = sum over d of grad_out_id * out_id
    dq  = scale * ds k
    dk  = scale * ds^T q

Two kernels, so that each element has one owner and nothing is atomic. In the first one program owns BLOCK_M rows of
dq and streams over the keys; it computes delta of its rows and keeps it for the second. There one program owns
BLOCK_N rows of dk and dv and streams over the queries. The launcher is given. Both dots of 16-bit tiles: round p and
ds to the input's dtype, sum in float32.
"""

import torch
import triton
import triton.language as tl


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
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    # 1. load my rows of q, grad_out, out and lse (lse_ptr + program_id(1) * N_q + row); store delta likewise
    # 2. for each BLOCK_N keys: s, p, dp, ds, and add ds k
    # 3. scale, cast, store


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
    # 1. load my rows of k and v, once
    # 2. for each BLOCK_M queries: s, p, dp, ds again; add p^T grad_out and ds^T q
    # 3. scale dk, cast, store both
    pass


def attention_backward(q, k, v, out, lse, grad_out) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    if q.numel() == 0 or k.numel() == 0:
        return dq.zero_(), dk.zero_(), dv.zero_()
    delta = torch.empty_like(lse)
    sizes = (H, N_q, N_k, D**-0.5)
    BLOCK_M, BLOCK_N = 64, 64
    grad_q_kernel[(triton.cdiv(N_q, BLOCK_M), B * H)](
        q, k, v, out, grad_out, lse, delta, dq,
        *q.stride(), *k.stride(), *v.stride(), *out.stride(), *grad_out.stride(), *dq.stride(), *sizes,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    grad_kv_kernel[(triton.cdiv(N_k, BLOCK_N), B * H)](
        q, k, v, grad_out, lse, delta, dk, dv,
        *q.stride(), *k.stride(), *v.stride(), *grad_out.stride(), *dk.stride(), *dv.stride(), *sizes,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return dq, dk, dv
