"""Solutions of the later matmul and attention exercises with one thing changed, and the verdict each must get.

A row is the exercise, the replacements, the status and the cause."""

from __future__ import annotations

import pytest

LSE_64 = (
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3",
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 64, 64, 4, 2",  # as in the stub: the models know this tile
)
BACKWARD_64 = ("OWN, STREAMED, num_warps = 128, 64, 8", "OWN, STREAMED, num_warps = 64, 64, 4")
BIAS = "    acc += bias.to(tl.float32)[None, :]\n"
RELU = "    acc = tl.where(acc < 0, 0.0, acc)"
CAST_FIRST = "    acc = acc.to(out_ptr.dtype.element_ty)\n    acc += bias[None, :]\n"
ZEROS = "acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)"
INT_DOT, INT_ZEROS = "tl.dot(a, b, acc, out_dtype=tl.int32)", "dtype=tl.int32)"
LSE = "(m_i + tl.log2(l_i)) * 0.6931471805599453"
P_MASK = "        p = tl.where(keys[None, :] < N_k, p, 0.0)\n"

MUTANTS = [
    ("matmul_bias_relu", [(BIAS, CAST_FIRST)], "wrong_answer", "activation_after_cast"),
    ("matmul_bias_relu", [(RELU, "    acc = acc"), (BIAS, RELU + "\n" + BIAS)], "wrong_answer", "activation_before_bias"),
    ("matmul_bias_relu", [("bias.to(tl.float32)[None, :]", "bias.to(tl.float32)[:, None]")], "wrong_answer", "bias_by_row"),
    ("batched_matmul", [("    b_ptr += matrix * stride_bs\n", "")], "wrong_answer", "missing_batch_offset"),
    ("batched_matmul", [("triton.cdiv(N, BLOCK_N) * S,)", "triton.cdiv(N, BLOCK_N),)")], "not_written", "first_matrix_only"),
    ("batched_matmul", [("matrix * stride_bs", "matrix * K * N")], "out_of_bounds", "assumes_contiguous"),
    (
        "int8_matmul",
        [(INT_DOT, "tl.dot(a.to(tl.float16), b.to(tl.float16), acc)"), (INT_ZEROS, "dtype=tl.float32)")],
        "wrong_answer",
        "integers_added_in_float",
    ),
    ("int8_matmul", [("a_scale[:, None] * b_scale[None, :]", "a_scale[None, :] * b_scale[:, None]")], "wrong_answer", "swapped_axes"),
    ("int8_matmul", [("acc.to(tl.float32) *", "acc.to(tl.float16) *")], "wrong_answer", "activation_after_cast"),
    (
        "persistent_matmul",
        [("        " + ZEROS, "        pass"), ("    for tile in", f"    {ZEROS}\n    for tile in")],
        "wrong_answer",
        "accumulator_not_reset",
    ),
    ("persistent_matmul", [("= tile_of(tile,", "= tile_of(tl.program_id(0),")], "not_written", "first_tile_only"),
    ("persistent_matmul", [("[k * BLOCK_K, tile_n * BLOCK_N]", "[tile_n * BLOCK_N, k * BLOCK_K]")], "wrong_answer", "swapped_axes"),
    ("attention_lse", [(LSE, "m_i + tl.log2(l_i)")], "wrong_answer", "wrong_exponent_base"),
    ("attention_lse", [('float("-inf"), 0.0, m_new)', 'float("-inf"), m_new, m_new)')], "wrong_answer", "minus_inf_minus_minus_inf"),
    ("attention_lse", [LSE_64, ("l_i * alpha +", "l_i +")], "wrong_answer", "no_rescale_denominator"),
    ("decode_attention", [("kv_head * G + offs_g", "kv_head + offs_g * tl.num_programs(1)")], "wrong_answer", "wrong_kv_head"),
    ("decode_attention", [("lengths_ptr + batch * stride_l", "lengths_ptr")], "wrong_answer", "length_of_first_sequence"),
    ("decode_attention", [("tl.where(l == 0.0, 1.0, l)", "l")], "wrong_answer", "minus_inf_minus_minus_inf"),
    ("attention_backward", [(" - delta[:, None]", ""), (" - delta[None, :]", "")], "wrong_answer", "missing_delta"),
    ("attention_backward", [("dk * scale", "dk")], "wrong_answer", "missing_scale"),
    ("attention_backward", [BACKWARD_64, (P_MASK, "")], "wrong_answer", "padded_keys_overflow"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("exercise", "changes", "status", "cause"), MUTANTS, ids=[f"{m[0]}-{m[3] or m[2]}" for m in MUTANTS]
)
def test_a_changed_solution_gets_its_own_verdict(submit, exercise, changes, status, cause):
    verdict = submit(exercise, *changes)
    assert verdict["status"] == status, verdict["diagnosis"]
    assert (verdict["diagnosis"] or {}).get("cause") == cause, verdict["diagnosis"]
