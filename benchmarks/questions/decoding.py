"""Modules 7 and 8: attention of one query token, and the backward pass of layer norm."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from benchmarks.questions.question import Call, Place, Question, solution

HALF = torch.float16
Q_HEADS, KV_HEADS, D = 32, 8, 128
G = Q_HEADS // KV_HEADS


@triton.jit
def decode_kernel(
    q_ptr, k_ptr, v_ptr, lengths_ptr, out_ptr, lse_ptr, tokens, chunk, scale,
    Q_HEADS: tl.constexpr, KV_HEADS: tl.constexpr, D: tl.constexpr, ALONE: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Keys [split * chunk, (split + 1) * chunk) of one key-value head for the query heads on it; ALONE: for one."""
    batch, split = tl.program_id(0).to(tl.int64), tl.program_id(2)
    G: tl.constexpr = Q_HEADS // KV_HEADS
    offs_g, offs_n, offs_d = tl.arange(0, 16), tl.arange(0, BLOCK_N), tl.arange(0, D)
    if ALONE:
        kv_head, heads, mine = tl.program_id(1) // G, tl.program_id(1) + offs_g, offs_g < 1
    else:
        kv_head, heads, mine = tl.program_id(1), tl.program_id(1) * G + offs_g, offs_g < G
    q_offs = (batch * Q_HEADS + heads)[:, None] * D + offs_d[None, :]
    q = tl.load(q_ptr + q_offs, mask=mine[:, None], other=0.0)
    cache = (batch * tokens * KV_HEADS + kv_head) * D
    row = KV_HEADS * D
    start = split * chunk
    stop = tl.minimum(start + chunk, tl.load(lengths_ptr + batch))
    m = tl.full([16], float("-inf"), dtype=tl.float32)
    l = tl.zeros([16], dtype=tl.float32)
    acc = tl.zeros([16, D], dtype=tl.float32)
    scale *= 1.4426950408889634
    for first in range(start, stop, BLOCK_N):
        keys = first + offs_n
        real = keys < stop
        k = tl.load(k_ptr + cache + offs_d[:, None] + keys[None, :] * row, mask=real[None, :], other=0.0)
        v = tl.load(v_ptr + cache + keys[:, None] * row + offs_d[None, :], mask=real[:, None], other=0.0)
        s = tl.where(real[None, :], tl.dot(q, k) * scale, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        alpha = tl.exp2(m - m_new)
        p = tl.exp2(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        m = m_new
    part = (batch * tl.num_programs(2) + split) * Q_HEADS + heads
    out = (acc / tl.where(l == 0.0, 1.0, l)[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + part[:, None] * D + offs_d[None, :], out, mask=mine[:, None])
    tl.store(lse_ptr + part, m + tl.log2(l), mask=mine)


@triton.jit
def join_kernel(parts_ptr, lse_ptr, out_ptr, splits, Q_HEADS: tl.constexpr, D: tl.constexpr, BLOCK_S: tl.constexpr):
    batch, head = tl.program_id(0), tl.program_id(1)
    offs_s, offs_d = tl.arange(0, BLOCK_S), tl.arange(0, D)
    part = (batch * splits + offs_s) * Q_HEADS + head
    lse = tl.load(lse_ptr + part, mask=offs_s < splits, other=-float("inf"))
    weight = tl.exp2(lse - tl.max(lse, axis=0))
    parts = tl.load(parts_ptr + part[:, None] * D + offs_d[None, :], mask=(offs_s < splits)[:, None], other=0.0)
    out = tl.sum(parts * weight[:, None], axis=0) / tl.sum(weight, axis=0)
    tl.store(out_ptr + (batch * Q_HEADS + head) * D + offs_d, out.to(out_ptr.dtype.element_ty))


def caches(place: Place, batch: int, tokens: int) -> list[torch.Tensor]:
    """q [B, Q_HEADS, D], k and v [B, tokens, KV_HEADS, D], lengths [B]."""
    batch, tokens = place.size(batch, 2), place.size(tokens, 330)
    q = place.normal(batch, Q_HEADS, D, dtype=HALF)
    k, v = (place.normal(batch, tokens, KV_HEADS, D, dtype=HALF) for _ in range(2))
    low = tokens if batch == 1 else tokens * 10 // 11
    return [q, k, v, place.whole(low, tokens + 1, batch)]


def reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    B, tokens = k.shape[:2]
    s = torch.einsum("bhgd,bnhd->bhgn", q.view(B, KV_HEADS, G, D).float(), k.float()) * D**-0.5
    real = torch.arange(tokens, device=k.device) < lengths[:, None]
    s.masked_fill_(~real[:, None, None, :], float("-inf"))
    return torch.einsum("bhgn,bnhd->bhgd", torch.softmax(s, dim=-1), v.float()).reshape(q.shape).to(HALF)


def decode(place: Place, inputs: Any, splits: int = 1, alone: bool = False) -> Call:
    q, k, v, lengths = inputs
    B, tokens = k.shape[:2]
    splits = place.size(splits, min(splits, 5))
    out = torch.empty_like(q)
    parts = place.empty(B, splits, Q_HEADS, D) if splits > 1 else out
    lse = place.empty(B, splits, Q_HEADS)
    chunk = triton.cdiv(tokens, splits)

    def run() -> torch.Tensor:
        grid = (B, Q_HEADS if alone else KV_HEADS, splits)
        decode_kernel[grid](
            q, k, v, lengths, parts, lse, tokens, chunk, D**-0.5, Q_HEADS=Q_HEADS, KV_HEADS=KV_HEADS, D=D,
            ALONE=alone, BLOCK_N=64, num_warps=4, num_stages=4,
        )  # fmt: skip
        if splits > 1:
            size = triton.next_power_of_2(splits)
            join_kernel[(B, Q_HEADS)](parts, lse, out, splits, Q_HEADS=Q_HEADS, D=D, BLOCK_S=size)
        return out

    return Call(run, lambda: reference(q, k, v, lengths), bytes=read_bytes(k, lengths), tolerance=0.02)


def read_bytes(k: torch.Tensor, lengths: torch.Tensor) -> int:
    """Of the keys and values within the lengths; a place without values has whole caches."""
    tokens = lengths.numel() * k.shape[1] if lengths.is_meta else int(lengths.sum())
    return 2 * tokens * KV_HEADS * D * k.element_size()


SPLIT_KV = Question(
    "split-kv", "m07", "How much faster is decoding one sequence of 65,536 tokens when its keys are split?",
    "32 query heads on 8, D = 128, float16: 8 programs without a split, 264 with 33, which a second launch joins",
    {"not split": {}} | {f"{s} splits": {"splits": s} for s in (8, 16, 33)},
    decode, lambda place: caches(place, 1, 65536),
    options=("3 times", "10 times", "20 times"),
)  # fmt: skip

GQA = Question(
    "gqa", "m07", "Decoding 64 sequences of 5,100 tokens: one program a query head, or one a key-value head, G = 4?",
    "one a query head reads each key four times; the L2 may catch it",
    {"a query head": {"alone": True}, "a key-value head": {"alone": False}}, decode,
    lambda place: caches(place, 64, 5344), options=("level: the L2 catches it", "2 to 4 times"),
)  # fmt: skip


@triton.jit
def atomic_backward_kernel(
    x_ptr, weight_ptr, mean_ptr, rstd_ptr, grad_ptr, grad_x_ptr, sum_weight_ptr, sum_bias_ptr, n_cols,
    BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One row a program; its share of the sums over all rows goes to memory at once."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0).to(tl.float32)
    grad = tl.load(grad_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - tl.load(mean_ptr + row)) * rstd
    g = grad * weight
    along_one, along_xhat = tl.sum(g, axis=0) / n_cols, tl.sum(g * xhat, axis=0) / n_cols
    tl.store(grad_x_ptr + row * n_cols + cols, rstd * (g - along_one - xhat * along_xhat), mask=mask)
    tl.atomic_add(sum_weight_ptr + cols, grad * xhat, mask=mask, sem="relaxed")
    tl.atomic_add(sum_bias_ptr + cols, grad, mask=mask, sem="relaxed")


def norm_inputs(place: Place) -> list[torch.Tensor]:
    """x, weight, bias, grad, and mean and rstd of each row."""
    rows, cols = place.size(16384, 6), place.size(4096, 500)
    x, grad = (place.normal(rows, cols, dtype=torch.bfloat16) for _ in range(2))
    weight, bias = (place.normal(cols, dtype=torch.bfloat16) for _ in range(2))
    mean, variance = x.float().mean(dim=1), x.float().var(dim=1, correction=0)
    return [x, weight, bias, grad, mean, torch.rsqrt(variance + 1e-5)]


def backward(place: Place, inputs: Any, how: str, warps: int) -> Call:
    x, weight, bias, grad, mean, rstd = inputs
    rows, cols = x.shape
    module, block = solution("08-pytorch-integration/layer_norm_backward"), triton.next_power_of_2(cols)
    programs = min(triton.cdiv(rows, 2), 4 * place.programs)
    grad_x, sums = torch.empty_like(x), [place.empty(cols) for _ in range(2)]
    partial = [place.empty(programs, cols) for _ in range(2)]
    out = [torch.empty_like(weight) for _ in range(2)]

    def atomics() -> list[torch.Tensor]:
        for total in sums:
            total.zero_()
        atomic_backward_kernel[(rows,)](
            x, weight, mean, rstd, grad, grad_x, *sums, cols, BLOCK_N=block, num_warps=warps
        )  # fmt: skip
        return [grad_x, *(total.to(torch.bfloat16) for total in sums)]

    def two_stages() -> list[torch.Tensor]:
        module.backward_kernel[(programs,)](
            x, weight, mean, rstd, grad, grad_x, *partial, rows, cols, BLOCK_N=block, num_warps=warps
        )  # fmt: skip
        for part, total in zip(partial, out, strict=True):
            module.column_sum_kernel[(triton.cdiv(cols, 64),)](part, total, programs, cols, BLOCK_M=32, BLOCK_N=64)
        return [grad_x, *out]

    def want() -> Any:
        leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
        return torch.autograd.grad(F.layer_norm(leaves[0], (cols,), leaves[1], leaves[2], 1e-5), leaves, grad)

    return Call(atomics if how == "atomics" else two_stages, want, bytes=3 * x.nbytes)


BACKWARD = Question(
    "layer-norm-backward", "m08", "layer_norm_backward, 16384 x 4096 bfloat16: atomics, or partial sums, added later?",
    "atomics: one row a program, two float32 atomics an element; two stages: 528 programs; and by warps a program",
    {f"{how}, {w} warps": {"how": how, "warps": w} for how in ("atomics", "two stages") for w in (4, 8, 16)},
    backward, norm_inputs, groups=2, options=("level", "two stages 3 times as fast", "10 times"),
)  # fmt: skip

QUESTIONS = (SPLIT_KV, GQA, BACKWARD)
