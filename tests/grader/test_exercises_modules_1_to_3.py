"""The exercises on views, predicates, activations, dropout, transposes and lookups: their mistakes made for real, and
what their tasks say about Triton."""

from __future__ import annotations

import pytest

from grader.catalog import find
from tests.evidence.run import compiled, interpreted

EQUAL = ("passed", None)

MUTANTS = [
    ("iota_strided", [("index * step", "offset * step")], "wrong_answer", "index_and_offset_confused"),
    ("iota_strided", [("cols * stride_n", "cols")], "wrong_answer", "assumes_contiguous"),
    ("iota_strided", [("row * stride_m + cols * stride_n", "row * stride_n + cols * stride_m")], "wrong_answer", "swapped_strides"),
    ("predicated_fill", [("value, mask=chosen", "tl.where(chosen, value, 0.0), mask=exists")], "wrong_answer", "rest_overwritten"),
    ("predicated_fill", [("!= 0", "== 1")], "wrong_answer", "flag_equals_one"),
    ("predicated_fill", [("exists & (offs >= first)", "(offs >= first)")], *EQUAL),  # a lane past the end loads 0
    ("swiglu", [("row * 2 * n_cols", "row * n_cols")], "wrong_answer", "wrong_row_length"),
    ("swiglu", [("tl.sigmoid(gate)", "tl.exp(gate) / (1 + tl.exp(gate))")], "wrong_answer", "exp_overflows"),
    (
        "swiglu",
        [("tl.sigmoid(gate)", "tl.sigmoid(gate).to(x_ptr.dtype.element_ty).to(tl.float32)")],
        "wrong_answer",
        "activation_in_half",
    ),
    ("gelu", [('approximate == "tanh"', "False")], "wrong_answer", "other_variant"),
    ("gelu", [("tl.sigmoid(2.0 * z)", "0.5 * (1 + (tl.exp(2 * z) - 1) / (tl.exp(2 * z) + 1))")], "wrong_answer", "exp_overflows"),
    (
        "gelu",
        [
            ("mask=mask).to(tl.float32)", "mask=mask)"),
            ("tl.sigmoid(2.0 * z)", "tl.sigmoid((2.0 * z).to(tl.float32))"),
            ("tl.erf(x * 0.7071067811865476)", "tl.erf((x * 0.7071067811865476).to(tl.float32))"),
        ],
        "wrong_answer",
        "activation_in_half",
    ),
    ("seeded_dropout", [("u >= p", "u > p")], "wrong_answer", "strict_comparison"),
    ("seeded_dropout", [("(seed, offs)", "(seed, tl.arange(0, BLOCK))")], "wrong_answer", "lane_instead_of_element"),
    ("seeded_dropout", [("tl.where(u >= p, x / (1 - p), 0.0)", "x * (u >= p) / (1 - p)")], "wrong_answer", "masked_by_product"),
    ("transpose", [("rows * stride_om + cols * stride_on", "rows * stride_on + cols * stride_om")], "wrong_answer", "not_transposed"),
    (
        "transpose",
        [("rows * stride_om + cols * stride_on", "tl.trans(rows) * stride_om + tl.trans(cols) * stride_on")],
        "wrong_answer",
        "tile_not_turned",
    ),
    ("transpose", [("cols * stride_xn", "cols")], "wrong_answer", "assumes_contiguous"),
    ("embedding_gather", [("(ids_ptr + token).to(tl.int64)", "(ids_ptr + token)")], "wrong_answer", "offset_wraps"),
    (
        "embedding_gather",
        [("(ids_ptr + token).to(tl.int64)", "(ids_ptr + token)"), ("row * ROW", "(row * ROW).to(tl.int64)")],
        "wrong_answer",
        "offset_wraps",
    ),
    ("embedding_gather", [("range(0, D, BLOCK_D)", "range(0, BLOCK_D, BLOCK_D)")], "not_written", "first_tile_only"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "changes", "status", "cause"), MUTANTS, ids=[f"{m[0]}-{m[3] or m[2]}" for m in MUTANTS]
)
def test_a_changed_solution_gets_its_own_verdict(submit, exercise, changes, status, cause):
    verdict = submit(exercise, *changes)
    assert verdict["status"] == status, verdict["diagnosis"]
    assert (verdict["diagnosis"] or {}).get("cause") == cause, verdict["diagnosis"]


def test_the_reference_of_dropout_computes_the_numbers_of_tl_rand():
    interpreted(f"""
import importlib.util
spec = importlib.util.spec_from_file_location("philox", {str(find("seeded_dropout").problem.parent / "philox.py")!r})
philox = importlib.util.module_from_spec(spec)
spec.loader.exec_module(philox)
@triton.jit
def numbers(out_ptr, seed, start, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out_ptr + lanes, tl.rand(seed, start + lanes))
for seed in (0, 1, 19268867, 2**31, 2**40 + 12345, 2**62 - 1):
    for start in (0, 2**31 - 1024, 2**33):
        out = torch.empty(1024)
        numbers[(1,)](out, seed, start, 1024)
        assert torch.equal(out, philox.rand(seed, start + torch.arange(1024))), (seed, start)
assert float(philox.rand(19268867, torch.arange(19))[18]) == 0.5
""")


def test_a_product_with_a_constexpr_has_the_type_of_the_other_factor():
    source = """
@triton.jit
def product(ids_ptr, out_ptr, ROW: tl.constexpr, row):
    i = tl.load(ids_ptr)
    tl.store(out_ptr, i * ROW)
    tl.store(out_ptr + 1, i * row)
    tl.store(out_ptr + 2, i.to(tl.int64) * ROW)
out = torch.zeros(3, dtype=torch.int64)
compiled = product[(1,)](torch.tensor([200], dtype=torch.uint8), out, 40, 40)
if compiled is None:
    assert out.tolist() == [64, 8000, 8000]
else:
    products = [line for line in compiled.asm["ttir"].splitlines() if "muli" in line]
    assert any(": i8" in line for line in products) and any(": i64" in line for line in products)
"""
    interpreted(source)
    compiled(source)


def test_a_transpose_goes_through_shared_memory_and_both_sides_are_wide():
    """Loads and stores are the same whether the tile's addresses are turned by the author or by the compiler."""
    compiled(f"""
import re, runpy
path = {str(find("transpose").solution)!r}
ours = runpy.run_path(path)["transpose_kernel"]
@triton.jit
def turned(x_ptr, out_ptr, n_rows, n_cols, stride_xm, stride_xn, stride_on, stride_om, BLOCK: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows[:, None] < n_rows) & (cols[None, :] < n_cols)
    tile = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=mask)
    out_ptrs = out_ptr + cols[:, None] * stride_on + rows[None, :] * stride_om
    tl.store(out_ptrs, tl.trans(tile), mask=tl.trans(mask))
x = torch.zeros(64, 64)
counts = []
for kernel in (ours, turned):
    c = kernel[(1, 1)](x, x, 8192, 8192, 8192, 1, 8192, 1, BLOCK=64)
    ptx = c.asm["ptx"]
    counts.append([c.metadata.shared, *(len(re.findall(p, ptx)) for p in
                   (r"ld\\.global", r"ld\\.global\\S*v4", r"st\\.global", r"st\\.global\\S*v4"))])
assert counts[0] == counts[1] == [64 * 64 * 4, 8, 8, 8, 8], counts
""")


def test_stores_with_a_condition_a_lane_are_single():
    compiled(f"""
import re, runpy
fill = runpy.run_path({str(find("predicated_fill").solution)!r})["fill_where_kernel"]
iota = runpy.run_path({str(find("iota_strided").solution)!r})["iota_kernel"]
out, flags = torch.zeros(4096), torch.zeros(4096, dtype=torch.bool)
single = fill[(1,)](out, flags, 0, 1.0, 4096, BLOCK=1024).asm["ptx"]
wide = iota[(1, 1)](out, 4096, 4096, 1, 1, BLOCK=1024).asm["ptx"]
assert re.search(r"st\\.global", single) and not re.search(r"st\\.global\\S*v\\d", single)
assert re.search(r"st\\.global\\S*v4", wide)
""")


def test_exact_gelu_and_dropout_have_more_instructions_than_bytes():
    """Counted in Triton 3.7.1: 37, 22 and 64 an element, of dropout's 48 IMAD and LOP3; other versions are near."""
    compiled(f"""
import os, re, runpy
from pathlib import Path
from grader.offline import sass
cubin = Path(os.environ["TRITON_CACHE_DIR"]) / "kernel.cubin"
def counts(kernel, *args, **options):
    cubin.write_bytes(kernel[(1,)](*args, BLOCK=1024, **options).asm["cubin"])
    names = re.findall(r"/\\*[0-9a-f]{{4}}\\*/\\s+(?:@!?U?P\\d+ )?([A-Z0-9]+)", sass(cubin))
    names = [name for name in names if name not in ("NOP", "BRA")]
    return len(names) / 8, sum(name in ("IMAD", "LOP3") for name in names) / 8  # 8 elements a thread
gelu = runpy.run_path({str(find("gelu").solution)!r})["gelu_kernel"]
dropout = runpy.run_path({str(find("seeded_dropout").solution)!r})["dropout_kernel"]
half, single = torch.zeros(1024, dtype=torch.bfloat16), torch.zeros(1024)
exact, tanh = counts(gelu, half, half, 1024, TANH=False), counts(gelu, half, half, 1024, TANH=True)
drop = counts(dropout, single, single, 1024, 0.5, 1234)
assert 32 < exact[0] < 42 and 18 < tanh[0] < 26, (exact, tanh)
assert 58 < drop[0] < 70 and 44 < drop[1] < 52, drop
""")
