"""What the ladder lessons say: registers, shared memory and instructions compiled again, bytes and FLOPs counted again."""

from __future__ import annotations

from functools import cache

import pytest
import triton

from benchmarks.ladders.settings import FOLDERS, rungs
from tests.evidence.ladder_source import Compiled, kernels
from tests.evidence.run import ROOT, compiled
from tutor.course.loader import load

SQUARE = (4096, 4096)  # of A and of B
HEADS = (4, 16, 4096, 128)  # B, H, N, D
LAST = "grouped_matmul_kernel.configs = grouped_matmul_kernel.configs[-1:]"  # one configuration: nothing to time
EXACT = triton.__version__ == "3.7.1"  # whose figures the pages print


def lesson(ladder: str) -> list[str]:
    module = {"softmax": "m04", "matmul": "m06", "attention": "m07"}[ladder]
    item = load().item(f"{module}.lesson.{ladder}-ladder")
    return [page.text for page in item.pages]


def near(value: int, figure: int, share: float = 0.25) -> bool:
    return value == figure if EXACT else abs(value - figure) <= share * figure


def printed(page: str, kernel: Compiled) -> bool:
    """Whether the page gives this kernel's registers and shared memory (in bytes with a thousands comma)."""
    words = " ".join(page.split())  # a line may end between the number and its unit
    return not EXACT or (f"{kernel.registers} registers" in words and f"{kernel.shared:,} bytes" in words)


@pytest.mark.parametrize("ladder", FOLDERS)
def test_each_rung_has_a_page_that_names_its_file(ladder):
    pages = lesson(ladder)[1:]
    assert len(pages) == len(rungs(ladder))
    for page, rung in zip(pages, rungs(ladder), strict=True):
        assert rung.path.stem in page


# rung, inputs, then of each kernel: registers, shared bytes, warps
SOFTMAX = [
    (1, (32768, 4096), [(32, 32, 8)]),
    (1, (4096, 32768), [(61, 128, 32)]),
    (2, (524288, 128), [(39, 0, 4)]),
    (3, (4096, 32768), [(52, 32, 8)]),
    (4, (64, 1048576), [(32, 32, 8), (30, 16, 8)]),
]


@pytest.mark.parametrize(("number", "shape", "figures"), SOFTMAX)
def test_softmax_rungs_compiled(number, shape, figures):
    page = lesson("softmax")[number]
    for kernel, (registers, shared, warps) in zip(kernels("softmax", number, *shape), figures, strict=True):
        assert near(kernel.registers, registers) and kernel.stack == 0
        assert (kernel.shared, kernel.warps) == (shared, warps)
        assert kernel.tensor_core_ops == kernel.async_copies == 0
        assert printed(page, kernel)


def test_narrow_rows_need_no_shared_memory_and_lanes_meet_once_a_row():
    (narrow,) = kernels("softmax", 2, 524288, 128)
    assert narrow.words["bar.sync"] == 0 and narrow.words["shfl.sync"] == 32
    (row,), (online,) = kernels("softmax", 1, 32768, 4096), kernels("softmax", 3, 4096, 32768)
    assert online.words["shfl.sync"] == row.words["shfl.sync"] == 16  # of 8 warps, and of 8 warps: no more for 8 tiles


def programs_on_a_multiprocessor(registers: int, warps: int) -> int:
    """By registers: 65,536, handed out by warp in units of 256."""
    return 65536 // (-(-registers * 32 // 256) * 256 * warps)


def test_programs_that_fit_beside_each_other():
    (row,), (online,) = kernels("softmax", 1, 4096, 32768), kernels("softmax", 3, 4096, 32768)
    assert programs_on_a_multiprocessor(row.registers, row.warps) == 1
    assert programs_on_a_multiprocessor(online.registers, online.warps) == 4
    assert programs_on_a_multiprocessor(70, 4) == 7 and 7 * 132 == 924  # matmul, rungs 2 and 3
    assert programs_on_a_multiprocessor(168, 12) == 1 and 168 * 384 == 64512


def test_programs_and_bytes_of_softmax():
    assert 524288 // 32 == 16384 and 4096 // 128 == 32
    assert 2 * 2 * 524288 * 128 == 268_435_456
    parts = -(-(1 << 20) // 8192)
    assert (parts, 64 * parts, 64 * parts * 8) == (128, 8192, 65536)
    assert 4 * 132 * 32768 * 2 == 34_603_008  # bytes of the rows in work on rung 3


MATMUL = {
    # rung: registers, shared, warps, tensor-core operations, async copies
    1: (40, 2048, 4, 0, 0),
    2: (70, 8192, 4, 2, 0),
    3: (70, 8192, 4, 2, 0),
    4: (220, 147_456, 8, 4, 36),
    5: (154, 147_480, 8, 4, 7),
    6: (163, 213_016, 8, 4, 8),
    7: (168, 131_544, 12, 8, 5),
}


@pytest.mark.parametrize("number", MATMUL)
def test_matmul_rungs_compiled(number):
    (kernel,) = kernels("matmul", number, *SQUARE, before=LAST if number == 4 else "")
    registers, shared, warps, dots, copies = MATMUL[number]
    assert near(kernel.registers, registers, 0.4 if number == 1 else 0.25) and kernel.stack == 0
    assert (kernel.warps, kernel.tensor_core_ops, kernel.async_copies) == (warps, dots, copies)
    assert abs(kernel.shared - shared) < (1025 if number == 1 else 256)
    assert printed(lesson("matmul")[number], kernel)
    by_engine = kernel.words["cp.async.bulk.tensor"]
    assert by_engine == (copies if number >= 5 else 0)
    assert (kernel.words["setmaxnreg"] > 0) == (number == 7)


def test_bytes_that_the_tiles_of_a_matmul_ask_for():
    n = 4096
    flops = 2 * n**3
    assert flops == 137_438_953_472 and 3 * n * n * 2 == 100_663_296

    def asked(rows: int, columns: int) -> int:
        """Bytes of A and B, over all programs of tiles of rows x columns."""
        return (n // rows) * (n // columns) * n * (rows + columns) * 2

    assert [round(asked(*tile) / 1e9, 1) for tile in ((1, 128), (64, 64), (128, 256), (128, 128))] == [
        138.5,
        4.3,
        1.6,
        2.1,
    ]
    assert [round(flops / asked(*tile)) for tile in ((1, 128), (64, 64), (128, 256), (128, 128))] == [1, 32, 85, 64]
    assert round(flops / 67e12 * 1e3, 1) == 2.1  # ms outside the tensor cores, at the data sheet's 67 TFLOP/s
    assert 3 * (128 * 64 + 64 * 256) * 2 == 147_456 and 147_456 + 128 * 256 * 2 + 24 == 213_016


@cache
def order() -> list[tuple[int, int]]:
    """Strips of A and B that the first 924 programs need in row order and grouped, at 4096, 8192 and 16384."""
    source = (ROOT / "solutions/06-blocked-matmul/ladder/grouped_matmul_3_grouped.py").read_text()
    code = source.split("@triton.jit\n")[1].replace(": tl.constexpr", "")
    names: dict = {}
    exec(code, names)
    counts = []
    for tiles in (64, 128, 256):
        row_order = [(pid // tiles, pid % tiles) for pid in range(924)]
        grouped = [names["tile_of"](pid, tiles, tiles, 8) for pid in range(924)]
        counts.append(tuple(len({m for m, _ in own}) + len({n for _, n in own}) for own in (row_order, grouped)))
    return counts


def test_strips_that_924_programs_share():
    assert order() == [(79, 80), (136, 124), (260, 124)]
    page = lesson("matmul")[3]
    for size, (plain, grouped) in zip((4096, 8192, 16384), order(), strict=True):
        assert any(line.split()[:3] == [str(size), str(plain), str(grouped)] for line in page.splitlines())


def test_rungs_2_and_3_are_the_same_kernel_but_for_the_order():
    (tiled,), (grouped,) = kernels("matmul", 2, *SQUARE), kernels("matmul", 3, *SQUARE)
    assert (tiled.registers, tiled.shared, tiled.words) == (grouped.registers, grouped.shared, grouped.words)


ATTENTION = {
    # rung: of each kernel registers, shared, warps, tensor-core operations, async copies
    1: [(96, 32_768, 4, 8, 0), (167, 49_152, 4, 4, 32)],
    2: [(175, 81_920, 4, 20, 48)],
    3: [(200, 81_920, 4, 12, 32)],
    4: [(198, 81_920, 4, 12, 32)],
    5: [(255, 163_840, 8, 32, 64)],
    6: [(168, 114_976, 12, 24, 4)],
    7: [(186, 131_072, 8, 12, 24)],
    8: [(186, 131_072, 8, 24, 48)],
}


@pytest.mark.parametrize("number", ATTENTION)
def test_attention_rungs_compiled(number):
    found = kernels("attention", number, *HEADS)
    page = lesson("attention")[number]
    for kernel, (registers, shared, warps, dots, copies) in zip(found, ATTENTION[number], strict=True):
        assert near(kernel.registers, registers) and kernel.stack == 0
        assert abs(kernel.shared - shared) < 256
        assert (kernel.warps, kernel.tensor_core_ops, kernel.async_copies) == (warps, dots, copies)
        assert (kernel.words["setmaxnreg"] > 0) == (kernel.words["cp.async.bulk.tensor"] > 0) == (number == 6)
        assert printed(page, kernel)


def test_folding_the_scale_removes_sixty_three_multiplications():
    (online,), (exp2,) = kernels("attention", 3, *HEADS), kernels("attention", 4, *HEADS)
    names = ("mul.f32", "fma.rn.f32", "sub.f32")
    assert [online.words[name] for name in names] == [130, 2, 34]
    assert [exp2.words[name] for name in names] == [67, 34, 2]
    assert online.words["ex2.approx"] == exp2.words["ex2.approx"] == 34


def test_bytes_and_flops_of_attention():
    b, h, n, d = HEADS
    scores = b * h * n * n
    assert round(scores * 4 / 1e9, 2) == 4.29 and round(3 * scores * 4 / 1e9, 1) == 12.9
    assert round(3 * scores * 4 / 4.8e12 * 1e3, 1) == 2.7  # ms at the data sheet's 4.8 TB/s
    assert round(4 * scores * d / 1e9, 1) == 549.8 and round(6 * scores * d / 1e9, 1) == 824.6
    assert [round(f * scores * d / 989e12 * 1e6) for f in (4, 6)] == [556, 834]
    assert round(4 * b * h * n * d * 2 / 1e9, 2) == 0.27
    for rows, asked in ((64, 8.6), (128, 4.3)):  # K and V by every row tile
        assert round(b * h * (n // rows) * 2 * n * d * 2 / 1e9, 1) == asked


def test_tiles_of_causal_attention():
    visited = [min((m + 1) * 128, 4096) // 64 for m in range(32)]
    assert sum(visited) == 1056 and 32 * 64 == 2048 and (visited[0], visited[-1]) == (2, 64)
    masked = [(m + 1) * 2 - m * 128 // 64 for m in range(32)]
    assert sum(masked) == 64


def test_a_tile_of_pointers_before_the_loop_stops_specialisation():
    """What the comment of rung 6 says of q: with pointers Triton refuses. The rung itself compiles: see above."""
    source = rungs("attention")[5].path.read_text()
    load = "q = q_desc.load([tl.program_id(0) * BLOCK_M, 0])"
    assert load in source
    pointers = "q = tl.load(q_base + offs_m[:, None] * stride_qn + offs_d[None, :])"
    call = """
x = torch.empty(1, 1, 256, 64, dtype=torch.float16)
try:
    attention(x, x, x)
    print("accepted")
except Exception as error:
    print("refused" if "PassManager::run failed" in str(error) else error)
"""
    assert compiled(source.replace(load, pointers) + call).split() == ["refused"]
