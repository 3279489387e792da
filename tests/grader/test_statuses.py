"""One submission for each way to fail; each must get its own status, cause and line."""

from __future__ import annotations

import pytest

STORE = "tl.store(out_ptr + offs, x + y, mask=mask)"
LOAD_X = "x = tl.load(x_ptr + offs, mask=mask)"
ENTRY = "def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:\n"


def test_the_solution_passes_with_every_section_filled(submit):
    verdict = submit("vector_add")
    assert verdict["status"] == "passed"
    assert verdict["schema"] == 1 and verdict["backend"] == "interpreter"
    assert {c["status"] for c in verdict["cases"]} == {"passed", "skipped"}
    assert verdict["traffic"]["ratio"] == 1.0
    assert verdict["compile"][0]["target"] == "sm_90" and verdict["compile"][0]["registers"] > 0
    assert verdict["timing"] is None and any("needs a GPU" in note for note in verdict["notes"])
    assert len(verdict["sha256"]) == 64


def test_a_store_without_mask_is_out_of_bounds_with_program_index_and_line(submit):
    verdict = submit("vector_add", (STORE, "tl.store(out_ptr + offs, x + y)"))
    assert verdict["status"] == "out_of_bounds"
    assert verdict["diagnosis"]["cause"] == "missing_store_mask"
    assert "out_ptr" in verdict["diagnosis"]["message"]
    first = verdict["cases"][0]
    assert first["first_bad_index"] == [1] and first["program_id"] == [0, 0, 0]
    line = verdict["diagnosis"]["line"]
    assert line is not None and line > 5


def test_a_load_without_mask_is_out_of_bounds(submit):
    verdict = submit("vector_add", (LOAD_X, "x = tl.load(x_ptr + offs)"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("out_of_bounds", "missing_load_mask")


def test_a_mask_that_lets_one_lane_too_many_through_is_found(submit):
    verdict = submit("vector_add", ("mask = offs < n", "mask = offs <= n"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("out_of_bounds", "out_of_range_load")


def test_an_overrun_into_another_argument_is_found(submit):
    """Far past x's end, beyond any guard band: only the pointer's origin tells."""
    verdict = submit("vector_add", (LOAD_X, "x = tl.load(x_ptr + offs + 40000, mask=mask)"))
    assert verdict["status"] == "out_of_bounds" and "x_ptr" in verdict["diagnosis"]["message"]


def test_elements_no_program_writes_are_not_written(submit):
    verdict = submit("vector_add", ('(triton.cdiv(n, meta["BLOCK"]),)', "(1,)"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("not_written", "first_tile_only")


def test_a_kernel_that_stores_nothing_is_not_written(submit):
    verdict = submit("vector_add", (STORE, "pass"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("not_written", "nothing_written")


def test_a_small_error_in_one_element_is_a_wrong_answer(submit):
    verdict = submit("vector_add", ("x + y, mask", "x + y + tl.where(offs == 1000, 1e-5, 0.0), mask"))
    assert verdict["status"] == "wrong_answer"
    wrong = next(c for c in verdict["cases"] if c["status"] == "wrong_answer")
    assert (
        wrong["name"].startswith("n=1023") and wrong["first_bad_index"] == [1000] and wrong["program_id"] == [0, 0, 0]
    )


def test_the_program_that_wrote_the_first_wrong_element_is_named(submit):
    verdict = submit("vector_add", ("x + y, mask", "x + y + tl.where(offs == 3100, 1.0, 0.0), mask"))
    wrong = next(c for c in verdict["cases"] if c["status"] == "wrong_answer")
    assert wrong["first_bad_index"] == [3100] and wrong["program_id"] == [3, 0, 0]


def test_the_output_of_a_known_mistake_is_named(submit):
    verdict = submit("vector_add", ("tl.load(y_ptr", "tl.load(x_ptr"))
    assert verdict["diagnosis"]["cause"] == "operand_used_twice"
    assert verdict["diagnosis"]["see"] == "m02.lesson.skeleton"


def test_pytorch_in_place_of_the_kernel_is_not_triton(submit):
    verdict = submit("vector_add", ("BLOCK=1024)\n    return out", "BLOCK=1024)\n    return x + y"))
    assert verdict["status"] == "not_triton"


def test_a_changed_input_is_input_mutated(submit):
    verdict = submit("vector_add", ("BLOCK=1024)\n    return out", "BLOCK=1024)\n    y.zero_()\n    return out"))
    assert verdict["status"] == "input_mutated" and "y" in verdict["cases"][0]["message"]


def test_a_right_answer_with_other_strides_is_refused_where_the_task_asks_for_contiguous(submit):
    verdict = submit("row_scale", ("torch.empty(x.shape, dtype=x.dtype, device=x.device)", "torch.empty_like(x)"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("wrong_shape", "not_contiguous")


def test_every_output_must_come_from_the_kernels(submit):
    for change in (
        ("launch(square_kernel, x, out)", "launch(square_kernel, x, out)\n        out = x * x"),
        ("        return grad_x  #", "        grad_x = 2 * x * grad_out\n        return grad_x  #"),
    ):
        assert submit("square_autograd", change)["status"] == "not_triton"


@pytest.mark.parametrize(
    ("result", "status", "cause"),
    [
        ("out[:-1]", "wrong_shape", "wrong_shape"),
        ("None", "wrong_shape", "no_tensor"),
        ("out.double()", "wrong_dtype", "wrong_dtype"),
    ],
)
def test_results_of_the_wrong_form(submit, result, status, cause):
    verdict = submit("vector_add", ("BLOCK=1024)\n    return out", f"BLOCK=1024)\n    return {result}"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == (status, cause)


def test_what_the_interpreter_accepts_and_the_compiler_rejects_is_a_compile_error(submit):
    verdict = submit("vector_add", (LOAD_X, LOAD_X + "\n    for i in range(3):\n        if i == 1:\n            break"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("compile_error", "unsupported_syntax")
    assert "Break" in verdict["diagnosis"]["message"] and verdict["diagnosis"]["line"]
    assert any("sm_90" in note for note in verdict["notes"])


def test_what_both_reject_is_a_compile_error_with_the_learners_line(submit):
    verdict = submit("vector_add", ("BLOCK=1024", "BLOCK=1000"))
    assert verdict["status"] == "compile_error" and "power of 2" in verdict["diagnosis"]["message"]


def test_an_exception_is_a_runtime_error_with_its_line(submit):
    verdict = submit("vector_add", (ENTRY, ENTRY + "    raise ValueError('oh no')\n"))
    assert verdict["status"] == "runtime_error" and "oh no" in verdict["diagnosis"]["message"]
    assert verdict["diagnosis"]["line"]


def test_an_endless_loop_times_out(submit):
    verdict = submit("vector_add", (ENTRY, ENTRY + "    while True:\n        pass\n"), call_limit=2)
    assert verdict["status"] == "timeout"


def test_a_segfault_ends_only_the_runner(submit):
    verdict = submit("vector_add", (ENTRY, ENTRY + "    import ctypes; ctypes.string_at(0)\n"))
    assert verdict["status"] == "crashed" and "SIGSEGV" in verdict["diagnosis"]["message"]
    assert submit("vector_add")["status"] == "passed"


def test_an_early_exit_with_success_is_a_crash(submit):
    verdict = submit("vector_add", (ENTRY, ENTRY + "    import os; os._exit(0)\n"))
    assert verdict["status"] == "crashed"


def test_a_hundred_megabytes_of_printing_are_cut(submit):
    text = "    if x.numel() == 1:\n        print('a' * 100_000_000)\n"
    verdict = submit("vector_add", (ENTRY, ENTRY + text))
    assert verdict["status"] == "passed"
    assert verdict["output"]["truncated"] and len(verdict["output"]["text"]) < 40_000


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("def add(:\n", "syntax_error"),
        ("import nowhere_to_be_found\n", None),
        ("def sub(x, y):\n    return x\n", "no_entry"),
        ("add = 3\n", "no_entry"),
        ("def add(x):\n    return x\n", "wrong_signature"),
        ("import sys\nsys.exit(0)\n", "exits"),
    ],
)
def test_files_that_cannot_be_used_are_import_errors(submit, source, cause):
    verdict = submit("vector_add", source=source)
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("import_error", cause)


def test_what_a_file_printed_before_it_ended_its_process_is_kept(submit):
    verdict = submit("vector_add", source="import os\nprint('half way', flush=True)\nos._exit(3)\n")
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("import_error", "dies_at_import")
    assert verdict["output"]["text"] == "half way\n"


def test_a_name_the_task_gives_must_stay(submit):
    verdict = submit("tile_copy", ("copy_kernel", "kernel"))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("import_error", "no_entry")
    assert "copy_kernel" in verdict["diagnosis"]["message"]


def test_state_between_calls_is_found(submit):
    verdict = submit("vector_add", ("    out = torch.empty_like(x)", "    out = CACHE.setdefault(x.numel(), torch.empty_like(x))"),
                     ("@triton.jit", "CACHE = {}\nCALLS = {}\n\n\n@triton.jit"),
                     ("    grid = lambda", "    if CALLS.setdefault(n, 0):\n        return out\n    CALLS[n] = 1\n    grid = lambda"))  # fmt: skip
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"] == "wrong_on_second_call"


def test_a_masked_off_lane_without_other_that_reaches_the_result_is_found(submit):
    for exercise, other in (("row_sum", "other=0.0"), ("row_max", 'other=-float("inf")')):  # tl.max ignores a NaN
        verdict = submit(exercise, (f", {other}", ""))
        assert verdict["status"] == "wrong_answer"
        assert verdict["diagnosis"]["cause"] == "load_without_other"


def test_what_differs_from_call_to_call_is_not_put_down_to_a_load_without_other(submit):
    verdict = submit("row_sum", ("@triton.jit", "CALLS = []\n\n\n@triton.jit"),
                     ("    )\n    return out", "    )\n    CALLS.append(1)\n    out += len(CALLS)\n    return out"))  # fmt: skip
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"] != "load_without_other"


def test_only_comments_added_to_the_stub_is_not_started(grader, tmp_path):
    from grader.catalog import find

    file = tmp_path / "vector_add.py"
    file.write_text(find("vector_add").stub.read_text() + "\n# to do\n")
    assert grader.grade("vector_add", file)["status"] == "not_started"


def test_more_shared_memory_than_the_target_has_is_noted(submit):
    verdict = submit("matmul", ("num_stages=3", "num_stages=40"))
    assert verdict["status"] == "passed"
    assert any("OutOfResources" in note and "matmul_kernel" in note for note in verdict["notes"])
