"""What modules 1 to 5 say was measured stands in the record of `python -m benchmarks.questions`, and shows what they say.

The record is one run on one GPU. Renew it, and the texts that these tests name must follow.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from grader.ranking import NOISY, apart
from tests.evidence.run import compiled
from tutor.course.loader import load
from tutor.course.model import Predict

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results"
RECORD = json.loads((RESULTS / "questions-nvidia-h200.json").read_text(encoding="utf-8"))
TABLES = (RESULTS / "questions-nvidia-h200.md").read_text(encoding="utf-8")
ITEMS = {item.id: item for item in load().items()}


@cache
def lines(question: str) -> dict[str, list[str]]:
    """The rows of a question's table: variant without its clock, to the cells as printed."""
    section = TABLES.split(f"\n## {question} (")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    return {re.sub(r" \(\w+\)$", "", cells[0]): cells for cells in rows[1:]}


def row(question: str, variant: str) -> dict[str, Any]:
    """A variant of the record. Fails if its time, or the first's that it is compared with, was marked noisy."""
    asked = RECORD["questions"][question]
    found: dict[str, Any] = asked["rows"][variant]
    assert variant not in asked["failed"] and "noisy" not in lines(question)[variant][3], (question, variant)
    assert (found["p80_us"] - found["p20_us"]) / found["median_us"] <= NOISY, (question, variant)
    return found


def us(question: str, variant: str) -> float:
    return float(row(question, variant)["median_us"])


def ratio(question: str, variant: str, first: str) -> float:
    """How many times as long `variant` takes as `first`, to two digits after the point."""
    return round(us(question, variant) / us(question, first), 2)


def spread(question: str, variant: str) -> list[float]:
    found = row(question, variant)
    return [found[key] for key in ("median_us", "p20_us", "p80_us")]


@cache
def text_of(item: str) -> str:
    """All that an item shows, on one line."""
    return re.sub(r"\s+", " ", json.dumps(msgspec.to_builtins(ITEMS[item]), ensure_ascii=False).replace("\\n", " "))


def printed(question: str, variant: str) -> str:
    return lines(question)[variant][1]


FORMULAS = [f"{f}, {t}" for f in ("gelu none", "gelu tanh") for t in ("float32", "bfloat16")]
SHARES = ["2^26, 132 programs", "2^26, 264 programs", "2^26, 1024 programs"]
IN_FLIGHT = ["1 a thread, 4 programs a multiprocessor", "4 a thread, 4 programs a multiprocessor",
             "1 a thread, 16 programs a multiprocessor"]  # fmt: skip
ROWS = "2^26 float32 in rows of"
# predict item: the question of the record, and the variants whose medians its figure gives
PREDICTED = {
    "m01.predict.in-flight": ("bytes-in-flight", IN_FLIGHT),
    "m01.predict.one-each": ("too-few-programs", SHARES),
    "m02.predict.launch": ("launch-cost", ["Triton", "Triton, 20 more integers", "torch.add"]),
    "m02.predict.graph": ("cuda-graph", ["torch.add, loop", "torch.add, graph"]),
    "m02.predict.dropout": (
        "dropout-rand4x", ["rand, float32", "rand, bfloat16", "rand4x, float32", "rand4x, bfloat16"]
    ),
    "m02.predict.floor": ("event-floor", ["cold", "graph"]),
    "m03.predict.narrow": (
        "wide-loads-copy", ["float32, n = 2^26", "float32, n = 2^26 - 1", "float16, n = 2^26", "float16, n = 2^26 - 1"]
    ),
    "m03.predict.tiles": ("transpose-tiles", ["1 x 1024", "16 x 256", "32 x 32", "64 x 64", "128 x 128"]),
    "m03.predict.transposed": ("row-scale-transposed", ["contiguous", "transposed"]),
    "m03.predict.second-read": ("second-read", ["8 MB", "32 MB", "128 MB"]),
    "m04.predict.meet-in-the-loop": (
        "sum-in-the-loop", [f"{ROWS} {n}, {how}" for n in (4096, 65536) for how in ("in the loop", "one tile")]
    ),
    "m04.predict.looks": ("layer-norm-looks", ["two looks", "one look", "one tl.reduce"]),
    "m05.predict.third-stage": ("matmul-stages", ["num_stages=2", "num_stages=3", "num_stages=4"]),
    "m05.predict.cap-time": ("softmax-registers", ["4 warps", "8 warps", "16 warps", "4 warps, maxnreg=64"]),
    "m05.predict.stages-without-dot": ("stages-without-dot", ["num_stages=1", "num_stages=2", "num_stages=4"]),
    "m05.predict.histogram": (
        "histogram", [f"{how}, {values}" for how in ("atomics", "solution") for values in ("uniform", "all equal")]
    ),
}  # fmt: skip
# other item: the medians that its text gives, as printed or rounded to whole microseconds
SAID = {
    "m02.predict.alignment": ("wide-loads-add", ["n = 2^26, BLOCK 4096", "n = 2^26 - 1, BLOCK 4096"]),
    "m02.lesson.launch-cost": ("launch-cost", ["Triton", "Triton, 20 more integers"]),
    "m02.lesson.instructions": ("bf16-formulas", [*FORMULAS, "swiglu, float32", "swiglu, bfloat16"]),
    "m02.exercise.gelu": ("bf16-formulas", FORMULAS),
    "m02.predict.gelu": ("bf16-formulas", FORMULAS[1:]),
    "m02.quiz.bfloat16": ("bf16-formulas", [FORMULAS[0], FORMULAS[1], FORMULAS[3]]),
    "m02.exercise.seeded-dropout": (
        "dropout-rand4x", ["rand, float32", "rand, bfloat16", "rand4x, float32", "rand4x, bfloat16"]
    ),
    "m02.open.dropout": ("dropout-rand4x", ["rand, bfloat16", "rand4x, bfloat16"]),
    "m02.quiz.too-good": ("warm-l2", ["do_bench_cudagraph"]),
    "m05.quiz.bench": ("warm-l2", ["do_bench_cudagraph"]),
    "m03.lesson.vector-loads": ("row-pitch", ["4000 apart", "4008 apart", "4001 apart"]),
    "m03.lesson.cache": ("eviction-hints", ["no hints", "evict_first on x, evict_last on weight"]),
    "m03.lesson.descriptors": ("descriptor-copy", ["pointers", "descriptors"]),
    "m03.predict.int64": ("int64-indices", ["int32", "int64 program ids", "int64 base, int32 offsets"]),
    "m03.exercise.transpose": ("transpose-tiles", ["1 x 1024", "64 x 64"]),
    "m05.lesson.measure": ("launch-cost", ["Triton"]),
    "m05.predict.warps": ("softmax-registers", ["4 warps", "8 warps"]),
    "m05.exercise.histogram": ("histogram", ["solution, uniform"]),
    "m05.open.histogram": ("histogram", ["solution, uniform"]),
}  # fmt: skip


@pytest.mark.parametrize("item", PREDICTED)
def test_figures_are_those_of_the_record(item: str) -> None:
    question, variants = PREDICTED[item]
    predict = ITEMS[item]
    assert isinstance(predict, Predict)
    assert sum(option.correct for option in predict.options) == 1
    found = predict.measured
    assert (found.device, found.date) == (RECORD["device"], RECORD["date"])
    assert found.versions == "torch {torch}, triton {triton}".format(**RECORD["versions"])
    for variant in variants:
        row(question, variant)
        assert printed(question, variant) in found.figure, (variant, printed(question, variant))
    assert any(f"questions-nvidia-h200.md, question {question}" in line for line in predict.evidence)


@pytest.mark.parametrize("item", SAID)
def test_texts_give_the_figures_of_the_record(item: str) -> None:
    question, variants = SAID[item]
    for variant in variants:
        forms = {printed(question, variant), f"{us(question, variant):.0f}"}
        assert any(re.search(rf"(?<![\d.,]){form}(?![\d]|\.\d)", text_of(item)) for form in forms), (variant, forms)
    assert any(question in line or "test_records_m01_m05" in line for line in ITEMS[item].evidence) or ".open." in item


def turn(variant: str, programs: int) -> float:
    """µs of one turn of the loop of a copy of 2^27 float32, one of them a thread, 128 threads a program."""
    return us("bytes-in-flight", variant) * programs * 132 * 128 / 2**27


def test_a_load_takes_about_half_a_microsecond() -> None:
    assert [round(turn(IN_FLIGHT[0], 4), 2), round(turn(IN_FLIGHT[2], 16), 2)] == [0.46, 0.72]
    assert "0.46 µs" in text_of("m01.lesson.machine") and "0.72 µs" in text_of("m01.lesson.machine")


def test_the_same_bytes_in_flight_take_the_same_time() -> None:
    alike = ratio("bytes-in-flight", IN_FLIGHT[1], IN_FLIGHT[2])
    assert alike in (0.99, 1.0, 1.01)
    assert 2.5 < us("bytes-in-flight", IN_FLIGHT[0]) / us("bytes-in-flight", IN_FLIGHT[2]) < 2.6
    assert share("bytes-in-flight", IN_FLIGHT[2]) == 71
    assert share("bytes-in-flight", "4 a thread, 16 programs a multiprocessor") == 93


def share(question: str, variant: str) -> int:
    """Per cent of the bandwidth of the copy of the same run."""
    found = row(question, variant)
    return round(100 * found["bytes"] / found["median_us"] / 1e3 / RECORD["copy_gb_per_s"])


def test_one_program_a_multiprocessor_is_far_too_few() -> None:
    assert [share("too-few-programs", variant) for variant in SHARES] == [41, 65, 92]
    assert round(us("too-few-programs", SHARES[0]) * 132 * 1024 / 2**26, 2) == 0.63


def test_a_launch_by_triton_costs_more_than_one_by_pytorch() -> None:
    triton, more = us("launch-cost", "Triton"), us("launch-cost", "Triton, 20 more integers")
    assert triton > 2 * us("launch-cost", "torch.add")
    assert round((more - triton) / 20, 1) == 0.4
    assert 8000 < triton / (12_000 / 4.8e6) < 8600  # against the µs of 12,000 bytes


def test_a_graph_takes_the_launches_off_the_cpu() -> None:
    assert round(us("cuda-graph", "torch.add, loop") / us("cuda-graph", "torch.add, graph")) == 8


def test_events_around_nothing_read_five_microseconds() -> None:
    floor = us("event-floor", "cold")
    assert 0.5 < floor / us("warm-l2", "do_bench") < 0.6
    assert us("event-floor", "graph") < floor / 5
    assert printed("warm-l2", "do_bench") == "8.48"


def test_a_graph_finds_a_small_copy_in_l2() -> None:
    found = row("warm-l2", "do_bench_cudagraph")
    assert round(found["bytes"] / found["median_us"] / 1e6, 1) == 4.5 > round(RECORD["copy_gb_per_s"] / 1e3, 1) == 4.2


def test_a_full_cache_makes_a_first_call_a_hundred_times_as_fast() -> None:
    said = text_of("m02.lesson.cache")
    for kernel, empty, full in (("vector add", "0.35 s", "3.5 ms"), ("matmul", "0.91 s", "6.9 ms"),
                                ("attention", "1.4 s", "10 ms")):  # fmt: skip
        seconds, loaded = (us("compile-time", f"{kernel}, {state}") / 1e6 for state in ("empty", "full"))
        assert f"{seconds:.2g} s" == empty and f"{loaded * 1e3:.2g} ms" == full
        assert f"| {kernel} | {empty} | {full} |" in said
        assert seconds > 90 * loaded


def test_exact_gelu_does_not_halve_in_bfloat16() -> None:
    assert ratio("bf16-formulas", FORMULAS[1], FORMULAS[0]) == 0.75
    assert ratio("bf16-formulas", FORMULAS[3], FORMULAS[2]) == 0.51
    assert share("bf16-formulas", FORMULAS[0]) == 99 and share("bf16-formulas", FORMULAS[1]) == 66
    assert us("bf16-formulas", FORMULAS[1]) > 37 * 2**27 / 33.5e6 > 128  # more than its instructions at full rate


def test_dropout_waits_for_its_random_numbers() -> None:
    single, half = us("dropout-rand4x", "rand, float32"), us("dropout-rand4x", "rand, bfloat16")
    assert abs(single / half - 1) < 0.01
    assert 1 < single / (96 * 2**27 / 33.5e6) < 1.1  # the integer units, at half rate, are busy nearly all the time
    assert share("dropout-rand4x", "rand4x, float32") == 99


def test_odd_lengths_and_pitches_cost_by_where_lanes_lie() -> None:
    assert ratio("wide-loads-copy", "float32, n = 2^26 - 1", "float32, n = 2^26") == 1.17
    assert ratio("wide-loads-copy", "float16, n = 2^26 - 1", "float16, n = 2^26") == 3.76
    assert [ratio("row-pitch", f"{n} apart", "4000 apart") for n in (4008, 4001)] == [1.18, 1.3]
    for variant in ("n = 2^26, BLOCK 1024", "n = 2^26 - 1, BLOCK 1024"):  # the vector add of the lesson
        assert f"{us('wide-loads-add', variant):.0f}" in text_of("m03.lesson.vector-loads")
    for variant in ("float32, n = 2^26", "float32, n = 2^26 - 1"):
        assert f"{us('wide-loads-copy', variant):.0f}" in text_of("m03.lesson.vector-loads")


def test_an_odd_length_leaves_lanes_16_bytes_apart() -> None:
    compiled("""
import re
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
@triton.jit
def rows(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=tl.arange(0, BLOCK) < n), mask=tl.arange(0, BLOCK) < n)
def seen(kernel):
    (owned,) = set(re.findall(r"sizePerThread = \\[(\\d+)\\]", kernel.asm["ttgir"]))
    stores = re.findall(r"st\\.global\\.(\\S+)", kernel.asm["ptx"])
    return int(owned), len(stores), stores[0]
x = torch.zeros(1 << 14, dtype=torch.float16)
assert seen(copy[(4,)](x, x.clone(), 4096, BLOCK=1024)) == (8, 1, "v4.b32")
assert seen(copy[(4,)](x, x.clone(), 4095, BLOCK=1024)) == (8, 8, "b16")   # eight neighbours a thread: 16 bytes
assert seen(rows[(4,)](x, x.clone(), 4000, 4000, BLOCK=1024)) == (8, 1, "v4.b32")
assert seen(rows[(4,)](x, x.clone(), 4000, 4008, BLOCK=1024)) == (1, 8, "b16")   # lanes side by side
""")


def test_int64_indices_cost_registers_and_no_time_where_memory_is_the_limit() -> None:
    variants = SAID["m03.predict.int64"][1]
    assert all(abs(ratio("int64-indices", v, variants[0]) - 1) < 0.02 for v in variants)
    registers = [RECORD["questions"]["int64-indices"]["kernels"][v][0]["registers"] for v in variants]
    assert registers[1] > 1.3 * registers[0]


def test_all_tiles_but_a_row_transpose_alike() -> None:
    times = [us("transpose-tiles", v) for v in PREDICTED["m03.predict.tiles"][1]]
    assert max(times[1:]) < 1.05 * min(times[1:])
    assert round(times[0] / us("transpose-tiles", "64 x 64"), 1) == 8.7


def test_eviction_hints_gained_nothing() -> None:
    assert ratio("eviction-hints", "evict_first on x, evict_last on weight", "no hints") == 1.01


def test_a_transposed_row_scale_is_slower_and_not_eight_times() -> None:
    assert ratio("row-scale-transposed", "transposed", "contiguous") == 3.72


def test_what_was_just_written_is_read_from_l2_while_it_fits() -> None:
    small, middle, large = (us("second-read", f"{n} MB") for n in (8, 32, 128))
    assert round(24 * 2**20 / (middle - small) / 1e6, 1) == 7.3  # TB/s
    assert round(96 * 2**20 / (large - middle) / 1e6, 1) == 3.3 < RECORD["copy_gb_per_s"] / 1e3


def test_a_copy_by_descriptors_is_no_faster() -> None:
    assert ratio("descriptor-copy", "descriptors", "pointers") == 1.04


def test_meeting_in_every_turn_shows_in_long_rows_only() -> None:
    long, short = f"{ROWS} 65536", f"{ROWS} 4096"
    assert ratio("sum-in-the-loop", f"{long}, in the loop", f"{long}, one tile") == 1.08
    assert [share("sum-in-the-loop", f"{long}, {how}") for how in ("in the loop", "one tile")] == [79, 86]
    assert ratio("sum-in-the-loop", f"{short}, in the loop", f"{short}, one tile") == 1.0


def test_a_second_look_at_the_row_costs_two_per_cent() -> None:
    assert ratio("layer-norm-looks", "one look", "two looks") == 0.98
    assert [share("layer-norm-looks", how) for how in ("two looks", "one look")] == [93, 95]


def test_the_eager_loss_allocates_two_float32_copies() -> None:
    rows = RECORD["questions"]["cross-entropy"]["rows"]  # bytes, which no noise touches
    assert 2 * 4096 * 128256 * 4 <= rows["PyTorch eager"]["peak_bytes"] < 2.01 * 4096 * 128256 * 4
    assert all(rows[name]["peak_bytes"] <= 4 * 4096 for name in ("solution", "torch.compile"))
    assert lines("cross-entropy")["PyTorch eager"][8] in ITEMS["m04.predict.loss-memory"].measured.figure


def test_a_maximum_for_each_lane_did_not_pay_in_cross_entropy() -> None:
    """The solution's time is noisy, so no factor is said; every spread of it is below the other's all the same."""
    rows = RECORD["questions"]["cross-entropy"]["rows"]
    assert rows["solution"]["p80_us"] < rows["m and l a lane"]["p20_us"]


def test_softmax_against_the_library_depends_on_the_width() -> None:
    said = text_of("m04.lesson.fusion")
    results = {v["exercise"]: v for v in json.loads((RESULTS / "solutions-nvidia-h200.json").read_text())["solutions"]}
    for exercise, factor in (("softmax", "3.2"), ("online_softmax", "1.06")):
        timing = results[exercise]["timing"]
        assert f"{timing['eager_us'] / timing['median_us']:.3g}" == factor and factor in said


def test_a_narrow_row_does_not_earn_its_program() -> None:
    """512 bytes a program, at the 0.61 ns for each of program_ids' 524,288 programs."""
    results = {v["exercise"]: v for v in json.loads((RESULTS / "solutions-nvidia-h200.json").read_text())["solutions"]}
    nanoseconds = results["program_ids"]["timing"]["median_us"] * 1e3 / 524_288
    assert round(nanoseconds, 2) == 0.61
    assert round(512 / nanoseconds / 1e3, 2) == 0.84
    assert 0.19 < 512 / nanoseconds / RECORD["copy_gb_per_s"] < 0.21


def test_a_cap_that_spills_costs_half_as_much_again() -> None:
    assert ratio("softmax-registers", "4 warps, maxnreg=64", "4 warps") == 1.51
    (kernel,) = RECORD["questions"]["softmax-registers"]["kernels"]["4 warps, maxnreg=64"]
    assert (kernel["registers"], kernel["spill_bytes"]) == (64, 184)
    assert [share("softmax-registers", f"{n} warps") for n in (4, 8)] == [93, 94]


def test_a_pipeline_without_a_dot_changes_two_per_cent() -> None:
    assert [ratio("stages-without-dot", f"num_stages={n}", "num_stages=1") for n in (2, 4)] == [1.02, 0.99]


def test_the_third_stage_of_a_matmul_pays_and_the_fourth_does_not_show() -> None:
    assert ratio("matmul-stages", "num_stages=3", "num_stages=2") == 0.75
    assert not apart(spread("matmul-stages", "num_stages=3"), spread("matmul-stages", "num_stages=4"))


def test_private_counts_are_seventy_times_as_fast_as_atomics() -> None:
    uniform, equal = (ratio("histogram", f"atomics, {v}", f"solution, {v}") for v in ("uniform", "all equal"))
    assert (round(uniform), round(equal)) == (70, 199)
    assert round(2**27 / us("histogram", "atomics, uniform") / 1e3, 1) == 3.9
    assert round(2**27 / us("histogram", "atomics, all equal") / 1e3, 1) == 1.4
    assert share("histogram", "solution, uniform") == 26
