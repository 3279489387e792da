"""Module 3: strides, tiles and descriptors."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.questions.question import Call, Place, Question, solution


@triton.jit
def row_copy_kernel(x_ptr, out_ptr, n_cols, stride, BLOCK: tl.constexpr, MASK_LAST: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    whole = n_cols // BLOCK * BLOCK if MASK_LAST else 0
    for start in range(0, whole, BLOCK):
        offs = row * stride + start + tl.arange(0, BLOCK)
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
    for start in range(whole, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride + cols, mask=cols < n_cols)
        tl.store(out_ptr + row * stride + cols, x, mask=cols < n_cols)


def pitch(place: Place, inputs: Any, stride: int, last: bool) -> Call:
    rows, cols = place.size(16384, 3), 4000
    x = place.normal(rows, stride, dtype=torch.float16)[:, :cols]
    out = place.empty(rows, stride, dtype=torch.float16)[:, :cols]

    def run() -> torch.Tensor:
        row_copy_kernel[(rows,)](x, out, cols, stride, BLOCK=1024, MASK_LAST=last)
        return out

    return Call(run, lambda: x, bytes=2 * 2 * rows * cols)


PITCH = Question(
    "row-pitch", "m03", "What does the distance between rows of 4000 float16 cost a row copy? 16384 rows, BLOCK 1024",
    "4000 is a multiple of 16, 4008 of 8, 4001 is odd; the compiler knows of multiples of 16",
    {"4000 apart": {"stride": 4000, "last": False},
     "4000 apart, mask in the last chunk only": {"stride": 4000, "last": True},
     "4008 apart": {"stride": 4008, "last": False}, "4001 apart": {"stride": 4001, "last": False}},
    pitch, options=("all the same", "4008 is as slow as 4001"),
)  # fmt: skip


@triton.jit
def tile_copy_kernel(
    x_ptr, out_ptr, n_rows, n_cols, stride_m, stride_n,
    BM: tl.constexpr, BN: tl.constexpr, IDS64: tl.constexpr, BASE64: tl.constexpr,
):  # fmt: skip
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    if IDS64:
        pid_m, pid_n = pid_m.to(tl.int64), pid_n.to(tl.int64)
    rows, cols = pid_m * BM + tl.arange(0, BM)[:, None], pid_n * BN + tl.arange(0, BN)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    if BASE64:
        base = pid_m.to(tl.int64) * BM * stride_m + pid_n.to(tl.int64) * BN * stride_n
        offs = tl.arange(0, BM)[:, None] * stride_m + tl.arange(0, BN)[None, :] * stride_n
        x_ptr += base
        out_ptr += base
    else:
        offs = rows * stride_m + cols * stride_n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def int64(place: Place, inputs: Any, ids: bool, base: bool) -> Call:
    n = place.size(8192, 100)
    x, out = (place.normal(n, 2 * n + 16)[:, : 2 * n : 2] for _ in range(2))

    def run() -> torch.Tensor:
        grid = (triton.cdiv(n, 64), triton.cdiv(n, 64))
        tile_copy_kernel[grid](x, out, n, n, x.stride(0), x.stride(1), BM=64, BN=64, IDS64=ids, BASE64=base)
        return out

    return Call(run, lambda: x, bytes=4 * 4 * n * n)


INT64 = Question(
    "int64-indices", "m03", "Does the time of a strided 2-D copy follow the registers that int64 indices take? 64 x 64",
    "64-bit offsets take more registers; 8192 x 8192 float32, strides (16400, 2): half of each sector is not wanted",
    {"int32": {"ids": False, "base": False}, "int64 program ids": {"ids": True, "base": False},
     "int64 base, int32 offsets": {"ids": False, "base": True}},
    int64, options=("all the same", "int64 ids take a third longer"),
)  # fmt: skip


def scaled(place: Place, inputs: Any, transposed: bool) -> Call:
    n = place.size(8192, 70)
    x = place.normal(n, n).t() if transposed else place.normal(n, n)
    scale, entry = place.normal(n), solution("03-memory-and-masking/row_scale").row_scale
    return Call(lambda: entry(x, scale), lambda: x * scale[:, None], bytes=2 * x.nbytes)


SCALED = Question(
    "row-scale-transposed", "m03", "How much slower is row_scale, one row a program, on a transposed matrix?",
    "8192 x 8192 float32: a lane's neighbour lies 32 KB away, and the L2 may keep the sectors for the next rows",
    {"contiguous": {"transposed": False}, "transposed": {"transposed": True}}, scaled,
    options=("1.2 times", "3 times", "8 times"),
)  # fmt: skip


def second_read(place: Place, inputs: Any, megabytes: int) -> Call:
    n = place.size(megabytes << 18, 1 << 12)
    x, y = place.normal(n), place.empty(n)
    kernel = solution("01-programming-model/tile_copy").copy_kernel
    reduce = solution("04-softmax-and-reductions/row_sum").row_sum
    rows = y.view(place.size(4096, 4), -1)

    def write() -> None:
        kernel[(triton.cdiv(n, 1024),)](x, y, n, BLOCK=1024)

    def run() -> torch.Tensor:
        return reduce(rows)

    def want() -> torch.Tensor:
        write()
        return rows.double().sum(dim=1).float()

    def both() -> torch.Tensor:
        write()
        return run()

    if place.device != "cuda":
        return Call(both, want, bytes=y.nbytes)
    write()
    return Call(run, want, bytes=y.nbytes, clock="after", before=write, tolerance=1e-4)


SECOND = Question(
    "second-read", "m03", "At which bandwidth does a kernel read what the kernel before it wrote? 8, 32, 128 MB",
    "L2 reuse between kernels: a row sum of y, right after a copy from x to y; no flush between them",
    {f"{m} MB": {"megabytes": m} for m in (8, 32, 128)}, second_read,
    options=("the memory's, in all three", "8 MB: twice the memory's or more"),
)  # fmt: skip


@triton.jit
def transpose_kernel(x_ptr, out_ptr, n_rows, n_cols, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BM + tl.arange(0, BM)[:, None]
    cols = tl.program_id(1).to(tl.int64) * BN + tl.arange(0, BN)[None, :]
    mask = (rows < n_rows) & (cols < n_cols)
    tl.store(out_ptr + cols * n_rows + rows, tl.load(x_ptr + rows * n_cols + cols, mask=mask), mask=mask)


def transposing(place: Place, inputs: Any, BM: int, BN: int) -> Call:
    n = place.size(8192, 300)
    x, out = place.normal(n, n), place.empty(n, n)

    def run() -> torch.Tensor:
        transpose_kernel[(triton.cdiv(n, BM), triton.cdiv(n, BN))](x, out, n, n, BM=BM, BN=BN)
        return out

    return Call(run, lambda: x.t(), bytes=2 * x.nbytes)


TRANSPOSE = Question(
    "transpose-tiles", "m03", "How does the time of a transpose depend on the shape of the tile? 8192 x 8192 float32",
    "the longest run along both axes: 64 bytes with 16 rows, 512 with 128",
    {f"{m} x {n}": {"BM": m, "BN": n} for m, n in ((1, 1024), (16, 256), (32, 32), (64, 64), (128, 128))}, transposing,
    options=("all but 1 x 1024 alike", "64 x 64 twice as fast as 16 x 256"),
)  # fmt: skip


@triton.jit
def described_copy_kernel(x, out, BM: tl.constexpr, BN: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    out.store([row, col], x.load([row, col]))


def described(place: Place, inputs: Any, how: str) -> Call:
    n = place.size(8192, 256)
    x, out = place.normal(n, n), place.empty(n, n)
    grid = (triton.cdiv(n, 64), triton.cdiv(n, 64))

    def pointers() -> torch.Tensor:
        tile_copy_kernel[grid](x, out, n, n, n, 1, BM=64, BN=64, IDS64=False, BASE64=False)
        return out

    if how == "pointers":
        return Call(pointers, lambda: x, bytes=2 * x.nbytes)
    descriptors = [TensorDescriptor.from_tensor(t, [64, 64]) for t in (x, out)]

    def run() -> torch.Tensor:
        described_copy_kernel[grid](*descriptors, BM=64, BN=64)
        return out

    return Call(run, lambda: x, bytes=2 * x.nbytes)


DESCRIBED = Question(
    "descriptor-copy", "m03", "Is a 2-D copy faster by TMA than by pointers? 8192 x 8192 float32, tiles of 64 x 64",
    "10 registers with descriptors, and one thread that starts the copy",
    {"pointers": {"how": "pointers"}, "descriptors": {"how": "descriptors"}}, described,
    options=("level", "a tenth faster", "a tenth slower"),
)  # fmt: skip

QUESTIONS = (PITCH, INT64, SCALED, SECOND, TRANSPOSE, DESCRIBED)
