"""Module 5: atomics, registers and stages."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.questions.question import Call, Place, Question, solution


@triton.jit
def atomic_histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.atomic_add(counts_ptr + tl.load(x_ptr + offs, mask=mask, other=0), 1, mask=mask, sem="relaxed")


def histogram(place: Place, inputs: Any, how: str, equal: bool) -> Call:
    n = place.size(1 << 27, 1 << 13)
    x = torch.full((n,), 7, device=place.device, dtype=torch.int32) if equal else place.whole(0, 256, n)
    counts, entry = place.zeros(256, dtype=torch.int32), solution("05-autotuning/histogram").histogram

    def atomics() -> torch.Tensor:
        counts.zero_()
        atomic_histogram_kernel[(triton.cdiv(n, 1024),)](x, counts, n, BLOCK=1024)
        return counts

    run = atomics if how == "atomics" else lambda: entry(x, 256)
    return Call(run, lambda: torch.bincount(x, minlength=256).int(), bytes=x.nbytes)


HISTOGRAM = Question(
    "histogram", "m05", "How many times faster is a histogram that counts in the program than one atomic an element?",
    "2^27 int32, 256 bins; with uniform values, and with all values equal, when every atomic meets every other",
    {f"{how}, {'all equal' if e else 'uniform'}": {"how": how, "equal": e}
     for e in (False, True) for how in ("atomics", "solution")},
    histogram, groups=2, options=("2 times both", "10 times when all are equal", "the atomics are not slower"),
)  # fmt: skip


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def softmax(place: Place, inputs: Any, **options: int) -> Call:
    x = inputs
    rows, cols = x.shape
    out = torch.empty_like(x)

    def run() -> torch.Tensor:
        softmax_kernel[(rows,)](x, out, cols, BLOCK=8192, **options)
        return out

    return Call(run, lambda: torch.softmax(x, dim=1), bytes=2 * x.nbytes)


SOFTMAX = Question(
    "softmax-registers", "m05", "A softmax of rows of 8192 float32: does a cap on registers help, or do more warps?",
    "maxnreg=64 lets 8 programs of 4 warps fit where 5 did, and spills",
    {"4 warps": {"num_warps": 4}, "8 warps": {"num_warps": 8}, "16 warps": {"num_warps": 16},
     "4 warps, maxnreg=64": {"num_warps": 4, "maxnreg": 64}},
    softmax, lambda place: place.normal(place.size(8192, 3), place.size(8192, 8000)),
    options=("the cap helps", "the cap costs time", "no difference"),
)  # fmt: skip


@triton.jit
def staged_sum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, n_cols, BLOCK, num_stages=STAGES):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


def staged(place: Place, inputs: Any, stages: int) -> Call:
    x = inputs
    rows, cols = x.shape
    out = place.empty(rows)

    def run() -> torch.Tensor:
        staged_sum_kernel[(rows,)](x, out, cols, BLOCK=1024, STAGES=stages, num_warps=4)
        return out

    return Call(run, lambda: x.sum(dim=1), bytes=x.nbytes)


STAGED = Question(
    "stages-without-dot", "m05", "What does pipelining gain in a loop without a dot? Row sum of 65,536 columns",
    "tl.range(num_stages=1) against 2 and 4; 2048 rows of float32, BLOCK 1024, 4 warps",
    {f"num_stages={s}": {"stages": s} for s in (1, 2, 4)}, staged,
    lambda place: place.normal(place.size(2048, 2), place.size(65536, 3000)).abs_(),
    options=("nothing", "a tenth", "twice as fast"),
)  # fmt: skip


def matmul(place: Place, inputs: Any, stages: int) -> Call:
    a, b = inputs
    n = a.shape[0]
    c = place.empty(n, n, dtype=torch.float16)
    kernel = solution("06-blocked-matmul/grouped_matmul").grouped_matmul_kernel

    def run() -> torch.Tensor:
        kernel[(triton.cdiv(n, 128) ** 2,)](
            a, b, c, n, n, n, n, 1, n, 1, n, 1,
            BLOCK_M=128, BLOCK_N=128, BLOCK_K=64, GROUP_M=8, num_warps=8, num_stages=stages,
        )  # fmt: skip
        return c

    return Call(run, lambda: a @ b, flops=2 * n**3)


def square(place: Place) -> list[torch.Tensor]:
    n = place.size(4096, 128)
    return [place.normal(n, n, dtype=torch.float16) for _ in range(2)]


STAGES = Question(
    "matmul-stages", "m05", "Is the fourth stage of a matmul worth half of the resident programs? 4096^3 float16",
    "128 x 128 x 64, 8 warps: 2, 2 and 1 programs a multiprocessor by shared memory",
    {f"num_stages={s}": {"stages": s} for s in (2, 3, 4)}, matmul, square,
    options=("yes, 4 is the fastest", "no, 3 is the fastest", "no difference"),
)  # fmt: skip

QUESTIONS = (HISTOGRAM, SOFTMAX, STAGED, STAGES)
