"""Module 6: how tiles are loaded, specialised warps, split-K, layouts, fp8 and fusion."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.questions.question import FP8, Call, Place, Question, solution
from benchmarks.questions.tuning import square

HALF = torch.float16


@triton.jit
def described_matmul_kernel(
    a, b, c, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP_M: tl.constexpr,
    SPECIALISE: tl.constexpr, OF_POINTERS: tl.constexpr,
):  # fmt: skip
    """One tile a program, by descriptors that the launcher made; OF_POINTERS: that the kernel makes."""
    if OF_POINTERS:
        a = tl.make_tensor_descriptor(a, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
        b = tl.make_tensor_descriptor(b, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
        c = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    pid = tl.program_id(0)
    per_group = GROUP_M * tl.cdiv(N, BN)
    first = pid // per_group * GROUP_M
    rows = min(tl.cdiv(M, BM) - first, GROUP_M)
    row, col = (first + pid % per_group % rows) * BM, pid % per_group // rows * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, tl.cdiv(K, BK), warp_specialize=SPECIALISE):
        acc = tl.dot(a.load([row, k * BK]), b.load([k * BK, col]), acc)
    c.store([row, col], acc.to(c.dtype))


def tiled(place: Place, inputs: Any, how: str, BM: int, BN: int, warps: int, in_kernel: bool = False) -> Call:
    a, b = inputs
    n = a.shape[0]
    c = place.empty(n, n, dtype=HALF)
    tile = {"BLOCK_M": BM, "BLOCK_N": BN, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": warps, "num_stages": 3}
    tiles = triton.cdiv(n, BM) * triton.cdiv(n, BN)
    persistent = solution("06-blocked-matmul/persistent_matmul")

    def pointers() -> torch.Tensor:
        kernel = solution("06-blocked-matmul/grouped_matmul").grouped_matmul_kernel
        kernel[(tiles,)](a, b, c, n, n, n, n, 1, n, 1, n, 1, **tile)
        return c

    def persisting() -> torch.Tensor:
        triton.set_allocator(persistent.allocate)
        grid = (min(place.programs, tiles),)
        persistent.persistent_matmul_kernel[grid](a, b, c, n, n, n, n, n, n, **tile)
        return c

    def described() -> torch.Tensor:
        shapes = ((a, [BM, 64]), (b, [64, BN]), (c, [BM, BN]))
        descriptors = [t if in_kernel else TensorDescriptor.from_tensor(t, shape) for t, shape in shapes]
        triton.set_allocator(persistent.allocate)
        described_matmul_kernel[(tiles,)](
            *descriptors, n, n, n, BM=BM, BN=BN, BK=64, GROUP_M=8,
            SPECIALISE=how == "specialised", OF_POINTERS=in_kernel, num_warps=warps, num_stages=3,
        )  # fmt: skip
        return c

    def cublas() -> torch.Tensor:
        return torch.matmul(a, b, out=c)

    ways = {"pointers": pointers, "persistent": persisting, "torch": cublas}
    return Call(ways.get(how, described), lambda: a @ b, flops=2 * n**3, torch=how == "torch")


LOADING = Question(
    "matmul-descriptors", "m06", "What do descriptors gain over pointers in a matmul, and persistence? 4096^3",
    "128 x 256 x 64, 8 warps, 3 stages, float16: descriptors need fewer registers, and no masks",
    {name: {"how": how, "BM": 128, "BN": 256, "warps": 8} for name, how in (
        ("pointers", "pointers"), ("descriptors", "described"), ("descriptors, persistent", "persistent"),
        ("torch.matmul", "torch"))},
    tiled, square, options=("level", "descriptors 5 %, persistence 10 % more", "descriptors are slower"),
)  # fmt: skip

SPECIALISED = Question(
    "warp-specialise", "m06", "How much does warp_specialize=True gain in a matmul by descriptors? 4096^3 float16",
    "128 x 128 x 64, num_warps=4, 3 stages; made by the launcher, the descriptors stop Triton from compiling it",
    {f"warp_specialize={s}": {"how": "specialised" if s else "described", "BM": 128, "BN": 128, "warps": 4,
                               "in_kernel": True} for s in (False, True)},
    tiled, square, options=("nothing", "10 %", "30 %"), last=True,
)  # fmt: skip


@triton.jit
def split_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, ATOMIC: tl.constexpr,
):  # fmt: skip
    """Part `split` of K. With ATOMIC the parts meet in out, otherwise each has its own."""
    col, split = tl.program_id(0) * BN, tl.program_id(1)
    rows, cols, ks = tl.arange(0, BM), col + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    part = K // SPLIT
    for k in range(split * part, (split + 1) * part, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + (k + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(a, b, acc)
    offs = rows[:, None] * N + cols[None, :]
    if ATOMIC:
        tl.atomic_add(out_ptr + offs, acc, mask=rows[:, None] < M, sem="relaxed")
    else:
        tl.store(out_ptr + split * M * N + offs, acc, mask=rows[:, None] < M)


@triton.jit
def add_parts_kernel(parts_ptr, out_ptr, size, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for part in tl.static_range(SPLIT):
        acc += tl.load(parts_ptr + part * size + offs, mask=offs < size)
    tl.store(out_ptr + offs, acc, mask=offs < size)


def thin(place: Place) -> list[torch.Tensor]:
    n = place.size(4096, 1024)
    return [place.normal(16, n, dtype=HALF), place.normal(n, place.size(n, 256), dtype=HALF)]


def split(place: Place, inputs: Any, how: str, parts: int) -> Call:
    a, b = inputs
    (M, K), N = a.shape, b.shape[1]
    out, partial = place.empty(M, N), place.empty(parts, M, N)
    tile = {"BM": 16, "BN": 128, "BK": 128, "SPLIT": parts, "num_warps": 4, "num_stages": 4}

    def atomics() -> torch.Tensor:
        out.zero_()
        split_kernel[(triton.cdiv(N, 128), parts)](a, b, out, M, N, K, ATOMIC=True, **tile)
        return out

    def two_passes() -> torch.Tensor:
        target = out if parts == 1 else partial
        split_kernel[(triton.cdiv(N, 128), parts)](a, b, target, M, N, K, ATOMIC=False, **tile)
        if parts > 1:
            add_parts_kernel[(triton.cdiv(M * N, 1024),)](partial, out, M * N, SPLIT=parts, BLOCK=1024)
        return out

    run = {"atomics": atomics, "two passes": two_passes, "torch": lambda: a @ b}[how]
    return Call(run, lambda: a @ b, bytes=a.nbytes + b.nbytes + 4 * M * N, flops=2 * M * N * K, torch=how == "torch")


SPLIT = Question(
    "split-k", "m06", "What does split-K gain for 16 rows, and which form is faster? N = K = 4096 float16, out float32",
    "tiles of 16 x 128: 32 programs without a split; the atomics' time includes clearing the output",
    {"1": {"how": "two passes", "parts": 1}}
    | {f"{p}, {how}": {"how": how, "parts": p} for p in (4, 8) for how in ("atomics", "two passes")}
    | {"torch.matmul, out float16": {"how": "torch", "parts": 1}},
    split, thin, options=("1.5 times", "3 times", "nothing"),
)  # fmt: skip


def int8(place: Place, inputs: Any, transposed: bool) -> Call:
    n = place.size(4096, 128)
    a, w = (place.whole(-128, 128, n, n, dtype=torch.int8) for _ in range(2))
    b = w.t() if transposed else w
    scales = [torch.full((n,), 1e-3, device=place.device) for _ in range(2)]
    entry = solution("06-blocked-matmul/int8_matmul").int8_matmul
    return Call(lambda: entry(a, b, *scales), lambda: (a.float() @ b.float() * 1e-6).half(), flops=2 * n**3)


INT8 = Question(
    "int8-layout", "m06", "What does a row-major b cost int8_matmul, against b = w.t()? 4096^3",
    "the tensor cores take an int8 B along K only: the other layout is turned on the way",
    {"b = w.t()": {"transposed": True}, "b row-major": {"transposed": False}}, int8,
    options=("nothing", "1.5 times", "3 times or more"),
)  # fmt: skip


def fp8(place: Place, inputs: Any, dtype: torch.dtype, M: int) -> Call:
    n = place.size(4096, 128)
    M = place.size(M, 16)
    a, b = place.normal(M, n).to(dtype), place.normal(n, n).to(dtype).t()  # both along K
    c = place.empty(M, n, dtype=HALF)
    kernel = solution("06-blocked-matmul/grouped_matmul").grouped_matmul_kernel
    BM, BN, BK, warps = (128, 256, 128 // dtype.itemsize, 8) if M > 16 else (16, 64, 256 // dtype.itemsize, 4)

    def run() -> torch.Tensor:
        kernel[(triton.cdiv(M, BM) * triton.cdiv(n, BN),)](
            a, b, c, M, n, n, n, 1, 1, n, n, 1,
            BLOCK_M=BM, BLOCK_N=BN, BLOCK_K=BK, GROUP_M=8, num_warps=warps, num_stages=3,
        )  # fmt: skip
        return c

    least = a.nbytes + b.nbytes + c.nbytes
    return Call(run, lambda: (a.float() @ b.float()).half(), bytes=least, flops=2 * M * n * n, tolerance=0.05)


FP8_SPEED = Question(
    "fp8-matmul", "m06", "Is fp8 (e4m3) twice as fast as float16 with many rows, and with 16? N = K = 4096",
    "half the bytes and twice the FLOP/s of the tensor cores; same tile in bytes, b lies along K in both",
    {f"{name}, M = {m}": {"dtype": t, "M": m} for m in (4096, 16) for name, t in (("float16", HALF), ("fp8", FP8))},
    fp8, groups=2, options=("twice in both", "1.5 with many rows, twice with 16", "no gain with 16"),
)  # fmt: skip


def fused(place: Place, inputs: Any, how: str, K: int) -> Call:
    n, K = place.size(4096, 64), place.size(K, 64)
    a, b, bias = place.normal(n, K, dtype=HALF), place.normal(K, n, dtype=HALF), place.normal(n, dtype=HALF)
    entry = solution("06-blocked-matmul/matmul_bias_relu").matmul_bias_relu
    eager = lambda: torch.relu(torch.addmm(bias, a, b))
    run = eager if how == "eager" else lambda: entry(a, b, bias)
    return Call(run, eager, bytes=2 * (2 * n * K + n * n), flops=2 * n * n * K, torch=how == "eager")


FUSED = Question(
    "fused-epilogue", "m06", "Where does it pay to apply bias and ReLU in the matmul? M = N = 4096 float16, by K",
    "what is saved is one trip of the output through memory, whatever K is",
    {f"K = {k}, {name}": {"how": how, "K": k}
     for k in (256, 4096) for name, how in (("solution", "fused"), ("addmm, then relu", "eager"))},
    fused, groups=2, options=("at K = 256", "at K = 4096", "at both alike"),
)  # fmt: skip

QUESTIONS = (LOADING, SPECIALISED, SPLIT, INT8, FP8_SPEED, FUSED)
