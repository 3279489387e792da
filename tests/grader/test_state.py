"""Right every time: after other sizes, other dtypes, other values, and with inputs left as they were."""

from __future__ import annotations

import pytest

from grader.catalog import find
from grader.grade import load_problem

LAUNCH = "    add_kernel[grid](x, y, out, n, BLOCK=1024)\n"


def remember(what: str) -> tuple[tuple[str, str], ...]:
    """vector_add with something kept between calls, used in the launcher as `known`."""
    return (("def add(", "known = {}\n\n\ndef add("), (LAUNCH, what + LAUNCH))


def test_the_number_of_programs_kept_from_the_first_size_is_found(submit):
    verdict = submit("vector_add", *remember("    grid = known.setdefault('grid', (triton.cdiv(n, 1024),))\n"))
    assert verdict["status"] == "not_written"
    assert "Right in a new process" in verdict["cases"][_failed(verdict)]["message"]


def test_what_goes_wrong_only_after_a_larger_size_is_found(submit):
    source = "    known['most'] = max(n, known.get('most', 0))\n    if n == 1 < known['most']:\n        y = y + 1\n"
    verdict = submit("vector_add", *remember(source))
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"] in ("wrong_after_another_size", "wrong_after_another_dtype")


def test_what_goes_wrong_only_after_another_dtype_is_found(submit):
    source = "    known.setdefault('dtype', x.dtype)\n    if x.dtype != known['dtype']:\n        y = y + 1\n"
    verdict = submit("vector_add", *remember(source))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("wrong_answer", "wrong_after_another_dtype")
    assert "Right in a new process" in verdict["diagnosis"]["message"]


def test_what_goes_wrong_only_after_many_calls_is_found(submit):
    """Every case passes; one of the calls that come after them does not."""
    source = (
        "    known['calls'] = known.get('calls', 0) + 1\n    if known['calls'] > len(CASES) + 3:\n        y = y + 1\n"
    )
    cases = len([case for case in load_problem(find("vector_add")).cases if not case.needs_gpu])
    verdict = submit("vector_add", *remember(source.replace("len(CASES)", str(cases))))
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"].startswith("wrong_")


def test_a_thread_that_writes_after_the_call_comes_too_late(submit):
    late = """    import threading, time

    def later():
        time.sleep(1)  # long after the call, on a busy machine too
        add_kernel[grid](x, y, out, n, BLOCK=1024)

    threading.Thread(target=later, daemon=True).start()
"""
    verdict = submit("vector_add", (LAUNCH, late))
    assert verdict["status"] == "not_written"


@pytest.mark.parametrize(
    ("exercise", "change"),
    [
        ("vector_add", ("    tl.store(out_ptr + offs, x + y, mask=mask)\n",
                        "    tl.store(out_ptr + offs, x + y, mask=mask)\n    tl.store(x_ptr + offs, x + 0.5, mask=mask)\n")),
        ("vector_add", (LAUNCH, "    x.mul_(1.5)\n" + LAUNCH)),
    ],
)  # fmt: skip
def test_an_input_that_changes_is_found(submit, exercise, change):
    verdict = submit(exercise, change)
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("input_mutated", "input_mutated")


def _failed(verdict) -> int:
    return next(i for i, row in enumerate(verdict["cases"]) if row["status"] not in ("passed", "skipped"))


BACKWARD = "        x, weight, mean, rstd = ctx.saved_tensors\n"
GRADIENTS = "        return grad_x, grad_weight, grad_bias, None  # eps has no gradient\n"


def test_a_backward_may_leave_out_gradients_that_nobody_needs(submit):
    """None for an input that requires no gradient is right."""
    only = """\
        needed = ctx.needs_input_grad
        grad_x, grad_weight, grad_bias = (
            g if n else None for g, n in zip((grad_x, grad_weight, grad_bias), needed, strict=False)
        )
"""
    assert submit("layer_norm_backward", (GRADIENTS, only + GRADIENTS))["status"] == "passed"


def test_a_backward_that_asks_for_the_wrong_input_is_found(submit):
    only = "        if not ctx.needs_input_grad[0]:\n            return None, None, None, None\n"
    verdict = submit("layer_norm_backward", (GRADIENTS, only + GRADIENTS))
    assert verdict["status"] not in ("passed", "not_started")
    assert "only weight requiring a gradient" in str(verdict["diagnosis"]["message"])


def test_a_backward_that_spoils_what_it_saved_is_found(submit):
    spoiled = f"{BACKWARD}        weight = weight.data\n        rstd = rstd.data.mul_(1.5).div(1.5)\n"
    verdict = submit("layer_norm_backward", (BACKWARD, spoiled))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("wrong_answer", "wrong_on_second_backward")


def test_what_lies_between_the_elements_of_an_input_changed_in_place_must_stay(submit):
    store = next(line for line in find("scale_in_place").solution.read_text().splitlines() if "tl.store(" in line)
    beside = "    tl.store(x_ptr + offs * stride + 1, 0.0, mask=(offs < n - 1) & (stride > 1))"
    verdict = submit("scale_in_place", (store, f"{store}\n{beside}"))
    assert verdict["status"] == "input_mutated"
    assert "between its elements" in verdict["diagnosis"]["message"]


def test_what_lies_between_the_elements_of_an_input_must_stay(submit):
    """Every third column of a wider tensor: the columns between belong to somebody else."""
    launch = "    n_rows, n_cols = x.shape\n"
    gap = "    if x.stride(1) == 3:\n        x.as_strided((1,), (1,), x.storage_offset() + 1).fill_(1.0)\n"
    verdict = submit("row_max", (launch, launch + gap))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("input_mutated", "input_mutated")


def test_an_expanded_input_must_stay_as_well(submit):
    launch = "    n_rows, n_cols = x.shape\n"
    once = "    if x.numel() and 0 in x.stride():\n        x.as_strided((1,), (1,), x.storage_offset()).add_(1.0)\n"
    verdict = submit("row_sum", (launch, launch + once))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("input_mutated", "input_mutated")
