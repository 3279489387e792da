"""Mutants of layer_norm, rms_norm, cross_entropy, scale_in_place, heuristic_softmax, histogram, layer_norm_backward and
debug_me: each changed solution gets the verdict of the mistake that was made, and the line where it is."""

from __future__ import annotations

import pytest

STRIDES = ("row * stride_m + cols * stride_n", "row * stride_n + cols * stride_m")
ZERO_FILL = ('other=-float("inf")', "other=0.0")
NO_RESET = (
    ('        m = -float("inf")\n        l = 0.0\n', ""),
    ("    for row in", '    m = -float("inf")\n    l = 0.0\n    for row in'),
)
CAP = "softcap * (2.0 * tl.sigmoid(2.0 * x / softcap) - 1.0)"
GUARD = '        z = tl.where(mask, z, -float("inf"))\n'

# exercise, replacements, cause, what the diagnosed line contains (None: no line is claimed)
MUTANTS = [
    ("layer_norm", [("tl.where(mask, x - mean, 0.0)", "x - mean")], "padding_in_variance", "x - mean"),
    (
        "layer_norm",
        [("tl.sum(centred * centred, axis=0) / n_cols", "tl.sum(x * x, axis=0) / n_cols - mean * mean")],
        "variance_cancels",
        "x * x",
    ),
    (
        "layer_norm",
        [("other=0.0).to(tl.float32)\n    mean", "other=0.0)\n    mean")],
        "accumulates_in_half",
        "tl.load(x_ptr",
    ),
    (
        "rms_norm",
        [("other=0.0).to(tl.float32)\n    mean", "other=0.0)\n    mean")],
        "squared_in_half",
        "tl.load(x_ptr",
    ),
    ("rms_norm", [("axis=0) / n_cols", "axis=0) / BLOCK_N")], "divided_by_block", "/ BLOCK_N"),
    ("rms_norm", [("mean_square + eps", "mean_square")], "missing_eps", "rsqrt"),
    (
        "cross_entropy",
        [(GUARD, ""), ("mask=mask, other=0.0", "mask=mask, other=-float('inf')")],
        "padding_after_softcap",
        "sigmoid",
    ),
    ("cross_entropy", [("counted = target != ignore_index", "counted = target >= 0")], "ignore_index_not_zero", "tl.store"),
    ("cross_entropy", [("l = l * tl.exp(m - shift) + ", "l = l + ")], "no_rescale", "l = l + "),
    ("scale_in_place", [('    restore_value=["x_ptr"],\n', "")], "missing_restore_value", "@triton.autotune"),
    ("scale_in_place", [("restore_value=", "reset_to_zero=")], "reset_instead_of_restore", "reset_to_zero"),
    ("scale_in_place", [("    n = x.numel()\n", "    n = x.numel()\n    x = x.contiguous()\n")], "worked_on_a_copy", "contiguous"),
    (
        "heuristic_softmax",
        [
            ("tl.sum(numerator, axis=1, keep_dims=True)", "tl.sum(tl.where(mask, numerator, 0.0))"),
            ("tl.max(x, axis=1, keep_dims=True)", "tl.max(x)"),
        ],
        "reduced_over_whole_tile",
        "tl.sum(",
    ),
    ("heuristic_softmax", [("axis=1", "axis=0")], "wrong_axis", "axis=0"),
    (
        "heuristic_softmax",
        [('lambda args: triton.next_power_of_2(args["n_cols"])', "lambda args: 64")],
        "columns_beyond_block",
        "BLOCK_N",
    ),
    (
        "histogram",
        [("other=-1)", "other=-1).to(tl.int32)"), ("x.to(tl.int32), BINS", "x, BINS")],
        "cut_to_32_bits",
        "tl.load(",
    ),
    ("histogram", [("other=-1", "other=0")], "padding_counted", "other=0"),
    (
        "histogram",
        [("range(first, n, step)", "range(first, first + BLOCK, BLOCK)"), ("min(triton.cdiv(n, 4096), 528)", "1")],
        "first_tile_only",
        "range(",
    ),
    (
        "layer_norm_backward",
        [("rstd * (g - along_one - xhat * along_xhat)", "rstd * g")],
        "statistics_as_constants",
        "grad_x",
    ),
    (
        "layer_norm_backward",
        [("sum_weight += grad", "sum_weight = grad"), ("sum_bias += grad", "sum_bias = grad")],
        "accumulator_overwritten",
        "sum_weight = ",
    ),
    ("layer_norm_backward", [("grad_x, grad_weight, grad_bias, None", "grad_x, grad_bias, grad_weight, None")], "gradients_exchanged", "return"),
    ("debug_me", [STRIDES], "swapped_strides", "stride_n"),
    ("debug_me", [*NO_RESET, ZERO_FILL], "missing_reset_and_wrong_fill_for_max", "    m = "),
    ("debug_me", [*NO_RESET, ZERO_FILL, STRIDES], "all_three_faults", "    m = "),
]  # fmt: skip


@pytest.mark.parametrize(("exercise", "changes", "cause", "line"), MUTANTS, ids=[f"{m[0]}-{m[2]}" for m in MUTANTS])
def test_a_changed_solution_is_told_its_mistake(submit, tmp_path, exercise, changes, cause, line):
    verdict = submit(exercise, *changes)
    diagnosis = verdict["diagnosis"]
    assert verdict["status"] in ("wrong_answer", "not_written"), diagnosis
    assert diagnosis["cause"] == cause, diagnosis
    told = (tmp_path / f"{exercise}.py").read_text().splitlines()[diagnosis["line"] - 1]
    assert line in told, diagnosis


def test_adding_counts_without_an_atomic_is_a_race(submit):
    atomic = "tl.atomic_add(counts_ptr + bin, counts, mask=bin < bins)"
    plain = "tl.store(counts_ptr + bin, counts + tl.load(counts_ptr + bin, mask=bin < bins), mask=bin < bins)"
    verdict = submit("histogram", (atomic, plain))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("nondeterministic", "race_between_programs")


def test_a_scalar_load_given_zero_for_other_is_not_told_that_it_was_given_none(submit):
    """The interpreter drops a scalar `other` of 0, because Triton asks `if other`; the kernel did give it."""
    verdict = submit(
        "cross_entropy",
        ("mask=counted, other", "mask=(target >= 0) & (target < n_cols), other"),
        ("tl.where(counted, loss, 0.0)", "loss"),
    )
    assert verdict["diagnosis"]["cause"] == "ignore_index_not_zero", verdict["diagnosis"]
