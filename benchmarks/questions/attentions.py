"""Module 7: variants of attention over many queries."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from benchmarks.questions.question import FP8, Call, Place, Question, solution

HALF = torch.float16


@triton.jit
def attend(
    q, k_ptrs, v_ptrs, m, l, acc, start, stop, D: tl.constexpr, stride_vn, offs_m, scale,
    MASKED: tl.constexpr, EXP2: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    for first in range(start, stop, BLOCK_N):
        k = tl.load(k_ptrs + first * D)
        v = tl.load(v_ptrs + first * stride_vn)
        s = tl.dot(q, k)
        if MASKED:
            cols = first + tl.arange(0, BLOCK_N)
            s = tl.where(cols[None, :] <= offs_m[:, None], s, float("-inf"))
        if EXP2:
            m_new = tl.maximum(m, tl.max(s, axis=1) * scale)
            alpha = tl.exp2(m - m_new)
            p = tl.exp2(s * scale - m_new[:, None])
        else:
            s = s * scale
            m_new = tl.maximum(m, tl.max(s, axis=1))
            alpha = tl.exp(m - m_new)
            p = tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    return m, l, acc


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, N, scale, stride_vn, stride_vd,
    D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr, MASK_ALL: tl.constexpr, LONG_FIRST: tl.constexpr, EXP2: tl.constexpr,
):  # fmt: skip
    """Heads lie N * D elements apart, and N is a multiple of both blocks: nothing is masked but by causality."""
    tile = tl.program_id(0)
    if LONG_FIRST:
        tile = tl.num_programs(0) - 1 - tile
    head = tl.program_id(1).to(tl.int64) * N * D
    offs_m, offs_n, offs_d = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, D)
    q = tl.load(q_ptr + head + offs_m[:, None] * D + offs_d[None, :])
    k_ptrs = k_ptr + head + offs_d[:, None] + offs_n[None, :] * D
    v_ptrs = v_ptr + head + offs_n[:, None] * stride_vn + offs_d[None, :] * stride_vd
    m = tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)
    l = tl.zeros([BLOCK_M], dtype=tl.float32)
    acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)
    if EXP2:
        scale *= 1.4426950408889634
    if CAUSAL:
        below = 0 if MASK_ALL else tile * BLOCK_M // BLOCK_N * BLOCK_N
        stop = (tile + 1) * BLOCK_M
        if not MASK_ALL:
            m, l, acc = attend(
                q, k_ptrs, v_ptrs, m, l, acc, 0, below, D, stride_vn, offs_m, scale, False, EXP2, BLOCK_N
            )  # fmt: skip
        m, l, acc = attend(
            q, k_ptrs, v_ptrs, m, l, acc, below, stop, D, stride_vn, offs_m, scale, True, EXP2, BLOCK_N
        )  # fmt: skip
    else:
        m, l, acc = attend(q, k_ptrs, v_ptrs, m, l, acc, 0, N, D, stride_vn, offs_m, scale, False, EXP2, BLOCK_N)
    out = (acc / l[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + head + offs_m[:, None] * D + offs_d[None, :], out)


def heads(place: Place, D: int = 128) -> list[torch.Tensor]:
    """q, k, v: 4 sequences of 4096 tokens, 2048 channels."""
    shape = (place.size(4, 1), place.size(2048 // D, 1), place.size(4096, 256), D)
    return [place.normal(*shape, dtype=HALF) for _ in range(3)]


def pairs(q: torch.Tensor, causal: bool) -> int:
    B, H, N, D = q.shape
    return 4 * B * H * D * (N * (N + 1) // 2 if causal else N * N)


def variant(
    place: Place, inputs: Any, causal: bool = False, mask_all: bool = False, long_first: bool = True, exp2: bool = True,
    dtype: torch.dtype = HALF,
) -> Call:  # fmt: skip
    q, k, v = (t.to(dtype) for t in inputs)
    (B, H, N, D), out = q.shape, torch.empty_like(inputs[0])
    if dtype == FP8:  # the tensor cores take an fp8 V along the keys only
        v = v.transpose(2, 3).contiguous().transpose(2, 3)
    block_n, stages = (64, 3) if causal else (128, 2)  # as the solutions had when the questions were asked

    def run() -> torch.Tensor:
        attention_kernel[(triton.cdiv(N, 128), B * H)](
            q, k, v, out, N, D**-0.5, v.stride(2), v.stride(3), D=D, BLOCK_M=128, BLOCK_N=block_n,
            CAUSAL=causal, MASK_ALL=mask_all, LONG_FIRST=long_first, EXP2=exp2, num_warps=8, num_stages=stages,
        )  # fmt: skip
        return out

    def want() -> torch.Tensor:
        return F.scaled_dot_product_attention(q.to(HALF), k.to(HALF), v.to(HALF), is_causal=causal)

    return Call(run, want, flops=pairs(q, causal), tolerance=0.1 if dtype == FP8 else None)


def solved(place: Place, inputs: Any, name: str, D: int | None = None) -> Call:
    q, k, v = inputs if D is None else heads(place, D)
    entry, causal = getattr(solution(f"07-flash-attention/{name}"), name), name == "causal_attention"
    want = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return Call(lambda: entry(q, k, v), want, flops=pairs(q, causal))


def either(place: Place, inputs: Any, **setting: Any) -> Call:
    return (solved if "name" in setting else variant)(place, inputs, **setting)


SIZES = "4 x 16 heads, 4096 tokens, D = 128, float16"
EXP2 = Question(
    "exp2", "m07", f"What does exp2 with one fused multiply-add gain in attention over exp of scaled scores? {SIZES}",
    "tl.exp is exp2 with one more multiplication",
    {"solution": {"name": "attention"}, "exp2": {}, "exp, scale first": {"exp2": False}}, either, heads,
    options=("less than 2 %", "5 to 15 %"),
)  # fmt: skip

MASKS = Question(
    "mask-everywhere", "m07", f"What does it cost causal attention to mask every tile, not the diagonal alone? {SIZES}",
    "one loop in place of two: a comparison and a choice for each score",
    {"solution": {"name": "causal_attention"}, "diagonal only": {"causal": True},
     "every tile": {"causal": True, "mask_all": True}},
    either, heads, options=("3 %", "20 %"),
)  # fmt: skip

ORDER = Question(
    "long-first", "m07", f"What does it gain causal attention to start the longest programs first? {SIZES}",
    "no long program is left for the end",
    {"long first": {"causal": True}, "short first": {"causal": True, "long_first": False}}, either, heads,
    options=("less than 2 %", "10 %"),
)  # fmt: skip

DEPTH = Question(
    "head-size", "m07", "Which head size is faster at equal FLOPs? 4096 tokens, 2048 channels, float16",
    "D = 64 has twice as many exponentials for the same products",
    {f"D = {d}": {"name": "attention", "D": d} for d in (64, 128)}, either,
    options=("level", "128: a quarter faster", "64 is faster"),
)  # fmt: skip

FP8_ATTENTION = Question(
    "fp8-attention", "m07", "How fast is attention with q, k, v and p in fp8 (e4m3), against float16? " + SIZES[:-9],
    "the products are twice as fast, the exponentials are not; v lies along the keys",
    {"float16": {}, "fp8": {"dtype": FP8}}, either, heads, options=("slower", "1.2 times", "1.8 times"),
)  # fmt: skip

QUESTIONS = (EXP2, MASKS, ORDER, DEPTH, FP8_ATTENTION)
