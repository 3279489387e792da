"""General signs in a wrong output: what it looks like when no mistake model of the exercise gives it."""

from __future__ import annotations

import re
from typing import Any

import torch

from grader.case_runner import Outcome
from grader.causes import Diagnosis, general
from grader.expectation import Values
from grader.guards import poisoned
from grader.problem import Problem

MAP_ROWS, MAP_COLUMNS = 16, 32


def has_strided_input(values: Values) -> bool:
    return any(isinstance(a, torch.Tensor) and a.numel() > 1 and not a.is_contiguous() for a in values.args)


def by_signs(values: Values, outcome: Outcome, strided: bool) -> Diagnosis:
    """`strided`: whether all cases that failed have an input that is not contiguous."""
    comparison, out = outcome.comparison, outcome.outputs[outcome.output]
    assert comparison is not None
    expected = values.expected[outcome.output]
    wrong, truth = comparison.wrong, expected.truth
    detail = outcome.message or ""
    if outcome.status == "not_written":
        holes = poisoned(out)
        if bool(holes.all()):
            return general(
                "nothing_written", f"{detail}: nothing was stored. Is the kernel launched, and does it reach its store?"
            )
        return general("unwritten_region", f"{detail}. Too few programs, offsets that miss them, too strict a mask.")
    if out.dtype.is_floating_point:
        nan = out.isnan() & ~truth.isnan()
        if out.ndim >= 1 and bool(nan.reshape(-1, out.shape[-1] if out.ndim > 1 else out.numel()).all(dim=1).any()):
            return general(
                "row_of_nan",
                f"{detail}. A whole row is NaN: -inf minus -inf, 0/0, or a lane that was masked off.",
            )
        if bool(nan.any()):
            return general("some_nan", f"{detail}. Some elements are NaN where the answer is a number.")
    turned = _equal_view(out, expected, lambda t: t.transpose(-1, -2)) if out.ndim >= 2 else False
    if turned:
        return general(
            "transposed", f"{detail}. The output is the transposed answer: row and column offsets are exchanged."
        )
    shift = _shift(out, truth, expected)
    if shift is not None:
        return general(
            "shifted_by_one_tile", f"{detail}. The output is the answer moved by {shift} elements: an offset is off."
        )
    if _only_the_end(wrong):
        return general("last_tile_only", f"{detail}. Only the end is wrong: the last, partial tile.")
    if bool((out == 0).all()):
        return general(
            "all_zero",
            f"{detail}. Every element is 0: nothing but zeros was stored, or the kernel never stored over an output "
            "made of zeros.",
        )
    factor = _factor(out, truth, wrong)
    if factor is not None:
        return general(
            "scaled", f"{detail}. The output is {factor:.6g} times the answer: a scale is missing, or wrong."
        )
    if out.dtype.is_floating_point and _rounding_sized(out, truth, wrong):
        size = "fp16- or TF32-sized" if out.dtype == torch.float32 else "rounding-sized"
        return general(
            "low_precision", f"{detail}. The error is {size}: accumulate in float32, and cast once at the end."
        )
    if strided:
        return general("strided_inputs_only", f"{detail}. An input of this case is not contiguous: use its strides.")
    return Diagnosis("unknown", f"{detail}. No known mistake gives this output. {tile_map(out, wrong)}")


def _only_the_end(wrong: torch.Tensor) -> bool:
    """Whether the wrong elements are the last columns, or of one dimension the last elements."""
    columns = wrong.reshape(-1, wrong.shape[-1]).any(dim=0) if wrong.ndim else wrong.reshape(1)
    if columns.numel() < 64 or wrong.numel() < 128:
        return False
    first = int(columns.nonzero()[0])
    return first >= columns.numel() // 2 and bool(columns[first:].float().mean() > 0.5)


def _factor(out: torch.Tensor, truth: torch.Tensor, wrong: torch.Tensor) -> float | None:
    """The one factor between output and answer, if there is one other than 1 and nearly all elements are wrong."""
    value = out.to(torch.float64)
    used = torch.isfinite(value) & torch.isfinite(truth) & (truth.abs() > 1e-3 * truth.abs().max())
    if not out.dtype.is_floating_point or int(used.sum()) < 8 or bool(wrong[used].float().mean() < 0.9):
        return None
    ratio = value[used] / truth[used]
    middle = float(ratio.median())
    spread = 16 * torch.finfo(out.dtype).eps * max(abs(middle), 1.0)
    if abs(middle - 1) < 4 * spread or bool(((ratio - middle).abs() > spread).any()):
        return None
    return middle


def _rounding_sized(out: torch.Tensor, truth: torch.Tensor, wrong: torch.Tensor) -> bool:
    """Whether the errors look like those of a narrower accumulation: small beside the values, of both signs."""
    value = out.to(torch.float64)
    used = torch.isfinite(value) & torch.isfinite(truth) & wrong
    if not bool(used.any()):
        return False
    error = (value - truth)[used] / truth.abs()[used].clamp_min(1e-3 * float(truth[used].abs().max()))
    both = int(error.numel()) < 8 or min(float((error > 0).float().mean()), float((error < 0).float().mean())) > 0.05
    return both and bool(error.abs().median() < 5e-3)


def _equal_view(out: torch.Tensor, expected: Any, turn: Any) -> bool:
    turned = turn(expected.truth)
    if turned.shape != out.shape or torch.equal(turned, expected.truth):
        return False
    bound = turn(expected.bound) + 1e-12
    return bool(((out.to(torch.float64) - turned).abs() <= bound).all())


def _shift(out: torch.Tensor, truth: torch.Tensor, expected: Any) -> int | None:
    """By how many elements the flat output is the flat answer moved, if it is."""
    a, b = out.flatten().to(torch.float64), truth.flatten()
    n = a.numel()
    if n < 64:
        return None
    for step in (1, 16, 32, 64, 128, 256, 512, 1024, 2048):
        for sign in (1, -1):
            k = step * sign
            if abs(k) >= n // 2:
                continue
            left, right = (a[k:], b[: n - k]) if k > 0 else (a[:k], b[-k:])
            if bool(((left - right).abs() <= expected.bound.max() + 1e-12).all()):
                return k
    return None


def tile_map(out: torch.Tensor, wrong: torch.Tensor) -> str:
    """The output as at most 16 x 32 cells: right (.), wrong (x), unwritten (?), NaN (n).

    A cell in which anything is not right shows what most of that is.
    """
    rows_of = lambda t: t.reshape(-1, t.shape[-1]) if t.ndim > 1 else t.reshape(1, -1)
    unwritten = poisoned(out) & wrong
    nan = out.isnan() & wrong & ~unwritten if out.dtype.is_floating_point else torch.zeros_like(wrong)
    states = {"x": wrong & ~unwritten & ~nan, "?": unwritten, "n": nan}
    planes = {sign: rows_of(state).to(torch.float32) for sign, state in states.items()}
    height, width = planes["x"].shape
    if height * width == 0:
        return ""
    lines = []
    for band in torch.tensor_split(torch.arange(height), min(MAP_ROWS, height)):
        cells = torch.tensor_split(torch.arange(width), min(MAP_COLUMNS, width))
        counts = [{sign: float(plane[band][:, cell].sum()) for sign, plane in planes.items()} for cell in cells]
        lines.append("".join(max(c, key=lambda sign: c[sign]) if any(c.values()) else "." for c in counts))
    return "The output by tile (. right, x wrong, ? unwritten, n NaN):\n" + "\n".join(lines)


def beyond(problem: Problem, values: Values, outcome: Outcome) -> tuple[str, str] | None:
    """What an access out of bounds through a mask that knows the right size says: cause and message.

    The index that is out of bounds is a right one for a tensor that lies differently in memory.
    """
    index, ends = outcome.index, re.search(r"whose memory ends at element (\d+)", outcome.message or "")
    if index is None or ends is None:
        return None
    memory = int(ends[1]) + 1
    for position, value in enumerate(values.args):
        if not isinstance(value, torch.Tensor) or value.is_contiguous() or value.numel() == 0:
            continue
        own = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))
        if own == memory <= index < value.numel():
            gradient = problem.call in ("gradient", "operator") and position == len(values.args) - 1
            what = "The incoming gradient" if gradient else problem.parameters[position]
            cause = "gradient_assumed_contiguous" if gradient else "assumes_contiguous"
            text = (
                f"{what} is read as if its {value.numel()} elements lay side by side; it is expanded, and {memory} of "
                "them exist. Call .contiguous() on it, or use its strides."
            )
            return cause, text
        if memory == value.numel() and value.ndim == 2 and any(e.truth.shape == value.shape for e in values.expected):
            row, column = divmod(index, value.stride(0)) if value.stride(0) else (0, 0)
            if row < value.shape[0] and column % max(value.stride(1), 1) == 0 and outcome.cause == "out_of_range_store":
                text = f"The output is addressed with the strides of {problem.parameters[position]}; it has its own."
                return "output_stored_with_input_strides", text
    return None
