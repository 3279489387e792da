"""attention_lse: causal attention that also returns the logsumexp of each row, and knows rows that see nothing

Called as      attention_lse(q, k, v)
q              [B, H, N_q, D] float16 or bfloat16
k, v           [B, H, N_k, D], the same dtype; N_q and N_k may differ either way
D              32, 64 or 128
strides        any, each tensor its own
scale          1 / sqrt(D), handed to the kernel
mask           bottom right: the last query sees all keys. Row i sees key j where j <= i + N_k - N_q
returns        (out, lse)
out            shape and dtype of q
lse            [B, H, N_q] float32: log(sum over seen j of exp(score_ij)), natural logarithm, scores with the scale
empty rows     where N_q > N_k the first rows see no key: their out is 0 and their lse is -inf. Not NaN
N_q, N_k       any from 1: 1, 63, 64, 65, 100, 193

A backward pass needs lse, and so does everyone who joins results of several ranges of keys. One program owns BLOCK_M
rows of one head. The launcher is given; your causal attention kernel is a good start.
"""

import torch
import triton
import triton.language as tl


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
    batch = tl.program_id(1) // H
    head = tl.program_id(1) % H
    # 1. load my BLOCK_M rows of q; m = -inf, l = 0, acc = 0
    # 2. where does the last key lie that one of my rows sees? It may lie before key 0
    # 3. the loop of causal attention; what are alpha and p while a row has seen nothing?
    # 4. out = acc / l and lse = m + log(l), but for rows that have seen nothing


def attention_lse(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    out = torch.empty_like(q)
    lse = torch.empty((B, H, N_q), device=q.device, dtype=torch.float32)
    if out.numel() == 0:
        return out, lse
    BLOCK_M, BLOCK_N = 64, 64
    grid = (triton.cdiv(N_q, BLOCK_M), B * H)
    attention_lse_kernel[grid](
        q, k, v, out, lse,
        *q.stride(), *k.stride(), *v.stride(), *out.stride(), *lse.stride(),
        H, N_q, N_k, D**-0.5,
        D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=4, num_stages=2,
    )  # fmt: skip
    return out, lse
