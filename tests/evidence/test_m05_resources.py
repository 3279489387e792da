"""What module 5 says about registers, atomics and histograms, read off kernels compiled without a GPU."""

import triton

from tests.evidence.matmul_source import kernel
from tests.evidence.run import compiled

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])

# `usage(kernel)`: registers a thread, bytes of stack a thread (spilled values), bytes of shared memory a program
USAGE = r"""
import os, re, subprocess, tempfile
TOOL = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")

def usage(kernel):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        text = subprocess.run([TOOL, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", text).groups()
    return int(registers), int(stack), kernel.metadata.shared
"""

SOFTMAX = """
@triton.jit
def softmax(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + cols, e / tl.sum(e, axis=0), mask=mask)

x, out = torch.empty(4, 8192), torch.empty(4, 8192)
def row(BLOCK=8192, **options):
    return usage(softmax[(4,)](x, out, 8192, BLOCK=BLOCK, **options))
"""


def numbers(out: str) -> list[list[int]]:
    return [[int(word) for word in line.split()] for line in out.strip().split("\n")]


def test_registers_of_a_softmax_row() -> None:
    four, eight, capped = numbers(
        compiled(
            USAGE
            + SOFTMAX
            + "for options in (dict(num_warps=4), dict(num_warps=8), dict(num_warps=4, maxnreg=64)):\n    print(*row(**options))\n"
        )
    )
    for (registers, spilled, _), expected in zip((four, eight), (96, 56), strict=True):
        assert abs(registers - expected) <= 6 and spilled == 0
    assert capped[0] == 64 and capped[1] > 100


def test_a_vector_of_atomics_is_one_instruction_on_hopper_only() -> None:
    source = r"""
import re
@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)

@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr, SEM: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0), sem=SEM)

x = torch.empty(1024)
def kinds(k):
    return sorted(set(re.findall(r"(?:atom|red)\.global\S*", k.asm["ptx"]))), len(re.findall(r"(?:atom|red)\.global", k.asm["ptx"]))
print(*kinds(add[(1,)](x, x, 1024, BLOCK=1024, num_warps=4)))
print(*kinds(total[(1,)](x, x, 1024, BLOCK=1024, SEM="acq_rel")), *kinds(total[(1,)](x, x, 1024, BLOCK=1024, SEM="relaxed")))
"""
    hopper = compiled(source).split("\n")
    ampere = compiled(source, "sm_80").split("\n")
    # 1024 elements, 128 threads: two instructions of four elements each, or eight of one
    assert ".v4.f32" in hopper[0] and hopper[0].endswith(" 2")
    assert ".v4" not in ampere[0] and ampere[0].endswith(" 8")
    assert hopper[1].count("acq_rel") == 1 and hopper[1].count("relaxed") == 1


def test_a_histogram_counts_by_warps_and_needs_registers_for_its_bins() -> None:
    source = (
        USAGE
        + r"""
@triton.jit
def histogram(x_ptr, counts_ptr, n, bins, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.zeros((BINS,), dtype=tl.int32)
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK, n, tl.num_programs(0) * BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=-1)
        counts += tl.histogram(x.to(tl.int32), BINS, mask=(x >= 0) & (x < bins))
    bin = tl.arange(0, BINS)
    tl.atomic_add(counts_ptr + bin, counts, mask=bin < bins)

x = torch.zeros(4096, dtype=torch.int32)
for bins in (256, 1024, 4096):
    k = histogram[(4,)](x, x, 4096, bins, BLOCK=4096, BINS=bins, num_warps=8)
    print(*usage(k), len(re.findall(r"atom\.\S*shared\S*\.add", k.asm["ptx"])), int("vote.sync.ballot" in k.asm["ptx"]))
"""
    )
    few, more, many = numbers(compiled(source))
    assert [row[2] for row in (few, more, many)] == [1024, 4096, 16384]
    atomics = [row[3:] for row in (few, more, many)]
    if VERSION >= (3, 9):
        # a thread adds each of its 16 elements to shared memory
        assert atomics == [[16, 0]] * 3 and many[0] <= 64 and many[1] == 0
    elif VERSION <= (3, 7):
        # the warps vote; a thread then adds its warp's counts of bins / 32 bins to shared memory
        assert atomics == [[8, 1], [32, 1], [128, 1]]
        assert few[0] <= 64 and few[1] == 0 and more[1] == 0
        assert many[0] == 255 and many[1] > 200


def test_stages_and_registers_decide_how_many_programs_fit() -> None:
    rows = numbers(
        compiled(
            USAGE
            + kernel()
            + """
a = torch.ones(256, 256).half()
for warps, stages in ((8, 2), (8, 3), (8, 4), (4, 3)):
    print(*usage(matmul(a, a, 128, 128, 64, num_warps=warps, num_stages=stages)))
"""
        )
    )
    assert [shared for _, _, shared in rows] == [65_536, 98_304, 131_072, 98_304]
    assert all(
        abs(registers - expected) <= 10 for (registers, _, _), expected in zip(rows, (115, 108, 108, 208), strict=True)
    )
    assert all(stack == 0 for _, stack, _ in rows)

    def fit(warps: int, registers: int, shared: int) -> int:
        a_warp = -(-registers * 32 // 256) * 256
        return min(64 // warps, 65_536 // (warps * a_warp), 228 * 1024 // (shared + 1024), 32)

    assert [fit(w, r, s) for w, (r, _, s) in zip((8, 8, 8, 4), rows, strict=True)] == [2, 2, 1, 2]
