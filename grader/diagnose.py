"""Why it is wrong: the problem's mistake models first, then general signs. When nothing fits, say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from grader.case_runner import Outcome, placed
from grader.compare import expect
from grader.expectation import Values
from grader.guards import poisoned
from grader.problem import Case, Mistake, Problem
from grader.source import line_of_pattern, unmasked_access
from grader.verdict import case_row

if TYPE_CHECKING:
    from grader.grade import Grade


@dataclass(frozen=True)
class Diagnosis:
    cause: str
    message: str
    concept: str | None = None
    see: str | None = None
    line: int | None = None


def finish(grade: Grade) -> None:
    """Settle the status from all that was seen, and explain it."""
    verdict = grade.verdict
    source = grade.submission.source.decode("utf-8", "replace")
    refused, beyond, filler = verdict.refused, verdict.out_of_bounds, verdict.filler_failure
    if refused is not None and verdict.status not in ("import_error", "compile_error"):
        case, outcome = refused
        if outcome.status == "compile_error":
            verdict.first_failure(case, grade.values(case), outcome)
            verdict.notes.append(
                f"refused when compiled for {grade.options.target}, case {case.name!r}; the interpreter accepts it"
            )
    if beyond is not None and verdict.status not in ("import_error", "compile_error") and _not_later(grade, beyond[0]):
        verdict.first_failure(*beyond)
        verdict.notes.append("found by the interpreter's exact bounds check")
    elif filler is not None and verdict.status == "passed":
        verdict.first_failure(*filler)
        verdict.undefined_filler = True
        verdict.notes.append(
            "found by the interpreter, which fills masked-off lanes of a load without `other` with NaN"
        )
    if verdict.failure is not None:
        found = _explain(
            grade.problem, verdict.failure.values, verdict.failure.outcome, source, verdict.undefined_filler
        )
        verdict.diagnosis = {
            "cause": found.cause,
            "message": found.message,
            "line": found.line,
            "concept": found.concept,
            "see": found.see,
            "case": verdict.failure.case.name,
        }
        if verdict.failure.outcome.whole:
            verdict.diagnosis["whole"] = verdict.failure.outcome.whole
        _settle_case_rows(grade)
    elif verdict.diagnosis is not None:
        general = GENERAL.get(verdict.diagnosis["cause"] or "")
        if general:
            verdict.diagnosis["concept"], verdict.diagnosis["see"] = general


def _not_later(grade: Grade, case: Case) -> bool:
    """Whether no case before this one has failed already."""
    failure = grade.verdict.failure
    cases = grade.problem.cases
    return failure is None or cases.index(case) <= cases.index(failure.case)


def _settle_case_rows(grade: Grade) -> None:
    """A failure seen beside the run (offline compile, bounds) belongs to its case too."""
    failure = grade.verdict.failure
    assert failure is not None
    for position, row in enumerate(grade.verdict.cases):
        if row["name"] == failure.case.name and row["status"] in ("passed", "not_run"):
            grade.verdict.cases[position] = case_row(failure.case, failure.outcome)


# concept and course item for causes that belong to no single exercise
GENERAL: dict[str, tuple[str, str]] = {
    "missing_store_mask": ("masking", "m02.bug.mask"),
    "missing_load_mask": ("masking", "m02.bug.mask"),
    "out_of_range_store": ("masking", "m02.lesson.mask"),
    "out_of_range_load": ("masking", "m02.lesson.mask"),
    "load_without_other": ("masking", "m03.lesson.fill"),
    "unwritten_region": ("launch", "m02.lesson.launch"),
    "nothing_written": ("launch", "m02.lesson.skeleton"),
    "row_of_nan": ("numerics", "m04.lesson.softmax"),
    "last_tile_only": ("masking", "m02.lesson.mask"),
    "strided_inputs_only": ("strides", "m03.lesson.strides"),
    "transposed": ("strides", "m03.lesson.tiles"),
    "shifted_by_one_tile": ("offsets", "m02.lesson.skeleton"),
    "low_precision": ("numerics", "m04.lesson.dtype"),
    "scaled": ("numerics", "m07.lesson.flash"),
    "not_contiguous": ("strides", "m03.lesson.strides"),
    "wrong_on_second_call": ("state", "m05.lesson.side-effects"),
    "differs_between_runs": ("concurrency", "m05.lesson.side-effects"),
    "compiler_rejects": ("constexpr", "m08.lesson.debug"),
    "out_of_resources": ("performance", "m05.lesson.warps-stages"),
    "kernel_does_not_matter": ("launch", "m02.lesson.launch"),
    "no_gradient": ("autograd", "m08.lesson.autograd"),
    "input_mutated": ("memory", "m05.lesson.side-effects"),
    "wrong_dtype": ("dtype", "m04.lesson.dtype"),
    "opcheck_schema": ("operators", "m08.lesson.operator"),
    "opcheck_autograd_registration": ("operators", "m08.lesson.operator"),
    "opcheck_faketensor": ("operators", "m08.lesson.operator"),
    "opcheck_aot_dispatch_dynamic": ("operators", "m08.lesson.operator"),
}


def _general(cause: str, message: str, line: int | None = None) -> Diagnosis:
    concept, see = GENERAL.get(cause, (None, None))
    return Diagnosis(cause, message, concept, see, line)


def _explain(problem: Problem, values: Values, outcome: Outcome, source: str, filler: bool) -> Diagnosis:
    if outcome.status == "out_of_bounds":
        return _beyond(outcome, source)
    if outcome.status not in ("wrong_answer", "not_written") or outcome.comparison is None:
        cause = outcome.cause or outcome.status
        return _general(cause, outcome.message or outcome.status, outcome.line)
    if filler:
        line = line_of_pattern(source, r"tl\.load\((?!.*other)")
        return _general(
            "load_without_other",
            "Lanes switched off by a load's mask reach the result: without `other` their value is undefined. "
            "Give `other` the neutral element of what follows (0 for a sum, -inf for a maximum).",
            line,
        )
    mistake = matching_mistake(problem, values, outcome)
    if mistake is not None:
        return Diagnosis(
            mistake.cause, mistake.message, mistake.concept, mistake.see, line_of_pattern(source, mistake.line)
        )
    if outcome.cause == "wrong_on_second_call":
        return _general(
            "wrong_on_second_call",
            f"{outcome.message}. Does the launcher keep state between calls, or is an output added to and never reset?",
        )
    return _by_signs(values, outcome)


def _beyond(outcome: Outcome, source: str) -> Diagnosis:
    cause, line = outcome.cause or "out_of_range_store", outcome.line
    message = outcome.message or ""
    if line is None:  # seen in a guard band: the source tells which access has no mask
        bare = unmasked_access(source)
        if bare is not None:
            cause, line = f"missing_{bare[0]}_mask", bare[1]
    if outcome.program_id is not None:
        message += f", by program {tuple(outcome.program_id)}"
    if cause.startswith("missing"):
        message += ". This access has no mask: the last program's tile reaches past the end."
    else:
        message += ". The mask lets a lane through that lies outside; compare it with the shape the offsets run over."
    return _general(cause, message, line)


def model_of(mistake: Mistake, values: Values) -> tuple[torch.Tensor, ...] | Callable[[Any], bool] | None:
    """What the mistaken kernel returns, a test of what it returns, or None where the mistake cannot show."""
    modelled: Any = mistake.model(*[placed(a) if isinstance(a, torch.Tensor) else a for a in values.args])
    if modelled is None or callable(modelled):
        return modelled
    return tuple(modelled) if isinstance(modelled, (tuple, list)) else (modelled,)


def matching_mistake(problem: Problem, values: Values, outcome: Outcome) -> Mistake | None:
    """The first mistake whose model gives this output, within the dtype's error."""
    for mistake in problem.mistakes:
        try:
            modelled = model_of(mistake, values)
            if modelled is None:
                continue
            if callable(modelled):
                if modelled(outcome.outputs if len(outcome.outputs) > 1 else outcome.outputs[0]):
                    return mistake
            elif _all_equal(problem, modelled, outcome, values):
                return mistake
        except (RuntimeError, ValueError, IndexError, TypeError):
            continue  # a model may not apply to this case's shapes
    return None


def _all_equal(problem: Problem, modelled: tuple[torch.Tensor, ...], outcome: Outcome, values: Values) -> bool:
    for model, out, expected in zip(modelled, outcome.outputs, values.expected, strict=False):
        if model.shape != out.shape:
            return False
        native = model.to(out.dtype)
        if out.dtype.is_floating_point:
            # the model is one rounding of the mistake, the kernel another: allow the case's own bound and some
            near = expect(native, model.to(torch.float64), problem.tolerance, None)
            bound = torch.maximum(near.bound, 2 * expected.bound)
            bound = bound + 4 * torch.finfo(out.dtype).eps * model.to(torch.float64).abs()
            bound = torch.where(torch.isfinite(model), bound, torch.zeros_like(bound))
            same = (out.to(torch.float64) - model.to(torch.float64)).abs() <= bound
            same |= native == out
            same |= model.isnan() & out.isnan()
        else:
            same = native == out
        # a model speaks of what was written; a mistake may leave the rest untouched
        if not bool(same.all()):
            return False
    return True


def _by_signs(values: Values, outcome: Outcome) -> Diagnosis:
    comparison, out = outcome.comparison, outcome.outputs[outcome.output]
    assert comparison is not None
    expected = values.expected[outcome.output]
    wrong, truth = comparison.wrong, expected.truth
    detail = outcome.message or ""
    if outcome.status == "not_written":
        holes = poisoned(out)
        if bool(holes.all()):
            return _general(
                "nothing_written", f"{detail}: nothing was stored. Is the kernel launched, and does it reach its store?"
            )
        return _general("unwritten_region", f"{detail}. Too few programs, offsets that miss them, too strict a mask.")
    if out.dtype.is_floating_point:
        nan = out.isnan() & ~truth.isnan()
        if out.ndim >= 1 and bool(nan.reshape(-1, out.shape[-1] if out.ndim > 1 else out.numel()).all(dim=1).any()):
            return _general(
                "row_of_nan",
                f"{detail}. A whole row is NaN: -inf minus -inf, 0/0, or a lane that was masked off.",
            )
        if bool(nan.any()):
            return _general("some_nan", f"{detail}. Some elements are NaN where the answer is a number.")
    turned = _equal_view(out, expected, lambda t: t.transpose(-1, -2)) if out.ndim >= 2 else False
    if turned:
        return _general(
            "transposed", f"{detail}. The output is the transposed answer: row and column offsets are exchanged."
        )
    shift = _shift(out, truth, expected)
    if shift is not None:
        return _general(
            "shifted_by_one_tile", f"{detail}. The output is the answer moved by {shift} elements: an offset is off."
        )
    if _only_the_end(wrong):
        return _general("last_tile_only", f"{detail}. Only the end is wrong: the last, partial tile.")
    factor = _factor(out, truth, wrong)
    if factor is not None:
        return _general(
            "scaled", f"{detail}. The output is {factor:.6g} times the answer: a scale is missing, or wrong."
        )
    if out.dtype.is_floating_point and _rounding_sized(out, truth, wrong):
        size = "fp16- or TF32-sized" if out.dtype == torch.float32 else "rounding-sized"
        return _general(
            "low_precision", f"{detail}. The error is {size}: accumulate in float32, and cast once at the end."
        )
    strided = any(isinstance(a, torch.Tensor) and a.numel() > 1 and not a.is_contiguous() for a in values.args)
    if strided:
        return _general("strided_inputs_only", f"{detail}. An input of this case is not contiguous: use its strides.")
    return Diagnosis("unknown", f"{detail}. No known mistake gives this output. {_map(wrong)}")


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


def _map(wrong: torch.Tensor) -> str:
    """The output as at most 8 x 16 cells: right (.), wrong (x), partly (o)."""
    flat = wrong.reshape(-1, wrong.shape[-1]) if wrong.ndim > 1 else wrong.reshape(1, -1)
    rows, columns = min(8, flat.shape[0]), min(16, flat.shape[1])
    lines = []
    for band in torch.tensor_split(flat, rows, dim=0):
        cells = [float(cell.float().mean()) for cell in torch.tensor_split(band, columns, dim=1)]
        lines.append("".join("." if c == 0 else "x" if c == 1 else "o" for c in cells))
    return "Where it is wrong (. right, o partly, x wrong):\n" + "\n".join(lines)
