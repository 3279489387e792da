"""What the interpreter adds to a grade on a GPU, without one: the grade is said to be on CUDA, its cases to have passed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from grader import beside, checks, diagnose, evidence, program_order, stand_in_cuda
from grader.case_runner import Outcome
from grader.catalog import find
from grader.compare import compare
from grader.expectation import draw
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.kernels_alone import check as kernels_alone
from grader.verdict import Verdict
from grader.verified import verify
from grader.warm import Warm
from tests.grader.mistakes import KnownMistake, all_mistakes

DEVICE = {
    "name": "NVIDIA H200",
    "major": 9,
    "minor": 0,
    "multi_processor_count": 132,
    "total_memory": 1 << 37,
    "shared_memory_per_block_optin": 232448,
}
SECONDS = (
    (beside, "BOUNDS_SECONDS"),
    (beside, "BOUNDS_CALL_LIMIT"),
    (evidence, "BUDGET"),
    (program_order, "SECONDS"),
)
KNOWN = {mistake.id: mistake for mistake in all_mistakes()}
Make = Callable[..., Grade]


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    warm = Warm("interpreter")
    yield Judge({"interpreter": warm}, "no GPU")
    warm.close()


@pytest.fixture
def on_cuda(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> Make:
    """A grade that says it is on CUDA, with every case passed."""
    monkeypatch.setattr(stand_in_cuda, "properties", lambda: DEVICE)
    for module, name in SECONDS:  # of looks that are left out when they take long, as on a busy machine they may
        monkeypatch.setattr(module, name, 60.0)

    def make(slug: str, *changes: tuple[str, str], known: str = "") -> Grade:
        files = find(slug)
        source = files.solution.read_text()
        for old, new in changes:
            assert old in source, f"{old!r} is not in the solution any more"
            source = source.replace(old, new)
        if known:
            source = KNOWN[f"{slug}-{known}"].text(source)
        problem = judge.problem(files)
        verdict = Verdict(slug, problem.title, f"{slug}.py", "", 0, "cuda", "no GPU", {}, status="passed")
        verdict.cases = [{"name": case.name, "status": "passed"} for case in problem.cases]
        submission = Submission(files, f"{slug}.py", source.encode())
        return Grade(submission, problem, Options(), "cuda", print, bool, verdict, judge.drawings)

    return make


def told(grade: Grade) -> tuple[str, Any, str]:
    """Status, cause, and the line that is named."""
    diagnose.finish(grade)
    found = grade.verdict.diagnosis or {}
    lines = grade.submission.source.decode().splitlines()
    return grade.verdict.status, found.get("cause"), lines[found["line"] - 1] if found.get("line") else ""


@pytest.mark.parametrize(
    ("slug", "known"),
    [
        ("block_copy_2d", "row-and-column-strides-exchanged-in-the-load"),
        ("row_scale", "row-and-column-strides-exchanged"),
        ("row_max", "row-and-column-strides-exchanged"),
        ("row_max", "masked-off-lanes-without-other"),
        ("row_sum", "masked-off-lanes-without-other"),
        ("program_ids", "stored,-then-loaded-by-other-lanes"),
        ("accumulate_rows", "load,-add,-store-in-place-of-atomic_add"),
        ("accumulate_rows", "the-first-program-clears-what-all-add-to"),
    ],
)
def test_a_mistake_that_passes_on_the_gpu_gets_the_name_that_the_interpreter_gives_it(judge, on_cuda, slug, known):
    mistake: KnownMistake = KNOWN[f"{slug}-{known}"]
    grade = on_cuda(slug, known=known)
    beside.bounds(judge, grade)
    status, cause, line = told(grade)
    assert status == mistake.status and cause in mistake.causes and (mistake.line or "") in line


def failed(grade: Grade, status: str = "wrong_answer", case: int = -1, **how: Any) -> None:
    """As if the GPU's run of this case had failed, with an output of ones."""
    chosen = grade.problem.cases[case]
    values = grade.values(chosen)
    out = torch.ones_like(values.expected[0].native)
    outcome = Outcome(status, "seen on the GPU", compare(out, values.expected[0]), 0, (out,), **how)
    grade.verdict.first_failure(chosen, values, outcome)


def test_a_wrong_answer_is_explained_by_undefined_lanes_or_by_a_race_that_the_interpreter_saw(judge, on_cuda):
    lanes = on_cuda("row_max", known="masked-off-lanes-without-other")
    failed(lanes)
    beside.bounds(judge, lanes)
    status, cause, line = told(lanes)
    assert (status, cause) == ("wrong_answer", "load_without_other") and "tl.load(" in line

    race = on_cuda("accumulate_rows", known="load,-add,-store-in-place-of-atomic_add")
    failed(race)
    beside.bounds(judge, race)
    assert told(race)[:2] == ("nondeterministic", "race_between_programs")
    assert any("seen on the GPU" in note for note in race.verdict.notes)


def test_lanes_that_hold_0_on_the_gpu_are_not_taken_for_another_s_work(judge, on_cuda):
    """The kernels by themselves are wrong in the interpreter, which fills those lanes with NaN."""
    grade = on_cuda("row_sum", known="masked-off-lanes-without-other")
    kernels_alone.check(judge, grade)
    assert told(grade)[:2] == ("wrong_answer", "load_without_other")

    blamed = on_cuda("row_sum", known="masked-off-lanes-without-other")
    blamed.verdict.fail("not_triton", "something else computes it", kernels_alone.CAUSE)
    beside.bounds(judge, blamed)
    assert told(blamed)[:2] == ("wrong_answer", "load_without_other")


ALLOCATION = "torch.empty_like(x)"
WAYS = {
    "by text": 'torch.empty_like(x, device="cuda")',
    "by number": "torch.zeros(x.numel(), dtype=x.dtype, device=torch.device('cuda', torch.cuda.current_device()))",
    "moved there": "torch.empty(x.numel(), dtype=x.dtype).cuda().to('cuda')",
    "asserted": "torch.empty_like(x) if x.is_cuda and x.device == DEVICE and x.device.type == 'cuda' else None",
    "as advised": "fresh(x)",
}
HELPERS = """
import triton

DEVICE = triton.runtime.driver.active.get_active_torch_device()
SIZE = torch.cuda.get_device_properties(DEVICE).multi_processor_count
assert triton.runtime.driver.active.utils.get_device_properties(0)["multiprocessor_count"] == SIZE
START = torch.ones(4, device="cuda")


def fresh(x):
    assert torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    with torch.cuda.device(x.device):
        out = torch.empty(x.shape, device=x.device, dtype=x.dtype)
    torch.cuda.synchronize()
    assert out.device == x.device
    return out

"""


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_file_that_insists_on_the_gpu_is_right_there(judge, on_cuda, way):
    grade = on_cuda("program_ids", (ALLOCATION, way), ("import triton\n", HELPERS))
    kernels_alone.check(judge, grade)
    assert grade.verdict.status == "passed", grade.verdict.diagnosis
    assert kernels_alone.BY_NAME in grade.verdict.notes


def test_its_kernel_s_mistakes_are_seen_all_the_same(judge, on_cuda):
    grade = on_cuda("program_ids", (ALLOCATION, WAYS["by text"]), ("x + pid, mask=mask)", "x + pid)"))
    beside.bounds(judge, grade)
    assert told(grade)[:2] == ("out_of_bounds", "missing_store_mask")


@pytest.mark.parametrize(
    ("slug", "changes"),
    [
        ("square_autograd", [("torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype, device='cuda')")]),
        ("silu_op", [("torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype, device='cuda')")]),
        (
            "silu_op",  # registered for CUDA alone, the kernels launched as in any function
            [
                ("from torch.library import triton_op, wrap_triton", "from torch.library import custom_op"),
                ("mutates_args=())", "mutates_args=(), device_types='cuda')"),
                ("@triton_op", "@custom_op"),
                ("wrap_triton(silu_kernel)[", "silu_kernel["),
                ("wrap_triton(silu_backward_kernel)[", "silu_backward_kernel["),
                ("torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype, device='cuda')"),
            ],
        ),
        ("compiled_add", [("torch.empty_like(y)", "torch.empty(y.shape, dtype=y.dtype, device='cuda')")]),
    ],
    ids=["gradient", "operator", "operator for CUDA", "compiled"],
)
def test_where_a_call_cannot_be_replayed_the_gpu_may_be_named_as_well(judge, on_cuda, slug, changes):
    grade = on_cuda(slug, *changes)
    kernels_alone.check(judge, grade)
    assert grade.verdict.status == "passed", grade.verdict.diagnosis
    assert kernels_alone.BY_NAME in grade.verdict.notes


def test_what_pytorch_computes_there_is_no_kernel_s_work(judge, on_cuda, monkeypatch):
    """Naming the GPU is no way around the look at the kernels: neither here nor in a replay."""
    monkeypatch.setattr(verify, "record_cases", refuses(verify.Fails(Outcome("not_triton", "by PyTorch"))))
    body = "    if x.numel():\n        add_kernel[grid](x + y, torch.zeros(n, device='cuda'), out, n, BLOCK=1024)\n"
    grade = on_cuda("vector_add", ("    add_kernel[grid](x, y, out, n, BLOCK=1024)\n", body))
    kernels_alone.check(judge, grade)
    status, _, _ = told(grade)
    assert status == "not_triton" and "aten.add" in grade.verdict.diagnosis["message"]


def refuses(error: Exception) -> Callable[..., Any]:
    def raised(*_: Any) -> Any:
        raise error

    return raised


def only_on_the_gpu(on_cuda: Make) -> Grade:
    """A file that fails wherever the interpreter calls it, whatever stands in for the GPU."""
    line = f"    out = {ALLOCATION}"
    return on_cuda("program_ids", (line, "    assert torch.version.cuda == 'never'\n" + line))


def test_what_the_interpreter_cannot_call_is_judged_by_a_replay(judge, on_cuda, monkeypatch):
    monkeypatch.setattr(verify, "record_cases", lambda judge, grade: [])
    monkeypatch.setattr(verify, "replay_cases", lambda judge, grade, records: verify.Replayed(7, 1, None))
    right = only_on_the_gpu(on_cuda)
    kernels_alone.check(judge, right)
    assert right.verdict.status == "passed" and not right.verdict.verified
    assert any("checked by a replay of 7 launches" in note for note in right.verdict.notes)

    case = right.problem.cases[3]
    bad = Outcome("not_written", "in the replay: nothing", cause="nothing_written")
    failure = (case, draw(right.problem, case, 5), bad)
    monkeypatch.setattr(verify, "replay_cases", lambda judge, grade, records: verify.Replayed(0, 1, failure))
    wrong = only_on_the_gpu(on_cuda)
    kernels_alone.check(judge, wrong)
    assert wrong.verdict.status == "not_written"


def test_what_can_be_checked_in_neither_way_does_not_pass(judge, on_cuda, monkeypatch):
    monkeypatch.setattr(verify, "record_cases", refuses(verify.Unrecordable("a descriptor of the host's")))
    grade = only_on_the_gpu(on_cuda)
    kernels_alone.check(judge, grade)
    status, cause, _ = told(grade)
    assert (status, cause) == ("not_triton", "kernels_alone_are_wrong")
    message = grade.verdict.diagnosis["message"]
    assert "a descriptor of the host's" in message and "device=x.device" in message


def test_a_replay_may_clear_what_the_interpreter_cannot_compute(judge, on_cuda, monkeypatch):
    """Inline assembly, say: the record is made, and carrying it out fails in the interpreter alone."""
    kernel = "tl.store(out_ptr + offs, x + pid, mask=mask)"
    assembly = "tl.inline_asm_elementwise('mov.b32 $0, $1;', '=r,r', [x + pid], tl.int32, True, 1)"
    for replayed, status in ((verify.Replayed(1, 1, None), "passed"), (None, "not_triton")):
        monkeypatch.setattr(verify, "record_cases", lambda judge, grade: [])
        failing = refuses(verify.Fails(Outcome("not_triton", "by PyTorch")))
        monkeypatch.setattr(verify, "replay_cases", failing if replayed is None else lambda *_, r=replayed: r)
        monkeypatch.setattr(kernels_alone, "alone", lambda *_: "passed")
        grade = on_cuda("program_ids", (kernel, kernel.replace("x + pid", assembly)))
        kernels_alone.check(judge, grade)
        assert grade.verdict.status == status, grade.verdict.diagnosis


# -- a GPU run itself -------------------------------------------------------------------------------------------------


class Arena:
    """As the judge's buffers on CUDA, and nothing that a process could open."""

    def __init__(self, *_: Any) -> None:
        self.shared, self.device, self.size = None, "cuda", 64

    def handle(self) -> dict[str, Any]:
        return {"op": "memory", "handle": [], "start": 0, "size": 64}

    def close(self) -> None:
        pass


def test_a_runner_that_dies_before_it_comes_to_the_file_is_no_fault_of_the_file_s(judge, on_cuda, monkeypatch):
    monkeypatch.setattr("grader.judge.Buffers", Arena)
    monkeypatch.setitem(judge.warm, "cuda", judge.warm["interpreter"])
    monkeypatch.setattr(Grade, "values", lambda *_: None)
    grade = on_cuda("vector_add")
    judge._run_cases(grade)
    verdict = grade.verdict
    assert verdict.status == "infrastructure_error" and "did not get ready" in verdict.notes[-1]
    assert verdict.output is not None and "Traceback" in verdict.output["text"]


@pytest.mark.parametrize(
    "said", ["Cannot access data pointer of Tensor", "CUDA error: an illegal memory access was encountered"]
)
def test_a_launch_on_tensors_without_memory_is_a_forgotten_wrap_triton(on_cuda, said):
    """PyTorch's text as opcheck gives it for a bare launch inside a triton_op: torch 2.13, and 2.11 on a GPU."""

    class Checked:
        def opcheck(self, values: Any) -> dict[str, str | None]:
            text = f"opcheck(op, ...): test_aot_dispatch_dynamic failed with {said}"
            return {"test_schema": None, "test_aot_dispatch_dynamic": text}

    grade = on_cuda("silu_op", ("wrap_triton(silu_kernel)[", "silu_kernel["))
    checks.opcheck(grade, Checked(), None)  # type: ignore[arg-type]
    status, cause, line = told(grade)
    assert (status, cause) == ("wrong_answer", "wrap_triton_forgotten") and "silu_kernel[" in line


def test_whether_the_kernels_alone_have_nothing_to_say_can_be_asked_ahead_of_the_verdict(judge, on_cuda):
    """For a solution nothing; for what `check` refuses or notes it cannot be said, and the verdict stays as it is."""
    right = on_cuda("vector_add")
    before = replace(right.verdict)
    assert kernels_alone.clean(judge, right, threading.Event()) and right.verdict == before
    cheat = on_cuda("vector_add", ("    return out\n", "    return x + y\n"))
    by_name = on_cuda("vector_add", ("torch.empty_like(x)", 'torch.empty_like(x, device="cuda")'))
    assert not kernels_alone.clean(judge, cheat, threading.Event()) and cheat.verdict.status == "passed"
    assert not kernels_alone.clean(judge, by_name, threading.Event()) and not by_name.verdict.notes
