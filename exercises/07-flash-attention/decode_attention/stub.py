"""decode_attention: one new token a sequence against its KV cache, several query heads sharing a key-value head

Called as      decode_attention(q, k_cache, v_cache, lengths)
q              [B, H_q, D] float16: one query of each head of each sequence
k_cache        [B, S_max, H_kv, D] float16, and v_cache likewise: room for S_max tokens a sequence
lengths        [B] int32, 0 <= lengths[b] <= S_max: how many tokens sequence b has. What lies behind them in the
               caches is stale: numbers of an earlier sequence, inf, NaN
heads          H_q = G * H_kv; query heads h * G to h * G + G - 1 use key-value head h. G is 1, 2, 4, 7 or 8
D              32, 64 or 128
strides        any, each tensor its own
scale          1 / sqrt(D), handed to the kernel
returns        a new [B, H_q, D] float16 tensor; zeros for a sequence of length 0

One program owns one key-value head of one sequence: it reads each key and value once, for all G query heads that
share it. They are the rows of one tile, padded to BLOCK_G = 16 or more for tl.dot. The launcher is given.
"""

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
    batch = tl.program_id(0)
    kv_head = tl.program_id(1)
    # 1. how long is my sequence?
    # 2. which query heads are mine? load them as a [BLOCK_G, D] tile
    # 3. online softmax over the tokens, BLOCK_N at a time; nothing behind the last one may reach acc
    # 4. divide by l, or give 0; cast, store the G rows that exist


def decode_attention(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, lengths: torch.Tensor
) -> torch.Tensor:
    B, H_q, D = q.shape
    H_kv = k_cache.shape[2]
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    G = H_q // H_kv
    BLOCK_G, BLOCK_N = max(16, triton.next_power_of_2(G)), 64
    decode_attention_kernel[(B, H_kv)](
        q, k_cache, v_cache, lengths, out,
        *q.stride(), *k_cache.stride(), *v_cache.stride(), *out.stride(),
        lengths.stride(0), D**-0.5,
        G, D=D, BLOCK_G=BLOCK_G, BLOCK_N=BLOCK_N, num_warps=4, num_stages=3,
    )  # fmt: skip
    return out
