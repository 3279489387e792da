"""Access maps of real kernels, right and wrong, against what they are known to touch."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from grader.access_map.model import AccessMap, Recorded, Site, Visit, sound
from grader.access_map.runs import compressed, expanded, size_of
from grader.catalog import find
from tests.grader.server import RealGrader

DATA = Path(__file__).resolve().parents[1] / "data"
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n\n"
ADD = (
    HEAD
    + """@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + y, mask=offs < n)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    if n:
        add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
"""
)
NO_MASK = ADD.replace(", mask=offs < n", "")


@pytest.fixture
def mapped(grader: RealGrader, tmp_path: Path):
    """The map of a file, or of the solution when there is no source."""

    def run(exercise: str, source: str | None = None, **fields: Any) -> AccessMap:
        event = asked(grader, tmp_path, exercise, source, **fields)
        assert event["event"] == "answer", event
        return msgspec.convert(event["data"], AccessMap)

    return run


def asked(grader: RealGrader, folder: Path, exercise: str, source: str | None, **fields: Any) -> dict[str, Any]:
    file = find(exercise).solution
    if source is not None:
        file = folder / f"{exercise}.py"
        file.write_text(source)
    event, _ = grader.ask("access_map", exercise=exercise, file=str(file), **fields)
    return event


def of_program(site: Site, program: int) -> tuple[Visit, ...]:
    return next(by.visits for by in site.programs if by.program == program)


def elements(visit: Visit) -> list[int]:
    return list(expanded(visit.at))


def test_each_program_has_its_tile_and_the_last_one_is_masked(mapped) -> None:
    shown = mapped("vector_add", ADD, case="n=1025")
    assert [(launch.kernel, launch.grid) for launch in shown.launches] == [("add_kernel", (2, 1, 1))]
    assert [(t.names, t.role, t.parameter) for t in shown.tensors] == [
        (("x_ptr",), "argument", "x"),
        (("y_ptr",), "argument", "y"),
        (("out_ptr",), "result", ""),
    ]
    assert [(site.kind, site.line) for site in shown.sites] == [("load", 9), ("load", 10), ("store", 11)]
    assert shown.sites[2].source == "tl.store(out_ptr + offs, x + y, mask=offs < n)"
    for site in shown.sites:
        assert elements(of_program(site, 0)[0]) == list(range(1024))
        (last,) = of_program(site, 1)
        assert elements(last) == [1024]
        assert list(expanded(last.masked_beyond)) == list(range(1025, 2048))
        assert (site.lanes, site.active, site.outside, site.order.word) == (2048, 1025, 0, "contiguous")
        assert site.order.sectors == 4 * site.order.groups  # 32 float32 are 128 bytes
    assert shown.status == "passed" and shown.bad is None
    assert shown.loaded_bytes + shown.stored_bytes == shown.minimum_bytes == 3 * 4 * 1025


def test_lanes_out_of_range_are_marked_and_the_rest_is_still_shown(mapped) -> None:
    shown = mapped("vector_add", NO_MASK, case="n=1025")
    assert shown.status == "out_of_bounds" and shown.line == 9
    assert shown.bad is not None and (shown.bad.tensor, shown.bad.index, shown.bad.end) == ("x_ptr", 1025, 1025)
    assert shown.bad.program == (1, 0, 0)
    for site in shown.sites:  # the loads of y and the store come after the first overrun
        (last,) = of_program(site, 1)
        assert elements(last) == [1024] and list(expanded(last.beyond)) == list(range(1025, 2048))
        assert site.outside == 1023
    assert shown.stored_bytes == 4 * 1025  # what lay outside was not stored


def test_overlaps_gaps_and_repeated_loads_are_counted(mapped) -> None:
    overlap = ADD.replace("* BLOCK +", "* (BLOCK - 24) +")
    facts = mapped("vector_add", overlap, case="n=1025").tensors[2].facts
    assert (facts.overlap, facts.overlap_at, facts.overlap_programs) == (24, 1000, (0, 1))
    gap = ADD.replace("* BLOCK +", "* (BLOCK + 1) +")
    facts = mapped("vector_add", gap, case="n=1500").tensors[2].facts
    assert (facts.stored, facts.unstored_at, facts.overlap) == (1499, 1024, 0)
    twice = ADD.replace("y = tl.load(y_ptr", "y = tl.load(x_ptr + offs, mask=offs < n) + tl.load(y_ptr")
    shown = mapped("vector_add", twice, case="n=1025")
    facts = shown.tensors[0].facts
    assert (facts.loaded, facts.repeated, facts.most_times, facts.most_programs) == (1025, 1025, 2, 1)
    assert shown.ratio == pytest.approx(4 / 3)


def test_a_wrong_stride_shows_as_memory_between_the_elements(mapped) -> None:
    source = find("softmax").solution.read_text().replace("* stride_xn", "").replace("x.stride(1),\n", "1,\n")
    shown = mapped("softmax", source, case="every second column")
    load = shown.sites[0]
    assert shown.tensors[0].strides[1] == 2
    assert load.between == load.active // 2 and load.outside == 0
    assert all(offset % 2 for by in load.programs for visit in by.visits for offset in expanded(visit.beyond))


def test_loop_iterations_come_in_order_and_strides_are_told(mapped) -> None:
    shown = mapped("matmul", case="50x40x70 float16, B transposed")
    a, b, c = shown.sites
    assert a.block == b.block == c.block == (32, 32)
    visits = of_program(a, 1)
    assert [elements(visit)[0] for visit in visits] == [0, 32, 64]
    assert elements(visits[2]) == [row * 70 + col for row in range(32) for col in range(64, 70)]
    assert [axis.step for axis in a.order.axes] == [70, 1] and a.order.word == "contiguous"
    assert [axis.step for axis in b.order.axes] == [1, 70] and (b.order.word, b.order.step) == ("strided", 70)
    assert b.order.sectors == 32 * b.order.groups  # a column's lanes lie 140 bytes apart
    assert b.order.fewest < b.order.sectors / 5
    assert shown.tensors[0].facts.most_programs == 2
    assert (c.kind, shown.tensors[2].facts.stored) == ("store", 50 * 40)


@pytest.mark.parametrize(
    ("offsets", "word", "step", "sectors"),
    [
        ("offs * 7 % 1000", "scattered", None, None),
        ("offs * 0 + 5", "broadcast", 0, 1),
        ("1023 - offs", "backwards", -1, 4),
        ("offs // 2 * 2", "scattered", None, 4),
    ],
)
def test_the_order_of_addresses_has_a_word(mapped, offsets: str, word: str, step: int | None, sectors: int | None):
    order = mapped("vector_add", ADD.replace("x_ptr + offs", f"x_ptr + ({offsets})"), case="n=1024").sites[0].order
    assert (order.word, order.step) == (word, step)
    assert sectors is None or order.sectors == sectors * order.groups


@pytest.mark.parametrize(
    ("exercise", "case", "kind"),
    [("histogram", "", "atomic"), ("persistent_matmul", "", "load"), ("row_scale", "one row expanded", "load")],
)
def test_atomics_descriptors_and_expanded_views_are_in_the_map(mapped, exercise: str, case: str, kind: str) -> None:
    shown = mapped(exercise, **({"case": case} if case else {}))
    assert shown.status == "passed" and any(site.kind == kind and site.active for site in shown.sites)
    assert all(site.tensor is not None and not site.outside and not site.between for site in shown.sites)
    assert all(t.facts.loaded == t.elements for t in shown.tensors if t.role == "argument")
    if exercise == "histogram":
        assert any(tensor.facts.updated for tensor in shown.tensors)
    if exercise == "row_scale":
        assert (shown.tensors[0].strides[0], shown.tensors[0].seen_shape[0]) == (0, 1)


def test_a_scratch_tensor_is_followed_from_launch_to_launch(mapped) -> None:
    shown = mapped("layer_norm_backward")
    scratch = [i for i, tensor in enumerate(shown.tensors) if tensor.role == "allocated"]
    kinds = {i: {(s.launch, s.kind) for s in shown.sites if s.tensor == i} for i in scratch}
    assert any({kind for _, kind in found} == {"load", "store"} and len(found) > 1 for found in kinds.values())
    assert shown.loaded_bytes + shown.stored_bytes > shown.minimum_bytes


def test_the_chosen_case_shows_several_programs_and_an_overrun_before_all(mapped) -> None:
    shown = mapped("softmax")
    assert shown.launches[0].grid[0] > 1 and any(site.lanes > site.active for site in shown.sites)
    assert all(tensor.elements <= 4608 for tensor in shown.tensors)
    only_at_17 = find("tile_copy").solution.read_text().replace("offs < n", "offs < tl.where(n == 17, 32, n)")
    assert "n=17 " in mapped("tile_copy", only_at_17).case
    wrong_at_100 = find("tile_copy").solution.read_text().replace("offs < n", "offs < tl.where(n == 100, 99, n)")
    shown = mapped("tile_copy", wrong_at_100)
    assert "n=100 " in shown.case and shown.tensors[1].facts.unstored_at == 99


def test_a_lessons_kernel_is_not_judged_and_its_code_not_shown(mapped) -> None:
    source = ADD.replace("x + y", "x - y")
    assert mapped("vector_add", source).status == "wrong_answer"
    shown = mapped("vector_add", source, demo=True)
    assert shown.status == "passed" and not any(site.source for site in shown.sites) and shown.ratio is None


@pytest.mark.parametrize(
    ("source", "fields", "words"),
    [
        (ADD, {"case": "n=77"}, "the cases: 'n=1 float32'"),
        (ADD, {"case": "n=1"}, "names several cases"),
        ("import nothing_of_that_name\n", {}, "nothing_of_that_name"),
        (ADD.replace("return out", "import os; os._exit(3)"), {}, "exit code 3"),
    ],
)
def test_where_there_is_no_map_it_is_said_why(grader, tmp_path, source: str, fields: dict, words: str) -> None:
    event = asked(grader, tmp_path, "vector_add", source, **fields)
    assert event["event"] == "failed" and event["kind"] == "usage" and words in event["message"]


def test_the_stub_has_no_map(grader, tmp_path) -> None:
    event = asked(grader, tmp_path, "vector_add", find("vector_add").stub.read_text())
    assert event["event"] == "failed" and "write the kernel" in event["message"]


def test_a_call_that_fails_on_the_way_shows_what_came_before(mapped) -> None:
    source = ADD.replace("    tl.store", "    tl.static_assert(BLOCK == 7)\n    tl.store")
    shown = mapped("vector_add", source, case="n=1025")
    assert shown.status not in ("passed", "out_of_bounds") and shown.message
    assert [site.kind for site in shown.sites] == ["load", "load"]
    nothing = mapped("vector_add", ADD.replace("    out = ", "    raise ValueError('early')\n    out = "))
    assert "early" in nothing.message and not nothing.tensors


def test_an_endless_loop_of_loads_ends_with_the_map_so_far(mapped) -> None:
    source = ADD.replace(
        "    tl.store", "    while n > 0:\n        x = tl.load(x_ptr + offs, mask=offs < n)\n    tl.store"
    )
    shown = mapped("vector_add", source, case="n=1025")
    assert shown.full and "smaller case" not in shown.status and "ended there" in shown.message
    assert not any(site.kind == "store" for site in shown.sites)


def test_the_recorded_maps_of_the_app_tests_are_what_the_grader_gives(mapped) -> None:
    for name, exercise, source, case in RECORDED:
        stored = msgspec.json.decode((DATA / f"access_map_{name}.json").read_bytes(), type=AccessMap)
        assert msgspec.structs.replace(mapped(exercise, source, case=case), file=stored.file) == stored


RECORDED = (
    ("matmul", "matmul", None, "50x40x70 float16, B transposed"),
    ("overrun", "vector_add", NO_MASK, "n=1025"),
)


def test_numbers_come_back_from_runs_as_they_were() -> None:
    drawn = random.Random(4)
    for _ in range(400):
        rows, columns, step, between = (drawn.randint(1, 6) for _ in range(4))
        tile = (np.arange(rows)[:, None] * between * 7 + np.arange(columns) * (step - 3)).ravel()
        noise = np.array([drawn.randint(-4, 4) for _ in range(drawn.randint(0, 9))], dtype=np.int64)
        for numbers in (tile, noise, np.r_[tile, noise, tile]):
            runs = compressed(numbers)
            assert list(expanded(runs)) == numbers.tolist() and size_of(runs) == numbers.size
    assert compressed((np.arange(32)[:, None] * 200 + np.arange(16)).ravel()) == [[0, 1, 16, 200, 32]]


def test_a_map_that_no_screen_could_bear_is_refused() -> None:
    good = json.loads((DATA / "access_map_matmul.json").read_text())
    assert sound(msgspec.convert(good, Recorded))
    for spoilt in ([0, 1, 1 << 40], [0, 1, -5], [0, 1, 2, 3, 1 << 40]):
        bad = json.loads(json.dumps(good))
        bad["sites"][0]["programs"][0]["visits"][0]["at"] = [spoilt]
        assert not sound(msgspec.convert(bad, Recorded))
    bad = json.loads(json.dumps(good))
    bad["sites"][0]["tensor"] = 99
    assert not sound(msgspec.convert(bad, Recorded))
