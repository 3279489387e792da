"""Module 4: row sums, layer norm, cross entropy."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from benchmarks.questions.question import Call, Place, Question, solution


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, IN_LOOP: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = 0.0
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
        if IN_LOOP:
            total += tl.sum(x, axis=0)
        else:
            acc += x
    tl.store(out_ptr + row, total if IN_LOOP else tl.sum(acc, axis=0))


def row_sum(place: Place, inputs: Any, cols: int, in_loop: bool) -> Call:
    rows = place.size((1 << 26) // cols, 4)
    x, out = place.normal(rows, cols).abs_(), place.empty(rows)

    def run() -> torch.Tensor:
        row_sum_kernel[(rows,)](x, out, cols, BLOCK=1024, IN_LOOP=in_loop, num_warps=4)
        return out

    return Call(run, lambda: x.sum(dim=1), bytes=x.nbytes)


ROW_SUM = Question(
    "sum-in-the-loop", "m04", "What does tl.sum in every step cost a row sum, against one tile folded at the end?",
    "a reduction over 4 warps needs a barrier, and there are 4 of them a row, or 64; BLOCK 1024, 4 warps",
    {f"2^26 float32 in rows of {c}, {'in the loop' if i else 'one tile'}": {"cols": c, "in_loop": i}
     for c in (4096, 65536) for i in (True, False)},
    row_sum, groups=2, options=("the same", "1.3 times", "3 times"),
)  # fmt: skip


@triton.jit
def two_sums(a0, b0, a1, b1):
    return a0 + a1, b0 + b1


@triton.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, n_cols, eps,
    BLOCK: tl.constexpr, HOW: tl.constexpr, X_POLICY: tl.constexpr, W_POLICY: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=0.0, eviction_policy=X_POLICY).to(tl.float32)
    if HOW == "two looks":
        mean = tl.sum(x, axis=0) / n_cols
        centred = tl.where(mask, x - mean, 0.0)
        variance = tl.sum(centred * centred, axis=0) / n_cols
    else:
        if HOW == "one look":
            s, ss = tl.sum(x, axis=0), tl.sum(x * x, axis=0)
        else:
            s, ss = tl.reduce((x, x * x), 0, two_sums)
        mean = s / n_cols
        variance = ss / n_cols - mean * mean
    weight = tl.load(weight_ptr + cols, mask=mask, other=0.0, eviction_policy=W_POLICY).to(tl.float32)
    bias = tl.load(bias_ptr + cols, mask=mask, other=0.0, eviction_policy=W_POLICY).to(tl.float32)
    y = (x - mean) * tl.rsqrt(variance + eps) * weight + bias
    tl.store(out_ptr + row * n_cols + cols, y, mask=mask)


def norm_inputs(place: Place) -> list[torch.Tensor]:
    rows, cols = place.size(32768, 3), place.size(4096, 1000)
    return [place.normal(*shape, dtype=torch.bfloat16) for shape in ((rows, cols), (cols,), (cols,))]


def layer_norm(place: Place, inputs: Any, how: str, x_policy: str = "", w_policy: str = "") -> Call:
    x, weight, bias = inputs
    rows, cols = x.shape
    out = torch.empty_like(x)

    def run() -> torch.Tensor:
        layer_norm_kernel[(rows,)](
            x, weight, bias, out, cols, 1e-5,
            BLOCK=triton.next_power_of_2(cols), HOW=how, X_POLICY=x_policy, W_POLICY=w_policy, num_warps=8,
        )  # fmt: skip
        return out

    return Call(run, lambda: F.layer_norm(x, (cols,), weight, bias, 1e-5), bytes=2 * x.nbytes)


EVICT = Question(
    "eviction-hints", "m04", "What do evict_first on x and evict_last on weight and bias gain in layer_norm?",
    "32768 x 4096 bfloat16, 8 warps: 8 KB of weights that all rows want again",
    {"no hints": {"how": "two looks"},
     "evict_first on x, evict_last on weight": {"how": "two looks", "x_policy": "evict_first",
                                                "w_policy": "evict_last"}},
    layer_norm, norm_inputs, options=("no difference", "5 %"),
)  # fmt: skip

LOOKS = Question(
    "layer-norm-looks", "m04", "Does layer_norm gain when mean and variance are found in one look at the row?",
    "two reductions after each other, two beside each other, and one tl.reduce over (x, x * x); 32768 x 4096 bfloat16",
    {how: {"how": how} for how in ("two looks", "one look", "one tl.reduce")}, layer_norm, norm_inputs,
    options=("all the same: they wait for memory", "one look is 10 % faster"),
)  # fmt: skip


@triton.jit
def lanes_cross_entropy_kernel(logits_ptr, target_ptr, loss_ptr, n_cols, BLOCK: tl.constexpr):
    """A maximum and a sum for each lane, folded once after the loop."""
    row = tl.program_id(0).to(tl.int64)
    logits_row = logits_ptr + row * n_cols
    m = tl.full((BLOCK,), -float("inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        z = tl.load(logits_row + cols, mask=cols < n_cols, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m, z)
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.exp(z - shift)
        m = m_new
    top = tl.max(m, axis=0)
    total = tl.sum(l * tl.exp(m - top), axis=0)
    z_target = tl.load(logits_row + tl.load(target_ptr + row)).to(tl.float32)
    tl.store(loss_ptr + row, top + tl.log(total) - z_target)


def logits(place: Place) -> list[torch.Tensor]:
    rows, cols = place.size(4096, 3), place.size(128256, 5000)
    return [place.normal(rows, cols, dtype=torch.bfloat16), place.whole(0, cols, rows, dtype=torch.int64)]


def cross_entropy(place: Place, inputs: Any, how: str) -> Call:
    x, target = inputs
    loss = place.empty(x.shape[0])

    def eager(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x.float(), target, reduction="none")

    def lanes() -> torch.Tensor:
        lanes_cross_entropy_kernel[(x.shape[0],)](x, target, loss, x.shape[1], BLOCK=2048, num_warps=8)
        return loss

    if how == "solution":
        entry = solution("04-softmax-and-reductions/cross_entropy").cross_entropy
        run = lambda: entry(x, target, -100, 0.0)
    elif how == "lanes":
        run = lanes
    else:
        called = torch.compile(eager, dynamic=False) if how == "compiled" and place.device == "cuda" else eager
        run = lambda: called(x, target)
    return Call(run, lambda: eager(x, target), bytes=x.nbytes, torch=how in ("eager", "compiled"), tolerance=1e-4)


CROSS = Question(
    "cross-entropy", "m04", "Cross entropy of 4096 x 128256 bfloat16, in float32: time and memory of four ways",
    "peak_bytes of each row of the record; the eager call makes a float32 copy, and another of log_softmax",
    {"solution": {"how": "solution"}, "m and l a lane": {"how": "lanes"}, "PyTorch eager": {"how": "eager"},
     "torch.compile": {"how": "compiled"}},
    cross_entropy, logits,
)  # fmt: skip


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid.to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0)
    if ATOMIC:
        tl.atomic_add(out_ptr, total, sem="relaxed")
    else:
        tl.store(out_ptr + pid, total)


def whole_sum(place: Place, inputs: Any, how: str) -> Call:
    x = inputs
    n, BLOCK = x.numel(), 1024
    programs = triton.cdiv(n, BLOCK)
    out, partial, parts = place.zeros(1), place.empty(programs), place.empty(triton.cdiv(programs, BLOCK))

    def atomics() -> torch.Tensor:
        out.zero_()
        sum_kernel[(programs,)](x, out, n, BLOCK=BLOCK, ATOMIC=True)
        return out

    def partials() -> torch.Tensor:
        sum_kernel[(programs,)](x, partial, n, BLOCK=BLOCK, ATOMIC=False)
        sum_kernel[(parts.numel(),)](partial, parts, programs, BLOCK=BLOCK, ATOMIC=False)
        sum_kernel[(1,)](parts, out, parts.numel(), BLOCK=BLOCK, ATOMIC=False)
        return out

    run = {"atomics": atomics, "partials": partials, "torch": lambda: x.sum().reshape(1)}[how]
    return Call(
        run, lambda: x.sum(dtype=torch.float64).reshape(1), bytes=x.nbytes, torch=how == "torch", tolerance=1e-3
    )


SUM = Question(
    "one-sum", "m04", "Sum of 2^30 float32: 2^20 atomics on one address, or partial sums and two more launches?",
    "tiles of 1024; the time of clearing the sum belongs to the atomics",
    {"atomics": {"how": "atomics"}, "partial sums": {"how": "partials"}, "torch.sum": {"how": "torch"}},
    whole_sum, lambda place: place.normal(place.size(1 << 30, 1 << 16)).abs_(),
    options=("level", "atomics take twice as long", "ten times"),
)  # fmt: skip

QUESTIONS = (ROW_SUM, EVICT, LOOKS, CROSS, SUM)
