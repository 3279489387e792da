"""Causes that belong to no single exercise: the concept each is about, the course item that teaches it, a line."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Diagnosis:
    cause: str
    message: str
    concept: str | None = None
    see: str | None = None
    line: int | None = None


# cause: concept and course item
GENERAL: dict[str, tuple[str, str]] = {
    "missing_store_mask": ("masking", "m02.bug.mask"),
    "missing_load_mask": ("masking", "m02.bug.mask"),
    "out_of_range_store": ("masking", "m02.lesson.mask"),
    "out_of_range_load": ("masking", "m02.lesson.mask"),
    "load_without_other": ("masking", "m03.lesson.fill"),
    "unwritten_region": ("launch", "m02.lesson.launch"),
    "nothing_written": ("launch", "m02.lesson.skeleton"),
    "row_of_nan": ("numerics", "m04.lesson.softmax"),
    "some_nan": ("numerics", "m04.lesson.softmax"),
    "last_tile_only": ("masking", "m02.lesson.mask"),
    "strided_inputs_only": ("strides", "m03.lesson.strides"),
    "assumes_contiguous": ("strides", "m03.lesson.strides"),
    "output_stored_with_input_strides": ("strides", "m03.lesson.strides"),
    "gradient_assumed_contiguous": ("strides", "m08.lesson.autograd"),
    "transposed": ("strides", "m03.lesson.tiles"),
    "shifted_by_one_tile": ("offsets", "m02.lesson.skeleton"),
    "low_precision": ("numerics", "m04.lesson.dtype"),
    "all_zero": ("launch", "m02.lesson.skeleton"),
    "scaled": ("numerics", "m07.lesson.flash"),
    "not_contiguous": ("strides", "m03.lesson.strides"),
    "wrong_on_second_call": ("state", "m05.lesson.side-effects"),
    "wrong_after_another_size": ("state", "m05.lesson.side-effects"),
    "wrong_after_another_dtype": ("state", "m05.lesson.side-effects"),
    "wrong_configuration": ("autotuning", "m05.lesson.autotune"),
    "not_autotuned": ("autotuning", "m05.lesson.autotune"),
    "ignores_current_stream": ("launch", "m02.lesson.launch"),
    "wrong_device_current": ("launch", "m02.lesson.launch"),  # beside a pass
    "computed_by_torch": ("launch", "m02.lesson.launch"),
    "wrong_shape": ("launch", "m02.lesson.skeleton"),
    "wrong_count": ("launch", "m02.lesson.skeleton"),
    "no_tensor": ("launch", "m02.lesson.skeleton"),
    "wrong_device": ("launch", "m02.lesson.launch"),
    "differs_between_runs": ("concurrency", "m05.lesson.side-effects"),
    "race_between_programs": ("concurrency", "m05.lesson.side-effects"),
    "missing_barrier": ("concurrency", "m08.lesson.debug"),
    "depends_on_program_order": ("concurrency", "m05.lesson.side-effects"),
    "wrong_for_one_input_alone": ("autograd", "m08.quiz.none"),
    "wrong_on_second_backward": ("autograd", "m08.lesson.autograd"),
    "compiler_rejects": ("constexpr", "m08.lesson.debug"),
    "out_of_resources": ("performance", "m05.lesson.warps-stages"),
    "stale_name_in_loop": ("compiler", "m08.lesson.debug"),  # the interpreter does not show it
    "kernel_does_not_matter": ("launch", "m02.lesson.launch"),
    "kernels_alone_are_wrong": ("launch", "m02.lesson.launch"),
    "input_mutated": ("memory", "m05.lesson.side-effects"),
    "wrong_dtype": ("dtype", "m04.lesson.dtype"),
    # compile errors, by reasons.py
    "plain_global": ("constexpr", "m02.lesson.constexpr"),
    "not_a_power_of_two": ("tiles", "m01.quiz.arange"),
    "empty_tile": ("launch", "m05.quiz.empty"),
    "arange_of_runtime_value": ("constexpr", "m02.lesson.constexpr"),
    "tile_too_large": ("tiles", "m04.lesson.long-rows"),
    "no_such_axis": ("grid", "m01.lesson.grid"),
    "loop_changes_type": ("dtype", "m04.lesson.dtype"),
    "branch_changes_type": ("dtype", "m04.lesson.dtype"),
    "mask_wider_than_pointer": ("pointers", "m01.lesson.model"),
    "unsupported_syntax": ("compiler", "m08.lesson.debug"),
    "branch_on_tensor": ("compiler", "m03.lesson.numpy"),
    "python_function_of_a_tensor": ("compiler", "m08.lesson.debug"),
    "undefined_name": ("compiler", "m08.lesson.debug"),
    "defined_in_one_branch": ("compiler", "m08.lesson.debug"),
    "warps_not_a_power_of_two": ("performance", "m05.lesson.warps-stages"),
    "accumulator_type": ("dtype", "m06.quiz.fp32acc"),
    "dot_too_small": ("tiles", "m06.quiz.dot-size"),
    "dot_operand_types": ("dtype", "m07.quiz.dot-dtype"),
    "shapes_do_not_broadcast": ("broadcasting", "m03.lesson.tiles"),
    "wrong_dtype_for_function": ("dtype", "m04.lesson.dtype"),
    "kernel_without_source": ("compiler", "m08.lesson.debug"),
    # launches and autograd
    "grid_not_a_tuple": ("launch", "m02.quiz.grid-callable"),
    "tuned_argument_passed": ("autotuning", "m05.quiz.naming"),
    "tensor_on_the_cpu": ("launch", "m02.lesson.launch"),
    "device_hard_coded": ("launch", "m02.lesson.launch"),
    "device_guard_on_the_cpu": ("launch", "m02.lesson.launch"),
    "no_gradient": ("autograd", "m08.lesson.autograd"),
    "wrong_number_of_gradients": ("autograd", "m08.quiz.none"),
    "gradient_for_wrong_input": ("autograd", "m08.quiz.none"),
    "wrap_triton_forgotten": ("operators", "m08.lesson.operator"),
    "opcheck_schema": ("operators", "m08.lesson.operator"),
    "opcheck_autograd_registration": ("operators", "m08.lesson.operator"),
    "opcheck_faketensor": ("operators", "m08.lesson.operator"),
    "opcheck_aot_dispatch_dynamic": ("operators", "m08.lesson.operator"),
}

# right in a process that did nothing before, wrong in this one: other cases say nothing about the mistake
OF_STATE = {
    "wrong_on_second_call",
    "wrong_after_another_size",
    "wrong_after_another_dtype",
    "ignores_current_stream",
    "wrong_for_one_input_alone",
    "wrong_on_second_backward",
}

# where to look when the failure itself names no line of the file
LINES: dict[str, str] = {
    "no_gradient": r"\bdef backward\(",
    "wrong_number_of_gradients": r"\bdef backward\([\s\S]*?\breturn\b",
    "gradient_for_wrong_input": r"\bdef backward\([\s\S]*?\breturn\b",
    "not_contiguous": r"\bempty_like\(",
    "wrap_triton_forgotten": r"\b\w+\[[^\n]*\]\(",
    "wrong_device_current": r"\b\w+\[[^\n]*\]\(",
    "output_stored_with_input_strides": r"\bout_\w+\s*\+.*\bstride_x",
}


def general(cause: str, message: str, line: int | None = None) -> Diagnosis:
    concept, see = GENERAL.get(cause, (None, None))
    return Diagnosis(cause, message, concept, see, line)
