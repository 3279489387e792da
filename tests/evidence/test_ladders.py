"""What the ladder lessons say: registers, shared memory and instructions compiled again, bytes and FLOPs counted again."""

from __future__ import annotations

import json
import re
from functools import cache
from types import SimpleNamespace

import pytest
import triton

from benchmarks.ladders.settings import FOLDERS, rungs
from tests.evidence.ladder_source import CALLS, REPORT, WATCH, Compiled, kernels
from tests.evidence.run import ROOT, compiled
from tests.evidence.test_m05_resources import USAGE
from tutor.course.loader import load
from tutor.course.model import Lesson

SQUARE = (4096, 4096)  # of A and of B
HEADS = (4, 16, 4096, 128)  # B, H, N, D
LAST = "grouped_matmul_kernel.configs = grouped_matmul_kernel.configs[-1:]"  # one configuration: nothing to time
KEEP = """
from triton.runtime.jit import JITFunction
launched, run = [], JITFunction.run
def kept(self, *args, **options):
    launched.append(run(self, *args, **options))
    return launched[-1]
JITFunction.run = kept
"""
EXACT = triton.__version__ == "3.7.1"  # whose figures the pages print


def ladder_item(ladder: str) -> Lesson:
    module = {"softmax": "m04", "rms_norm": "m04", "matmul": "m06", "attention": "m07"}[ladder]
    item = load().item(f"{module}.lesson.{ladder.replace('_', '-')}-ladder")
    assert isinstance(item, Lesson)
    return item


def lesson(ladder: str) -> list[str]:
    return [page.text for page in ladder_item(ladder).pages]


def rung_pages(ladder: str) -> list[str]:
    return [page.text for page in ladder_item(ladder).pages if page.title.startswith("Rung ")]


def near(value: int, figure: int, share: float = 0.25) -> bool:
    return value == figure if EXACT else abs(value - figure) <= share * figure


def printed(page: str, kernel: Compiled) -> bool:
    """Whether the page gives this kernel's registers and shared memory (in bytes with a thousands comma)."""
    words = " ".join(page.split())  # a line may end between the number and its unit
    return not EXACT or (f"{kernel.registers} registers" in words and f"{kernel.shared:,} bytes" in words)


@pytest.mark.parametrize("ladder", FOLDERS)
def test_each_rung_has_a_page_that_names_its_file(ladder):
    pages = rung_pages(ladder)
    assert len(pages) == len(rungs(ladder))
    for page, rung in zip(pages, rungs(ladder), strict=True):
        assert rung.path.stem in page


# rung, inputs, then of each kernel: registers, shared bytes, warps
SOFTMAX = [
    (1, (32768, 4096), [(47, 16, 4)]),
    (1, (4096, 32768), [(61, 128, 32)]),
    (2, (524288, 128), [(39, 0, 4)]),
    (3, (10922, 12288), [(40, 64, 16)]),
    (4, (4096, 32768), [(63, 131_200, 32)]),
    (5, (4096, 32768), [(52, 32, 8)]),
    (6, (64, 1048576), [(32, 32, 8), (30, 16, 8)]),
]


@pytest.mark.parametrize(("number", "shape", "figures"), SOFTMAX)
def test_softmax_rungs_compiled(number, shape, figures):
    page = lesson("softmax")[number]
    for kernel, (registers, shared, warps) in zip(kernels("softmax", number, *shape), figures, strict=True):
        assert near(kernel.registers, registers) and kernel.stack == 0
        assert (kernel.shared, kernel.warps) == (shared, warps)
        assert (kernel.tensor_core_ops, kernel.async_copies) == (0, 12 if number == 4 else 0)
        assert printed(page, kernel)


def test_narrow_rows_need_no_shared_memory_and_lanes_meet_once_a_row():
    (narrow,) = kernels("softmax", 2, 524288, 128)
    assert narrow.words["bar.sync"] == 0 and narrow.words["shfl.sync"] == 32
    (row,), (online,) = kernels("softmax", 1, 16384, 8192), kernels("softmax", 5, 4096, 32768)
    assert row.warps == online.warps == 8
    assert online.words["shfl.sync"] == row.words["shfl.sync"] == 16  # no more for 8 tiles than for one


def test_three_quarters_hold_fewer_lanes_and_meet_no_more_often():
    (padded,), (cut,) = kernels("softmax", 2, 10922, 12288), kernels("softmax", 3, 10922, 12288)
    assert (padded.words["ex2.approx"], cut.words["ex2.approx"]) == (32, 24)
    assert cut.words["shfl.sync"] == padded.words["shfl.sync"] == 2 * (5 + 4)  # within a warp, then over 16 of them
    assert cut.words["bar.sync"] == padded.words["bar.sync"]
    assert (padded.words["div.full"], cut.words["div.full"]) == (32, 1)
    assert near(padded.registers, 63) and near(cut.registers, 40) and padded.stack == 0
    assert 16384 - 12288 == 16384 // 4 and 12288 * 2 * 3 == 72 * 1024
    source = KEEP + rungs("softmax")[2].path.read_text()
    call = "softmax(torch.empty(2, 12288, dtype=torch.float16))\nprint(launched[0].asm['ptx'])"
    before, *after = compiled(source + call).split("bar.sync")
    assert before.count("ld.global") == 3 and after and not any("ld.global" in part for part in after)
    (whole,), (one,) = kernels("softmax", 2, 32768, 4096), kernels("softmax", 3, 32768, 4096)
    assert (one.words["ex2.approx"], one.words["shfl.sync"]) == (whole.words["ex2.approx"], whole.words["shfl.sync"])


WIDTHS = """
class Launch:
    def __getitem__(self, grid):
        return lambda x, *args, TILES, BLOCK_N, **options: print(x.shape[1], TILES, BLOCK_N)

softmax_kernel = Launch()
for n in (*range(1, 70), 1025, 1536, 1537, 8193, 12288, 12289, 16384):
    softmax(torch.empty(1, n))
"""


def test_at_most_a_third_of_the_lanes_of_three_quarters_lies_past_the_end():
    out = compiled(rungs("softmax")[2].path.read_text() + WIDTHS)
    idle = {}
    for n, tiles, width in (map(int, line.split()) for line in out.splitlines()):
        assert (tiles - 1) * width < n <= tiles * width and tiles in (1, 3)
        idle[n] = 1 - n / (tiles * width)
        assert idle[n] < (1 / 3 if tiles == 3 else 1 / 4)
    assert (idle[12288], idle[16384]) == (0, 0) and idle[8193] > 0.33 and 1 - 8193 / 16384 > 0.49


def test_stages_without_a_dot_must_be_asked_for_on_the_loop():
    source = rungs("softmax")[3].path.read_text()
    on_the_launch = source.replace("num_stages=num_stages):", "):").replace(
        "num_stages: tl.constexpr", "NO: tl.constexpr"
    )
    on_the_launch = on_the_launch.replace("num_stages=num_stages, num_warps", "NO=0, num_stages=3, num_warps")
    call = 'softmax(torch.empty(4096, 32768, dtype=torch.float16))\nprint(launched[0].asm["ptx"].count("cp.async"))'
    assert compiled(KEEP + source + call).split()[-1] != "0"
    assert compiled(KEEP + on_the_launch + call).split()[-1] == "0"


def programs_on_a_multiprocessor(registers: int, warps: int) -> int:
    """By registers: 65,536, handed out by warp in units of 256."""
    return 65536 // (-(-registers * 32 // 256) * 256 * warps)


def test_programs_that_fit_beside_each_other():
    (row,), (online,) = kernels("softmax", 1, 4096, 32768), kernels("softmax", 5, 4096, 32768)
    (padded,), (cut,) = kernels("softmax", 2, 10922, 12288), kernels("softmax", 3, 10922, 12288)
    assert programs_on_a_multiprocessor(row.registers, row.warps) == 1
    assert programs_on_a_multiprocessor(padded.registers, padded.warps) == 2
    assert programs_on_a_multiprocessor(cut.registers, cut.warps) == 3
    assert programs_on_a_multiprocessor(online.registers, online.warps) == 4
    assert programs_on_a_multiprocessor(70, 4) == 7 and 7 * 132 == 924  # matmul, rungs 2 and 3
    assert programs_on_a_multiprocessor(168, 12) == 1 and 168 * 384 == 64512
    assert programs_on_a_multiprocessor(255, 4) == 2 and 2 * (98_320 + 1024) <= 228 * 1024  # attention, rung 6
    assert programs_on_a_multiprocessor(138, 4) == 3 and 2 * (114_760 + 1024) <= 228 * 1024 < 3 * (114_760 + 1024)
    (slim,) = kernels("attention", 9, 4, 16, 4096, 64)  # rung 9: two at D = 128, three at D = 64
    assert near(slim.registers, 154) and programs_on_a_multiprocessor(slim.registers, 4) == 3
    assert 3 * (slim.shared + 1024) <= 228 * 1024 < 4 * (slim.shared + 1024)
    (plain,) = kernels("attention", 6, 4, 16, 4096, 64)  # rung 6 has as many there, with the same tile
    assert programs_on_a_multiprocessor(plain.registers, plain.warps) == 3
    assert 3 * (plain.shared + 1024) <= 228 * 1024 < 4 * (plain.shared + 1024)
    tiles = ("(128, 64) if D == 128 else (64, 128)", "(64, 64, 3) if D == 128 else (64, 128, 2)")
    assert all(tile in rungs("attention")[at].path.read_text() for at, tile in zip((5, 8), tiles, strict=True))


def test_programs_and_bytes_of_softmax():
    assert 524288 // 32 == 16384 and 4096 // 128 == 32
    assert 2 * 2 * 524288 * 128 == 268_435_456
    parts = -(-(1 << 20) // 8192)
    assert (parts, 64 * parts, 64 * parts * 8) == (128, 8192, 65536)
    assert 4 * 132 * 32768 * 2 == 34_603_008  # bytes of the rows in work on rung 5
    assert 2 * 32768 * 2 + 128 == 131_200


MATMUL = {
    # rung: registers, shared, warps, tensor-core operations, async copies
    1: (40, 2048, 4, 0, 0),
    2: (70, 8192, 4, 2, 0),
    3: (70, 8192, 4, 2, 0),
    4: (220, 147_456, 8, 4, 36),
    5: (154, 147_480, 8, 4, 7),
    6: (163, 213_016, 8, 4, 8),
    7: (168, 131_544, 12, 8, 5),
    8: (164, 213_016, 8, 4, 8),
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
    5: [(188, 131_072, 8, 24, 48)],
    6: [(255, 98_320, 4, 48, 9)],
    7: [(186, 131_072, 8, 12, 24)],
    8: [(186, 131_072, 8, 24, 48)],
    9: [(138, 114_760, 4, 24, 11)],
    10: [(168, 196_952, 12, 64, 14)],
    11: [(168, 196_952, 12, 64, 14)],
}


@pytest.mark.parametrize("number", ATTENTION)
def test_attention_rungs_compiled(number):
    found = kernels("attention", number, *HEADS)
    page = lesson("attention")[number]
    for kernel, (registers, shared, warps, dots, copies) in zip(found, ATTENTION[number], strict=True):
        assert near(kernel.registers, registers)
        assert kernel.stack == 0 if number != 6 else near(kernel.stack, 24, share=1.0)
        assert abs(kernel.shared - shared) < 256
        assert (kernel.warps, kernel.tensor_core_ops, kernel.async_copies) == (warps, dots, copies)
        assert (kernel.words["setmaxnreg"] > 0) == (number in (10, 11))
        assert kernel.words["cp.async.bulk.tensor"] == (copies if number in (6, 9, 10, 11) else 0)
        assert printed(page, kernel)


def test_plain_triton_leaves_no_product_in_flight_while_it_computes_exponentials():
    """Not in rungs 5 and 6, and not where the next scores come first in the loop; Gluon does as it is told."""
    for number, exps in ((5, 0), (6, 0), (9, 34), (10, 2 * 66), (11, 2 * 66)):
        (kernel,) = kernels("attention", number, *HEADS)
        assert kernel.exps_in_flight == exps
    loop = """    for first in range(start, stop, BLOCK_N):
        k = k_desc.load([first, 0])
        v = v_desc.load([first, 0])
        s = tl.dot(q, k.T)
"""
    source = rungs("attention")[5].path.read_text()
    assert loop in source
    carried = source.replace(
        loop,
        """    s_next = tl.dot(q, k_desc.load([start, 0]).T)
    for first in range(start, stop, BLOCK_N):
        s = s_next
        s_next = tl.dot(q, k_desc.load([first + BLOCK_N, 0]).T)
        v = v_desc.load([first, 0])
""",
    )
    call = "attention(half(1, 2, 256, 128), half(1, 2, 256, 128), half(1, 2, 256, 128))\n"
    kernel = Compiled(*json.loads(compiled(USAGE + carried + WATCH + call + REPORT)))
    assert kernel.tensor_core_ops > 0 == kernel.exps_in_flight


def test_registers_that_are_handed_over():
    """Two consumers of 4 warps and a producer, which counts as 4; 168 registers a thread are given."""
    assert 168 * 12 * 32 == 64_512 <= 65_536 and (168 * 3 - 240 - 24) == 240
    assert 128 * 16 * 32 == 65_536 and (512 * 128 - 128 * 24) // 384 // 8 * 8 == 160  # three, at D = 64
    assert 3 * 128 * 168 + 128 * 24 == 67_584 and 3 * 128 * 240 == 92_160
    assert "(2, 240, 168) if D == 128 else (3, 160, 128)" in rungs("attention")[9].path.read_text()
    for number in (10, 11):
        source = rungs("attention")[number - 1].path.read_text()
        call = CALLS[rungs("attention")[number - 1].exercise].format(shape="1, 2, 256, 128")
        asked = 'print(re.findall(r"setmaxnreg\\S+\\s+(\\d+)", launched[0][1].asm["ptx"]))'
        told = compiled(USAGE + source + WATCH + call + "\n" + asked)
        assert {"240", "24"} <= set(re.findall(r"\d+", told))


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


def test_pairs_of_row_tiles():
    """Rung 11: which row tiles a program takes, for every N."""
    source = rungs("attention")[10].path.read_text()
    (body,) = re.findall(r"    pair = .*\n(?:    .*\n)+", source)
    assert "tile = gl.where(i % 2 == 0, tiles_m - 1 - short, short)" in body

    def taken(heads: int, n: int, programs: int) -> list[list[tuple[int, int, int]]]:
        tiles_m = 2 * -(-n // 256)
        pairs = tiles_m // 2 * heads
        names = {"N": n, "tiles_m": tiles_m, "BLOCK": 128}
        lists: list[list[tuple[int, int, int]]] = []
        for pid in range(min(pairs, programs)):
            where = {"program_id": lambda axis, pid=pid: pid, "num_programs": lambda axis: min(pairs, programs)}
            where["where"] = lambda condition, yes, no: yes if condition else no
            scope: dict = {}
            exec("def tile_of(i, gl, N, tiles_m, BLOCK):\n" + body, scope)
            count = 2 * -(-(pairs - pid) // min(pairs, programs))
            lists.append([scope["tile_of"](i, SimpleNamespace(**where), **names) for i in range(count)])
        return lists

    for heads, n in ((1, 1), (6, 129), (6, 1000), (64, 4096), (3, 4095), (2, 257)):
        tiles = [tile for own in taken(heads, n, 132) for tile in own]
        real = {(head, row): blocks for head, row, blocks in tiles if row < n}
        assert set(real) == {(head, row) for head in range(heads) for row in range(0, n, 128)} and len(real) == sum(
            row < n for _, row, _ in tiles
        )
        assert all(blocks == row // 128 + 1 for (_, row), blocks in real.items())
        assert all(blocks == 1 for _, row, blocks in tiles if row >= n)
    lists = taken(64, 4096, 132)
    assert {sum(blocks for *_, blocks in own[i : i + 2]) for own in lists for i in range(0, len(own), 2)} == {33}
    assert {len(own) // 2 for own in lists} == {7, 8} and 64 * 16 == 1024
    assert sum(blocks for own in lists for *_, blocks in own) == 64 * 528 and sum(range(1, 33)) == 528


def test_one_masked_loop_over_descriptors_is_split_into_roles():
    """What the page of rung 6 says was tried: Triton accepts it. Its values were wrong on a GPU, which needs one."""
    source = rungs("attention")[5].path.read_text()
    loop, whole = "in range(start, stop, BLOCK_N)", "acc, 0, whole, N_k, scale, RAGGED=False"
    (rest,) = [line for line in source.splitlines(keepends=True) if "acc, whole, N_k, N_k, scale" in line]
    assert loop in source and whole in source
    roles = source.replace(loop, "in tl.range(start, stop, BLOCK_N, warp_specialize=True)").replace(rest, "")
    roles = roles.replace(whole, "acc, 0, N_k, N_k, scale, RAGGED=True")
    call = "x = torch.empty(1, 1, 256, 128, dtype=torch.float16)\nattention(x, x, x)\nprint(launched[0].metadata.num_warps)"
    assert compiled(KEEP + source + call).split() == ["4"]
    assert compiled(KEEP + roles + call).split() == ["12"]
