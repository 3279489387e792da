"""Exception texts of Triton and PyTorch, as their versions word them, and the cause each is."""

from __future__ import annotations

import re

import pytest

from grader.causes import GENERAL
from grader.reasons import REASONS, named
from tests.grader.mistakes.listed import ITEMS

TEXTS = [
    ('NameError("Cannot access global variable SCALE from within @jit\'ed function.")', "plain_global"),
    ("ValueError: arange's range must be a power of 2", "not_a_power_of_two"),
    ("ValueError: Shape element 0 must be a power of 2", "not_a_power_of_two"),
    ("ValueError: arange's arguments must be of type tl.constexpr", "arange_of_runtime_value"),
    ("ValueError: arange's end argument must be greater than the start argument", "empty_tile"),
    ("ValueError: numel (2097152) exceeds triton maximum tensor numel (1048576)", "tile_too_large"),
    ("Loop-carried variable acc has initial type int32 but is re-assigned to fp32 in loop!", "loop_changes_type"),
    ("ValueError: Mask argument cannot be block type if pointer argument is not a block", "mask_wider_than_pointer"),
    ("UnsupportedLanguageConstruct: unsupported AST node type: Break", "unsupported_syntax"),
    ("UnsupportedLanguageConstruct: Boolean value of Tensor with more than one value is ambiguous", "branch_on_tensor"),
    ("TypeError('must be real number, not tensor')", "python_function_of_a_tensor"),
    ("AssertionError: num_warps must be a power of 2", "warps_not_a_power_of_two"),
    ("AssertionError: Input shapes should have M >= 1, N >= 1 and K >= 16", "dot_too_small"),
    ("AssertionError: Both operands must be same dtype. Got fp32 and fp16", "dot_operand_types"),
    ("AssertionError: expected accumulator dtype fp32, got fp16; pass out_dtype=fp16", "accumulator_type"),
    (
        "ValueError: Cannot make_shape_compatible: incompatible dimensions at index 0: 32 and 64",
        "shapes_do_not_broadcast",
    ),
    ("ValueError: Expected dtype ['fp32', 'fp64'] but got fp16", "wrong_dtype_for_function"),
    ("OSError: could not get source code", "kernel_without_source"),
    ("ValueError: @jit functions should be defined in a Python file", "kernel_without_source"),
    ("ValueError: Conflicting meta-parameters: BLOCK. Make sure that", "tuned_argument_passed"),
    ("AssertionError: Torch not compiled with CUDA enabled", "device_hard_coded"),
    ("ValueError: Expected a cuda device, but got: cpu", "device_guard_on_the_cpu"),
    ("ValueError: Pointer argument (at 2) cannot be accessed from Triton (cpu tensor?)", "tensor_on_the_cpu"),  # 3.6
    ("ValueError: Pointer argument cannot be accessed from Triton (cpu tensor?)", "tensor_on_the_cpu"),
    (
        "RuntimeError: function F returned an incorrect number of gradients (expected 2, got 1)",
        "wrong_number_of_gradients",
    ),
    ("UnboundLocalError: cannot access local variable 'extra' where it is not", "defined_in_one_branch"),
    ("NameError: name 'extra' is not defined", "undefined_name"),
]


@pytest.mark.parametrize(("text", "cause"), TEXTS, ids=[cause for _, cause in TEXTS])
def test_a_text_is_named_with_advice_that_has_no_holes(text, cause):
    found = named(text, in_triton=True)
    assert found is not None and found.cause == cause
    assert found.advice and "{" not in found.advice + found.short


def test_an_int_without_a_length_is_a_grid_only_where_triton_asked():
    assert named("TypeError: object of type 'int' has no len()", in_triton=False) is None
    found = named("TypeError: object of type 'int' has no len()", in_triton=True)
    assert found is not None and found.cause == "grid_not_a_tuple"


def test_an_unknown_text_is_not_named():
    assert named("RuntimeError: the moon is full", in_triton=True) is None


def test_every_reason_has_a_concept_and_an_item_and_compiles():
    for reason in REASONS:
        re.compile(reason.pattern)
        assert reason.cause in GENERAL, reason.cause


def test_every_item_that_a_general_cause_points_to_exists():
    assert {see for _, see in GENERAL.values()} <= ITEMS
