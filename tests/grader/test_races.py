"""What depends on timing: found in the interpreter, which by itself runs one program after another."""

from __future__ import annotations

import re

import numpy as np
import pytest

from grader.races import conflict
from grader.watch import Access, Extent, LaunchTrace
from tests.evidence.run import compiled
from tests.grader.server import line_text

X = Extent("x_ptr", 1000, 1400, 1000, 4)
HEAD = "import torch\nimport triton\nimport triton.language as tl\n"


def access(kind, program, elements, values=7, before=0, lanes=None, line=1, epoch=0) -> Access:
    elements = np.atleast_1d(np.asarray(elements, dtype=np.uint64))
    wide = [np.full(elements.size, v, dtype=np.uint64) for v in (values, before)]
    lanes = np.arange(elements.size) if lanes is None else np.asarray(lanes)
    return Access(kind, program, 1000 + 4 * elements, lanes, *wide, 4, line, epoch)


def found(*accesses: Access, **flags: bool) -> tuple | None:
    trace = LaunchTrace((2, 2, 1), [X], list(accesses), **flags)
    seen = conflict(trace)
    return None if seen is None else (seen.cause, seen.name, seen.index, seen.programs, seen.line)


RACE = "race_between_programs"
P0, P1, P2 = (0, 0, 0), (0, 1, 0), (1, 0, 0)


@pytest.mark.parametrize(
    ("accesses", "wanted"),
    [
        ([access("store", 0, 3, 1, line=8), access("store", 1, 3, 2)], (RACE, "x_ptr", 3, (P0, P1), 8)),
        ([access("store", 0, [0, 1, 2]), access("store", 1, [3, 4])], None),
        ([access("store", 0, 3, 5), access("store", 1, 3, 5, before=5)], None),
        # a program's last store counts: both end with 5
        ([access("store", 0, 3, 0), access("store", 0, 3, 5), access("store", 1, 3, 0), access("store", 1, 3, 5)], None),
        ([access("load", 2, 3), access("store", 1, 3, line=9)], (RACE, "x_ptr", 3, (P1, P2), 9)),
        ([access("store", 1, 3, line=9), access("load", 2, 3)], (RACE, "x_ptr", 3, (P1, P2), 9)),
        # a store that changes nothing, and a load of what the program itself stored
        ([access("store", 1, 3, 7, before=7), access("load", 2, 3)], None),
        ([access("store", 0, 3), access("store", 1, 3, before=7), access("load", 1, 3)], None),
        ([access("atomic", 0, 3), access("atomic", 1, 3)], None),
        ([access("atomic", 0, 3), access("store", 1, 3, 0, 0, line=9)], (RACE, "x_ptr", 3, (P1, P0), 9)),
        ([access("atomic", 0, 3), access("load", 1, 3, line=6)], (RACE, "x_ptr", 3, (P0, P1), 6)),
        ([access("load", 0, 3), access("store", 0, 3), access("load", 1, 4), access("store", 1, 4)], None),
    ],
)  # fmt: skip
def test_programs_that_share_an_element_race_unless_nothing_changes(accesses, wanted):
    assert found(*accesses) == wanted


def test_programs_that_may_wait_for_each_other_are_let_pass():
    pair = [access("store", 0, 3, 1), access("store", 1, 3, 2)]
    assert found(*pair, locks=True) is None
    assert found(*pair, counters=True) is None


@pytest.mark.parametrize(
    ("accesses", "wanted"),
    [
        ([access("store", 0, [0, 1]), access("load", 0, [1, 0], line=5)], ("missing_barrier", "x_ptr", 0, (P0,), 5)),
        ([access("store", 0, [0, 1]), access("load", 0, [0, 1])], None),
        ([access("store", 0, [0, 1]), access("load", 0, [1, 0], epoch=1)], None),
        ([access("store", 0, [0, 1], 7, 7), access("load", 0, [1, 0])], None),
        ([access("load", 0, [1, 0]), access("store", 0, [0, 1])], None),
        # the newest store of an element counts
        ([access("store", 0, [1, 0]), access("store", 0, [0, 1]), access("load", 0, [0, 1])], None),
        ([access("store", 0, 2), access("load", 0, [2, 2], lanes=[0, 1])], ("missing_barrier", "x_ptr", 2, (P0,), 1)),
    ],
)
def test_a_load_from_another_lane_needs_a_barrier(accesses, wanted):
    assert found(*accesses) == wanted


def test_the_compiler_orders_store_and_load_only_at_a_barrier():
    """Why the rule is needed, and what ends an epoch: in the machine's code nothing stands between a store and a load,
    but for a barrier, which also comes with an atomic whose result every thread gets."""
    out = compiled("""
@triton.jit
def turned(x_ptr, count_ptr, BETWEEN: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, offs.to(tl.float32))
    extra = 0
    if BETWEEN == "barrier":
        tl.debug_barrier()
    if BETWEEN == "atomic":
        extra = tl.atomic_add(count_ptr, 1)
    tl.store(x_ptr + BLOCK + offs, tl.load(x_ptr + BLOCK - 1 - offs) + extra)

x, count = torch.zeros(512), torch.zeros(1, dtype=torch.int32)
for between in ("nothing", "barrier", "atomic"):
    ptx = turned[(1,)](x, count, BETWEEN=between, BLOCK=256).asm["ptx"]
    part = ptx[ptx.index("st.global"):]
    print("bar.sync" in part[:part.index("ld.global")])
""", "sm_90")  # fmt: skip
    assert out.split() == ["False", "True", "True"]


SUM_IN_TWO_STEPS = (
    HEAD
    + """
@triton.jit
def row_sum_kernel(x_ptr, part_ptr, out_ptr, count_ptr, n_cols, stride_m, stride_n, BLOCK: tl.constexpr):
    row, piece = tl.program_id(0), tl.program_id(1)
    cols = piece * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=0.0)
    tl.atomic_add(part_ptr + row, tl.sum(x.to(tl.float32), axis=0))
    last = piece == tl.num_programs(1) - 1
    if last:
        tl.store(out_ptr + row, tl.load(part_ptr + row))

def row_sum(x):
    rows, cols = x.shape
    out = torch.zeros(rows, device=x.device)
    part = torch.zeros(rows, device=x.device)
    count = torch.zeros(rows, device=x.device, dtype=torch.int32)
    if x.numel():
        grid = (rows, triton.cdiv(cols, 256))
        row_sum_kernel[grid](x, part, out, count, cols, x.stride(0), x.stride(1), BLOCK=256)
    return out
"""
)
LAST = "last = piece == tl.num_programs(1) - 1"
COUNTED = "last = tl.atomic_add(count_ptr + row, 1) == tl.num_programs(1) - 1"

ADD = "    tl.atomic_add(out_ptr + cols, partial, mask=cols < N)"
LOAD_ADD_STORE = (
    "    old = tl.load(out_ptr + cols, mask=cols < N, other=0.0)\n"
    "    tl.store(out_ptr + cols, old + partial, mask=cols < N)"
)


def test_adding_without_an_atomic_is_a_race(submit):
    verdict = submit("accumulate_rows", (ADD, LOAD_ADD_STORE))
    diagnosis = verdict["diagnosis"]
    assert (verdict["status"], diagnosis["cause"]) == ("nondeterministic", "race_between_programs")
    assert re.match(r"Programs \(\d, \d, 0\) and \(\d, \d, 0\) share element 0 of out_ptr", diagnosis["message"])
    assert line_text(verdict) == "tl.store(out_ptr + cols, old + partial, mask=cols < N)"
    row = next(row for row in verdict["cases"] if row["name"] == diagnosis["case"])
    assert (row["status"], row["first_bad_index"]) == ("nondeterministic", [0])
    assert str(tuple(row["program_id"])) in diagnosis["message"]


def test_a_last_program_that_relies_on_the_others_is_a_race(submit):
    verdict = submit("row_sum", source=SUM_IN_TWO_STEPS)
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("nondeterministic", "race_between_programs")
    assert line_text(verdict) == "tl.store(out_ptr + row, tl.load(part_ptr + row))"


def test_a_last_program_told_by_a_counter_is_right_and_rounds_differently(submit):
    verdict = submit("row_sum", source=SUM_IN_TWO_STEPS.replace(LAST, COUNTED))
    assert verdict["status"] == "passed", verdict["diagnosis"]
    assert any("count through an atomic" in note for note in verdict["notes"])
    assert any("differs by rounding" in note for note in verdict["notes"])


def test_a_counter_that_nobody_looks_at_leaves_the_order_to_chance(submit):
    counted = SUM_IN_TWO_STEPS.replace(LAST, f"tl.atomic_add(count_ptr + row, 1)\n    {LAST}")
    verdict = submit("row_sum", source=counted)
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("nondeterministic", "depends_on_program_order")


def test_a_lock_is_let_pass_with_a_note(submit):
    source = SUM_IN_TWO_STEPS.replace("    tl.atomic_add(part_ptr + row, ", "    total = (")
    source = source.replace(f"    {LAST}\n    if last:\n        tl.store(out_ptr + row, tl.load(part_ptr + row))", """
    while tl.atomic_cas(count_ptr + row, 0, 1) == 1:
        pass
    tl.store(out_ptr + row, tl.load(out_ptr + row) + total)
    tl.debug_barrier()
    tl.atomic_xchg(count_ptr + row, 0)""")  # fmt: skip
    verdict = submit("row_sum", source=source)
    assert verdict["status"] == "passed", verdict["diagnosis"]
    assert any("wait for each other" in note for note in verdict["notes"])


@pytest.mark.parametrize(("barrier", "status"), [("", "nondeterministic"), ("    tl.debug_barrier()\n", "passed")])
def test_a_store_read_back_from_other_lanes_needs_a_barrier(submit, barrier, status):
    store = "    tl.store(out_ptr + offs, x + y, mask=mask)\n"
    verdict = submit("vector_add", (store, f"""\
    tl.store(out_ptr + offs, x, mask=mask)
{barrier}    turned = tl.program_id(axis=0) * BLOCK + BLOCK - 1 - tl.arange(0, BLOCK)
    x = tl.load(out_ptr + turned, mask=turned < n)
    y = tl.load(y_ptr + turned, mask=turned < n)
    tl.debug_barrier()
    tl.store(out_ptr + turned, x + y, mask=turned < n)
"""))  # fmt: skip
    assert verdict["status"] == status, verdict["diagnosis"]
    if status != "passed":
        assert verdict["diagnosis"]["cause"] == "missing_barrier"
        assert line_text(verdict) == "x = tl.load(out_ptr + turned, mask=turned < n)"
