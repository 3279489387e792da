"""The general signs, each on an output made by hand."""

from __future__ import annotations

import torch

from grader.case_runner import Outcome
from grader.compare import compare, expect
from grader.diagnose import _by_signs
from grader.expectation import Values
from grader.guards import INTEGER_POISON
from grader.problem import Tolerance


def cause_of(out: torch.Tensor, right: torch.Tensor, args=None, status="wrong_answer") -> str:
    expected = expect(right, right.double(), Tolerance(), None)
    comparison = compare(out, expected)
    assert not comparison.right
    return _by_signs(
        Values(args or (right,), (expected,)), Outcome(status, "what was seen", comparison, 0, (out,))
    ).cause


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


def test_nothing_written_and_partly_unwritten():
    poison = torch.full((40, 40, 4), 0xFF, dtype=torch.uint8).view(torch.float32).reshape(40, 40)
    assert cause_of(poison, RIGHT, status="not_written") == "nothing_written"
    out = RIGHT.clone()
    out[20:] = poison[20:]
    assert cause_of(out, RIGHT, status="not_written") == "unwritten_region"
    assert INTEGER_POISON != 0xFF


def test_nothing_fits_and_it_says_so_with_a_map():
    out = RIGHT.clone()
    out[::3, ::2] += 5.0
    expected = expect(RIGHT, RIGHT.double(), Tolerance(), None)
    found = _by_signs(Values((RIGHT,), (expected,)), Outcome("wrong_answer", "seen", compare(out, expected), 0, (out,)))
    assert (
        found.cause == "unknown"
        and "No known mistake" in found.message
        and "x" in found.message.splitlines()[-1] + "xo"
    )
