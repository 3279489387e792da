"""The general signs, each on an output made by hand; and what several cases of one submission say together."""

from __future__ import annotations

import torch

from grader.case_runner import Outcome
from grader.catalog import find
from grader.compare import compare, expect
from grader.expectation import Values
from grader.guards import fill_with_poison
from grader.problem import Tolerance
from grader.signs import by_signs, has_strided_input, tile_map


def cause_of(out: torch.Tensor, right: torch.Tensor, args=None, status="wrong_answer") -> str:
    expected = expect(right, right.double(), Tolerance(), None)
    comparison = compare(out, expected)
    assert not comparison.right
    values = Values(args or (right,), (expected,))
    outcome = Outcome(status, "what was seen", comparison, 0, (out,))
    return by_signs(values, outcome, has_strided_input(values)).cause


RIGHT = torch.randn(40, 40, generator=torch.Generator().manual_seed(0))


def test_transposed():
    assert cause_of(RIGHT.t().contiguous(), RIGHT) == "transposed"


def test_moved_by_one_tile():
    flat = RIGHT.flatten()
    assert cause_of(torch.cat([flat[64:], flat[:64]]), flat) == "shifted_by_one_tile"


def test_a_row_of_nan():
    out = RIGHT.clone()
    out[3] = float("nan")
    assert cause_of(out, RIGHT) == "row_of_nan"


def test_only_the_end_is_wrong():
    out = RIGHT.flatten().clone()
    out[1400:] = 7.0
    assert cause_of(out, RIGHT.flatten()) == "last_tile_only"


def test_a_scaled_answer():
    assert cause_of(RIGHT * 1.01, RIGHT) == "scaled"


def test_wrong_later_rows_are_no_last_tile():
    out = torch.randn(4, 128, generator=torch.Generator().manual_seed(1))
    bad = out.clone()
    bad[2:] = -bad[2:]
    assert cause_of(bad, out) not in ("last_tile_only", "low_precision")


def test_a_wrong_number_is_not_a_rounding_error_of_whole_numbers():
    right = torch.arange(1000, 1200, dtype=torch.int32)
    assert cause_of(right + 7, right) == "unknown"


def test_an_error_of_half_precision_size():
    assert cause_of(RIGHT.half().float(), RIGHT) == "low_precision"


def test_only_because_an_input_is_strided():
    assert cause_of(RIGHT + 1.0, RIGHT, args=(RIGHT.t(),)) == "strided_inputs_only"


def unwritten(rows: int, columns: int) -> torch.Tensor:
    memory = torch.empty(rows * columns * 4, dtype=torch.uint8)
    fill_with_poison(memory, torch.float32)
    return memory.view(torch.float32).reshape(rows, columns)


def test_nothing_written_and_partly_unwritten():
    poison = unwritten(40, 40)
    assert cause_of(poison, RIGHT, status="not_written") == "nothing_written"
    out = RIGHT.clone()
    out[20:] = poison[20:]
    assert cause_of(out, RIGHT, status="not_written") == "unwritten_region"


def test_nothing_fits_and_it_says_so_with_a_map():
    out = RIGHT.clone()
    out[::3, ::2] += 5.0
    expected = expect(RIGHT, RIGHT.double(), Tolerance(), None)
    found = by_signs(
        Values((RIGHT,), (expected,)), Outcome("wrong_answer", "seen", compare(out, expected), 0, (out,)), False
    )
    assert found.cause == "unknown" and "No known mistake" in found.message
    assert "x" in found.message.splitlines()[-1]


def test_the_map_tells_right_wrong_unwritten_and_nan():
    right = torch.ones(32, 64)
    out = right.clone()
    out[:, 32:] = 3.0
    out[16:, :16] = float("nan")
    out[16:, 48:] = unwritten(16, 16)
    lines = tile_map(out, compare(out, expect(right, right.double(), Tolerance(), None)).wrong).splitlines()
    assert "n NaN" in lines[0] and "? unwritten" in lines[0]
    assert len(lines) == 17 and set(map(len, lines[1:])) == {32}
    assert lines[1] == "." * 16 + "x" * 16
    assert lines[16] == "n" * 8 + "." * 8 + "x" * 8 + "?" * 8


# -- several cases of one submission


def test_a_model_that_fits_one_case_by_chance_is_not_named(submit):
    """A tile with one negative value becomes all 0, as relu(x * bias + scale) mostly is in the first case."""
    verdict = submit(
        "affine_relu",
        ("    y = tl.where(y < 0, 0.0, y)\n", "    if tl.min(y, axis=0) < 0:\n        y = tl.zeros_like(y)\n"),
    )
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"] == "all_zero", verdict["diagnosis"]


def test_the_smallest_failing_case_is_named_with_index_and_program(submit):
    """The exercise's first case has 130 elements; one element is enough to be wrong."""
    diagnosis = submit("program_ids", ("x + pid,", "x + tl.num_programs(0),"))["diagnosis"]
    assert diagnosis["cause"] == "number_of_programs"
    assert (diagnosis["case"], diagnosis["index"], diagnosis["program"]) == ("n=1", [0], [0, 0, 0])


def test_a_case_too_small_to_tell_is_explained_by_a_larger_one(submit):
    """n // block programs are none for one element: nothing is written, which alone could be a missing launch."""
    diagnosis = submit("tile_copy", ("triton.cdiv(n, block)", "n // block"))["diagnosis"]
    assert (diagnosis["cause"], diagnosis["case"]) == ("floor_grid", "n=1 block=16 float32")


def test_an_access_out_of_bounds_is_explained_by_cases_that_stay_inside(submit):
    verdict = submit("row_max", ("row * stride_m + cols * stride_n", "row * stride_n + cols * stride_m"))
    assert verdict["status"] == "out_of_bounds"
    assert verdict["diagnosis"]["cause"] == "swapped_axes"
    assert "ends at element" in verdict["diagnosis"]["message"]


def test_a_mistake_that_a_passed_case_denies_is_not_named(submit):
    """Padding with 0 and a maximum that starts at 0 look alike in a padded row, not in one that fills its tile."""
    fill = submit("row_max", ('other=-float("inf")', "other=0.0"))["diagnosis"]
    start = submit("row_max", ("tl.max(x, axis=0))", "tl.maximum(tl.max(x, axis=0), 0.0))"))["diagnosis"]
    assert (fill["cause"], start["cause"]) == ("wrong_fill_for_max", "max_starts_at_zero")


def test_the_line_is_that_of_the_innermost_function_of_the_file(submit):
    source = find("attention").solution.read_text()
    old = "l_i = l_i * alpha + tl.sum(p, axis=1)"
    verdict = submit("attention", (old, "l_i = (l_i * alpha + tl.sum(p, axis=1)).to(tl.float16)"))
    line = next(n for n, text in enumerate(source.splitlines(), 1) if old in text)
    assert (verdict["diagnosis"]["cause"], verdict["diagnosis"]["line"]) == ("loop_changes_type", line)
