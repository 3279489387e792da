"""Reference solutions with one thing changed, and the verdict each must get: the mistake's own name, or a pass where
the change makes no difference. A row is the exercise, the replacements, the status and the cause."""

from __future__ import annotations

import pytest

ATTENTION_64 = (
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3",
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 64, 64, 4, 2",  # as in the stub: the models know this tile
)
CAUSAL_64 = (
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3",
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 64, 64, 4, 2",
)
A_STRIDES = (
    "(offs_m % M)[:, None] * stride_am + offs_k[None, :] * stride_ak",
    "(offs_m % M)[:, None] * K + offs_k[None, :]",
)
EQUAL = ("passed", None)

MUTANTS = [
    ("program_ids", [("x + pid,", "x + tl.num_programs(0),")], "wrong_answer", "number_of_programs"),
    ("program_ids", [("BLOCK=64)", "BLOCK=128)"), ("cdiv(n, 64)", "cdiv(n, 128)")], "wrong_answer", "other_tile_size"),
    ("tile_copy", [("triton.cdiv(n, block)", "max(n // block, 1)")], "not_written", "floor_grid"),
    ("grid_2d", [("(M, triton.cdiv(N, 64))", "(triton.cdiv(N, 64), M)")], "not_written", "swapped_axes"),
    ("grid_2d", [("tl.program_id(1) * BLOCK + ", "")], "not_written", "first_tile_only"),
    ("grid_2d", [("row * N + offs", "row + offs * tl.num_programs(0)")], "wrong_answer", "swapped_axes"),
    ("vector_add", [("tl.load(x_ptr", "tl.load(y_ptr")], "wrong_answer", "operand_used_twice"),
    ("vector_add", [("mask=mask)\n    y", "mask=mask, other=1.0)\n    y")], *EQUAL),
    ("affine_relu", [("x, out, scale, bias, n", "x, out, bias, scale, n")], "wrong_answer", "arguments_exchanged"),
    ("affine_relu", [("y < 0, 0.0, y)", "y > 0, y, 0.0)")], "wrong_answer", "nan_becomes_zero"),
    ("row_scale", [("cols * stride_xn", "cols")], "wrong_answer", "assumes_contiguous"),
    (
        "row_scale",
        [("row * stride_om + cols * stride_on", "row * stride_xm + cols * stride_xn")],
        "wrong_answer",
        "output_stored_with_input_strides",
    ),
    ("row_max", [('other=-float("inf")', "other=-1e30")], "wrong_answer", "finite_fill_for_max"),
    ("row_max", [('other=-float("inf")', "other=-1.0")], "wrong_answer", "finite_fill_for_max"),
    ("row_max", [("cols * stride_n", "cols")], "wrong_answer", "assumes_contiguous"),
    ("row_max", [("x_ptr + row * stride_m + ", "x_ptr + ")], "wrong_answer", "missing_row_offset"),
    ("row_sum", [("row * stride_m + cols * stride_n", "row * n_cols + cols")], "wrong_answer", "assumes_contiguous"),
    ("row_sum", [("x_ptr + row * stride_m + ", "x_ptr + ")], "wrong_answer", "missing_row_offset"),
    ("row_sum", [("other=0.0", "other=-float('inf')")], "wrong_answer", "wrong_fill_for_sum"),
    ("row_sum", [("start + tl.arange", "tl.arange")], "wrong_answer", "same_tile_again"),
    (
        "row_sum",
        [("tl.sum(acc, axis=0)", "tl.sum(acc, axis=0).to(x_ptr.dtype.element_ty)")],
        "wrong_answer",
        "rounded_to_input",
    ),
    (
        "row_sum",
        [("dtype=tl.float32)", "dtype=x_ptr.dtype.element_ty)"), ("x.to(tl.float32)", "x")],
        "wrong_answer",
        "accumulates_in_half",
    ),
    ("softmax", [('other=-float("inf")', "other=-1e4")], "wrong_answer", "row_of_minus_inf"),
    ("softmax", [("tl.exp(x", "tl.exp2(x")], "wrong_answer", "wrong_exponent_base"),
    ("online_softmax", [("range(0, n_cols, BLOCK):\n        x", "range(0, BLOCK, BLOCK):\n        x")], "wrong_answer", "first_tile_only"),
    ("online_softmax", [("l = l * tl.exp(m - shift) +", "l =")], "wrong_answer", "accumulator_overwritten"),
    ("online_softmax", [('m = -float("inf")', "m = -1e4")], "wrong_answer", "max_starts_at_zero"),
    ("accumulate_rows", [("other=0.0", "other=1.0")], "wrong_answer", "wrong_fill_for_sum"),
    ("grouped_matmul", [A_STRIDES, ("a_ptrs += BLOCK_K * stride_ak", "a_ptrs += BLOCK_K")], "wrong_answer", "assumes_contiguous"),
    ("grouped_matmul", [("N == 0:", "N == 0 or K == 0:")], "not_written", "nothing_written"),
    ("grouped_matmul", [("pid % programs_per_group", "pid")], "not_written", "first_group_only"),
    ("grouped_matmul", [("pid // programs_per_group * GROUP_M", "pid // programs_per_group")], "not_written", "group_row_not_scaled"),
    ("matmul", [("c = acc.to", "acc = tl.maximum(acc, 0.0)\n    c = acc.to")], "wrong_answer", "unknown"),  # once a lost tail
    ("matmul", [("        b_ptrs += BLOCK_K * stride_bk\n", "")], "wrong_answer", "pointers_not_advanced"),
    ("matmul", [("b_ptrs += BLOCK_K * stride_bk", "b_ptrs += BLOCK_K")], "wrong_answer", "wrong_pointer_step"),
    ("matmul", [("tl.dot(a, b, acc", "tl.dot(b, a, acc")], "wrong_answer", "operands_exchanged"),
    (
        "matmul",
        [
            ("dtype=tl.float32)", "dtype=tl.float16)"),
            ('acc = tl.dot(a, b, acc, input_precision="ieee")', 'acc += tl.dot(a, b, input_precision="ieee").to(tl.float16)'),
        ],
        "wrong_answer",
        "low_precision_accumulator",
    ),
    ("attention", [ATTENTION_64, ("+ head * stride_kh", "")], "wrong_answer", "missing_head_offset"),
    ("attention", [ATTENTION_64, ("tl.maximum(m_i, tl.max(s, axis=1) * scale)", "tl.max(s, axis=1) * scale")], "wrong_answer", "max_not_running"),
    ("causal_attention", [CAUSAL_64, ("tl.maximum(m_i, tl.max(s, axis=1) * scale)", "tl.zeros_like(m_i)")], "wrong_answer", "missing_max_subtraction"),
    ("causal_attention", [CAUSAL_64, ("offs_d[None, :] * stride_vd", "offs_d[None, :]")], "wrong_answer", "assumes_contiguous"),
    ("causal_attention", [CAUSAL_64, ("tl.exp2(m_i - m_new)", "tl.exp2(m_new - m_i)")], "wrong_answer", "row_of_nan"),
    ("compiled_add", [("= 2 * x", "= torch.relu(2 * x)"), ("torch.relu(out)", "out")], "wrong_answer", "wrong_order_of_operations"),
    ("compiled_add", [("    y = y.contiguous()\n", "")], "wrong_answer", "assumes_contiguous"),
    ("square_autograd", [("save_for_backward(x)", "save_for_backward(out)")], "wrong_answer", "saved_output"),
    ("silu_op", [("s = tl.sigmoid(x)", "s = tl.exp(x) / (1 + tl.exp(x))")], "wrong_answer", "exp_overflows"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "changes", "status", "cause"), MUTANTS, ids=[f"{m[0]}-{m[3] or m[2]}" for m in MUTANTS]
)
def test_a_changed_solution_gets_its_own_verdict(submit, exercise, changes, status, cause):
    verdict = submit(exercise, *changes)
    assert verdict["status"] == status, verdict["diagnosis"]
    assert (verdict["diagnosis"] or {}).get("cause") == cause, verdict["diagnosis"]
