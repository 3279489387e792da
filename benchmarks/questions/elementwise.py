"""Modules 1 and 2: copies and elementwise formulas."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from benchmarks.questions.question import Call, Place, Question, solution

SHORT = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


@triton.jit
def dropout4_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    """Four numbers from each call of the generator: BLOCK offsets, 4 * BLOCK elements."""
    pid = tl.program_id(0)
    u0, u1, u2, u3 = tl.rand4x(seed, pid * BLOCK + tl.arange(0, BLOCK))
    u = tl.join(tl.join(u0, u1), tl.join(u2, u3)).reshape(4 * BLOCK)
    offs = pid * 4 * BLOCK + tl.arange(0, 4 * BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(tl.float32)
    tl.store(out_ptr + offs, tl.where(u >= p, x / (1 - p), 0.0), mask=offs < n)


@triton.jit
def stepping_copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """A fixed number of programs walks through the whole of it."""
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, n, step):
        offs = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def formula(place: Place, inputs: Any, exercise: str, dtype: torch.dtype) -> Call:
    n = place.size(1 << 27, 1 << 12)
    entry = solution(f"02-first-kernel/{exercise.split()[0]}")
    if exercise == "swiglu":
        x = place.normal(place.size(1 << 14, 4), 2 * (n // place.size(1 << 14, 4)), dtype=dtype)
        gate, up = x.chunk(2, dim=1)
        return Call(lambda: entry.swiglu(x), lambda: F.silu(gate.float()).mul_(up).to(dtype), bytes=3 * x.nbytes // 2)
    x = place.normal(n, dtype=dtype)
    if exercise == "affine_relu":
        run, want = lambda: entry.affine_relu(x, 0.5, 1.0), lambda: F.relu(x.float() * 0.5 + 1.0).to(dtype)
    else:
        how = exercise.split()[1]
        run, want = lambda: entry.gelu(x, how), lambda: F.gelu(x, approximate=how)
    return Call(run, want, bytes=2 * x.nbytes)


EXERCISES = ("affine_relu", "swiglu", "gelu none", "gelu tanh")

BF16 = Question(
    "bf16-formulas", "m02", "Is an elementwise formula twice as fast in bfloat16 as in float32? 2^27 results",
    "m02.quiz.bfloat16 derives 148 against 224 µs for GELU with erf from counts of instructions",
    {f"{e}, {SHORT[t]}": {"exercise": e, "dtype": t} for e in EXERCISES for t in (torch.float32, torch.bfloat16)},
    formula, groups=4, options=("all four twice as fast", "GELU with erf gains less, it waits for arithmetic"),
)  # fmt: skip


def dropout(place: Place, inputs: Any, how: str, dtype: torch.dtype) -> Call:
    n, p = place.size(1 << 27, 1 << 12), 0.5
    x = torch.ones(n, device=place.device, dtype=dtype)
    out, entry = torch.empty_like(x), solution("02-first-kernel/seeded_dropout")

    def rand4x() -> torch.Tensor:
        dropout4_kernel[(triton.cdiv(n, 1024),)](x, out, n, p, 7, BLOCK=256)
        return out

    def kept(values: torch.Tensor) -> list[torch.Tensor]:
        """Random: what holds is that a value is 0 or 2, and that about half are kept."""
        return [((values == 0) | (values == 2)).all(), (values.mean(dtype=torch.float32) - 1).abs() < 5 / n**0.5]

    run = {"rand": lambda: entry.dropout(x, p, 7), "rand4x": rand4x, "torch": lambda: F.dropout(x, p)}[how]
    yes = torch.ones((), device=place.device, dtype=torch.bool)
    return Call(run, lambda: [yes, yes], bytes=2 * x.nbytes, torch=how == "torch", seen=kept)


DROPOUT = Question(
    "dropout-rand4x", "m02", "How much faster is dropout with tl.rand4x than with tl.rand? 2^27 elements, p = 0.5",
    "53 against 22 instructions a number; does it matter beside the memory?",
    {f"{how}, {SHORT[t]}": {"how": how, "dtype": t}
     for t in (torch.float32, torch.bfloat16) for how in ("rand", "rand4x", "torch")},
    dropout, groups=2, options=("no difference: both wait for memory", "a third", "twice as fast"),
)  # fmt: skip


def wide_add(place: Place, inputs: Any, less: int, BLOCK: int) -> Call:
    n = place.size(1 << 26, 1 << 13) - less
    x, y, out = place.normal(n), place.normal(n), place.empty(n)
    kernel = solution("02-first-kernel/vector_add").add_kernel

    def run() -> torch.Tensor:
        kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
        return out

    return Call(run, lambda: x + y, bytes=3 * x.nbytes)


WIDE_ADD = Question(
    "wide-loads-add", "m02", "What does a vector add lose when n is odd, and no load can be 16 bytes wide? float32",
    "n = 2^26 gives v4 loads, n = 2^26 - 1 gives single ones",
    {f"n = 2^26{' - 1' if less else ''}, BLOCK {b}": {"less": less, "BLOCK": b}
     for b in (1024, 4096) for less in (0, 1)},
    wide_add, groups=2, options=("nothing within 3 %", "about a third more time"),
)  # fmt: skip


def wide_copy(place: Place, inputs: Any, less: int, dtype: torch.dtype) -> Call:
    n = place.size(1 << 26, 1 << 13) - less
    x, out = place.normal(n, dtype=dtype), place.empty(n, dtype=dtype)
    return Call(copying(x, out, 1024), lambda: x, bytes=2 * x.nbytes)


def copying(x: torch.Tensor, out: torch.Tensor, BLOCK: int, **options: int) -> Any:
    kernel, n = solution("01-programming-model/tile_copy").copy_kernel, x.numel()

    def run() -> torch.Tensor:
        kernel[(triton.cdiv(n, BLOCK),)](x, out, n, BLOCK=BLOCK, **options)
        return out

    return run


WIDE_COPY = Question(
    "wide-loads-copy", "m03", "What does a copy lose when its loads are narrow? BLOCK 1024, 4 warps",
    "8 loads of 4 bytes instead of 2 of 16; in float16 8 of 2 bytes instead of 1",
    {f"{SHORT[t]}, n = 2^26{' - 1' if less else ''}": {"less": less, "dtype": t}
     for t in (torch.float32, torch.float16) for less in (0, 1)},
    wide_copy, groups=2, options=("the same time within 3 %", "about 1.3 times as long"),
)  # fmt: skip


def stepping(place: Place, inputs: Any, n: int, programs: int, BLOCK: int) -> Call:
    n = place.size(n, 1 << 14)
    x, out = place.normal(n), place.empty(n)

    def run() -> torch.Tensor:
        stepping_copy_kernel[(programs,)](x, out, n, BLOCK=BLOCK, num_warps=4)
        return out

    return Call(run, lambda: x, bytes=2 * x.nbytes)


FEW = Question(
    "too-few-programs", "m01", "How does the time of a copy depend on the number of programs that share it? float32",
    "m01.lesson.machine: 132 multiprocessors; each program walks through its share in tiles of 1024",
    {f"2^{e}, {p} programs": {"n": 1 << e, "programs": p, "BLOCK": 1024}
     for e in (20, 26) for p in (33, 66, 132, 264, 1024)},
    stepping, groups=2, options=("half the programs, twice the time", "no difference from 66 on"),
)  # fmt: skip


def in_flight(place: Place, inputs: Any, elements: int, resident: int) -> Call:
    return stepping(place, inputs, 1 << 27, resident * place.programs, elements * 128)


IN_FLIGHT = Question(
    "bytes-in-flight", "m01",
    "Which share of the bandwidth has a copy with 1, 2, 4, 8 float32 in flight a thread? 2^27 elements, 4 warps",
    "m01 assumes a latency of 0.5 µs: this gives one, by Little's law. All programs are resident, and loop",
    {f"{e} a thread, {r} programs a multiprocessor": {"elements": e, "resident": r}
     for r in (4, 16) for e in (1, 2, 4, 8)},
    in_flight, groups=2, options=("all the same", "1 a thread has half of it"),
)  # fmt: skip


def six_megabytes(place: Place, inputs: Any, clock: str) -> Call:
    n = place.size(6_000_000, 6_000)
    x, out = place.whole(0, 100, n, dtype=torch.uint8), place.empty(n, dtype=torch.uint8)
    return Call(copying(x, out, 16384, num_warps=8), lambda: x, bytes=2 * x.nbytes, clock=clock)  # type: ignore[arg-type]


WARM = Question(
    "warm-l2", "m02", "What does each clock say of a copy of 6 MB (6 MB in, 6 MB out)?",
    "m02.quiz.too-good supposes 1.3 µs of do_bench_cudagraph",
    {c: {"clock": c} for c in ("cold", "warm", "do_bench", "do_bench_cudagraph")}, six_megabytes,
    options=("the same", "the graph: half", "the graph: a fifth"),
)  # fmt: skip

QUESTIONS = (FEW, IN_FLIGHT, BF16, DROPOUT, WIDE_ADD, WARM, WIDE_COPY)
