"""What one call of a learner's function becomes: steps, pointers, values; or a refusal that says why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from grader import triton_launches
from grader.case_runner import Buffers, CaseRunner, Outcome
from grader.catalog import exercises, find
from grader.grade import load_problem
from grader.verified import processes, verify
from grader.verified.record import Copy, Fill, Launch, Scratch
from tests.grader.verified.submissions import LAUNCH_MANY, MANY, PLAIN, recorded

FORWARD = [files.slug for files in exercises() if load_problem(files).call == "forward"]


@pytest.mark.parametrize("slug", FORWARD)
def test_a_recorded_kernel_compiles_to_the_same_code(judge, grade, slug, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    under_way = grade(slug)
    case = max(under_way.problem.cases, key=lambda case: under_way.values(case).size if case.offline else -1)
    values = under_way.values(case)
    with judge.runner(under_way, "offline", [values], record=True) as runner:
        record = verify.recorded(runner, values)
        rows = runner.process.ask({"op": "compiled"}, 30)["kernels"]
        originals = [((runner.process.scratch / row["assembly"]).read_text(), row["shared_bytes"]) for row in rows]
    assert record.launches >= 1 and record.kernels
    for number, kernel in enumerate(record.kernels):
        path = tmp_path / f"{number}.ttir"
        path.write_text(kernel.ttir)
        compiled = triton_launches.compile_ttir(path, kernel.options, "sm_90")
        assert (compiled.asm["ptx"], compiled.metadata.shared) in originals
        assert len(triton_launches.parameters_of(compiled)) == len(
            next(s for s in record.steps if isinstance(s, Launch) and s.kernel == number).arguments
        )


def kinds(record: Any) -> list[str]:
    return [type(step).__name__ for step in record.steps]


@pytest.mark.parametrize(
    ("body", "steps"),
    [
        (PLAIN, ["Launch"]),
        ("return run(x, y, torch.zeros_like(x))", ["Fill", "Launch"]),
        ("return run(x, y, torch.full((1000,), 2.5))", ["Fill", "Launch"]),
        ("out = x.new_empty(1000)\nout[:] = 0\nout.zero_()\nreturn run(x, y, out)", ["Fill", "Fill", "Launch"]),
        ("return run(x.clone(), y, torch.empty_like(x))", ["Copy", "Launch"]),
        ("return run(x, y, torch.empty_like(x)).to(torch.float16)", ["Launch", "Copy"]),
        ("return run(x.view(10, 100).t().reshape(-1), y, torch.empty_like(x))", ["Copy", "Launch"]),
        ("out = torch.empty(2, 1000)\nrun(x, y, out[1])\nreturn out.view(-1)[1000:]", ["Launch"]),
        ("out = torch.empty_like(x)\nout.copy_(x)\nreturn run(x, y, out)", ["Copy", "Launch"]),
        ("assert x.max().item() < 1e9\nreturn run(x, y, torch.empty_like(x))", ["Launch"]),  # used by nothing
    ],
)
def test_launches_fills_and_copies_are_recorded_in_order(judge, grade, body, steps):
    assert kinds(recorded(judge, grade, body)) == steps


def test_a_pointer_is_a_buffer_and_an_offset(judge, grade):
    record = recorded(judge, grade, "out = torch.empty(2, 1000)\nrun(x, y, out[1])\nreturn out[1]")
    pointers = [(a.buffer, a.offset) for a in record.steps[0].arguments[:3]]
    assert pointers == [(0, 0), (1, 0), (2, 4000)]
    assert record.buffers[2] == Scratch(8000, "float32")
    assert (record.outputs[0].buffer, record.outputs[0].offset) == (2, 4000)


def test_what_a_step_says_of_its_memory_and_value(judge, grade):
    record = recorded(
        judge, grade, "out = torch.full((4, 250), -1.5)\nout.t().copy_(x.view(250, 4))\nreturn out.view(-1)"
    )
    fill, copy = record.steps
    assert isinstance(fill, Fill) and fill.value.number() == -1.5
    assert isinstance(copy, Copy) and copy.to.stride == (1, 250) and copy.source.stride == (4, 1)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return x + y", "aten.add.Tensor"),
        ("return run(x * 2, y, torch.empty_like(x))", "aten.mul.Tensor"),
        ("out = run(x, y, torch.empty_like(x))\nout.mul_(2)\nreturn out", "aten.mul_.Tensor"),
        ("out = torch.empty_like(x)\ntorch.add(x, y, out=out)\nreturn run(x, y, out)", "aten.add.out"),
        ("return torch.empty_like(x).copy_(x + y)", "aten.add.Tensor"),
        ("out = run(x, y, torch.empty_like(x))\nreturn torch.cat([out[:500], out[500:]])", "aten.cat"),
        ("out = torch.empty_like(x)\nout.fill_(x.sum())\nreturn run(x, y, out)", "aten.sum"),
    ],
)
def test_what_pytorch_computes_is_refused_by_name(judge, grade, body, why):
    with pytest.raises(verify.Fails) as caught:
        recorded(judge, grade, body)
    assert caught.value.outcome.status == "not_triton" and why in str(caught.value)


@pytest.mark.parametrize(
    ("body", "kernel", "why"),
    [
        ("return run(x, y, TABLE)", "TABLE = torch.zeros(1000)\n", "neither an argument nor made in this call"),
        ("return run(x, y, torch.tensor([0.0] * 1000))", "", "neither an argument nor made in this call"),
        (
            "from triton.tools.tensor_descriptor import TensorDescriptor\n"
            "desc_kernel[(1,)](TensorDescriptor.from_tensor(x, [64]), y)\nreturn y",
            "@triton.jit\ndef desc_kernel(desc, out_ptr):\n    tl.store(out_ptr + tl.arange(0, 64), desc.load([0]))\n",
            "TensorDescriptor",
        ),
    ],
)
def test_what_no_record_can_hold_is_graded_unverified(judge, grade, body, kernel, why):
    with pytest.raises(verify.Unrecordable, match=why):
        recorded(judge, grade, body, kernel)


def test_what_an_autotuner_tries_is_not_recorded(judge, grade):
    under_way = grade("accumulate_rows")
    records = {case.name: record for case, record in verify.record_cases(judge, under_way)}
    assert max(record.launches for record in records.values()) == 1
    # zeros; cleared once more by the call that tuned; the launch
    assert kinds(records[under_way.problem.cases[0].name]) == ["Fill", "Fill", "Launch"]


def test_values_of_arguments_and_options_come_along(judge, grade):
    record = recorded(judge, grade, LAUNCH_MANY, MANY)
    launch = record.steps[0]
    assert launch.grid == (3, 2, 1) and record.kernels[0].options["num_warps"] == 8
    assert [(a.type, a.number()) for a in launch.arguments[2:]] == [
        ("i32", -7), ("fp32", 1e-5), ("u1", 1), ("i64", 2**31 + 5), ("i32", 3), ("fp32", float("-inf")),
        ("i32", 6),
    ]  # fmt: skip


class Ahead:
    """In place of processes that need a GPU: what a recording uses of them."""

    timed = True
    large: Any = None
    runner: Any = None


def small_timing(under_way: Any) -> Any:
    problem = under_way.problem
    case = next(case for case in problem.cases if case.name == "n=1000 float32")
    timing = type(problem.timing)("n=1000", lambda draw: case.make(draw))
    return replace(under_way, problem=replace(problem, timing=timing))


def test_the_call_that_is_timed_is_recorded_behind_the_cases(judge, grade):
    under_way, ahead = small_timing(grade("vector_add")), Ahead()
    records = verify.record_cases(judge, under_way, ahead)
    assert [case for case, _ in records] == list(under_way.problem.cases)
    assert kinds(ahead.large) == ["Launch"] and ahead.large == {c.name: r for c, r in records}["n=1000 float32"]


def test_a_timed_call_that_fails_leaves_the_records_of_the_cases(judge, grade):
    source = find("vector_add").solution.read_text()
    changed = source.replace("    out = torch.empty_like(x)\n", "    CALLS.append(1)\n    out = torch.empty_like(x)\n")
    cases = len(grade("vector_add").problem.cases)
    late = f"    return out if len(CALLS) <= {cases} else out * 1\n"
    changed = changed.replace("    return out\n", late) + "\nCALLS = []\n"
    under_way, ahead = small_timing(grade("vector_add", changed)), Ahead()
    assert len(verify.record_cases(judge, under_way, ahead)) == cases
    assert isinstance(ahead.large, verify.Fails) and ahead.large.outcome.status == "not_triton"


def test_what_does_not_fit_beside_the_cases_costs_the_timing_alone(judge, grade, monkeypatch):
    def too_large(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(verify, "large_values", too_large)
    under_way, ahead = grade("vector_add"), Ahead()
    assert len(verify.record_cases(judge, under_way, ahead)) == len(under_way.problem.cases)
    assert isinstance(ahead.large, torch.OutOfMemoryError)


@pytest.fixture
def passed(judge):
    """Ahead of a recording: a runner in which every case has been called."""
    open_ones: list[processes.Ahead] = []

    def make(under_way: Any) -> processes.Ahead:
        cases = [under_way.values(case) for case in under_way.problem.cases]
        buffers = Buffers("cpu", cases)
        process = judge.start(under_way, "offline", buffers)
        for values in cases:
            CaseRunner(under_way.problem, process, buffers, 60).run(values, noop=True)
        ahead = processes.Ahead(judge, under_way, timed=False)
        ahead.runner = (process, buffers)
        open_ones.append(ahead)
        return ahead

    yield make
    for ahead in open_ones:
        ahead.end_runner()


def test_the_runner_of_the_cases_gives_the_records_that_a_process_of_their_own_gives(judge, grade, passed, monkeypatch):
    under_way = grade("softmax")
    fresh = verify.record_cases(judge, under_way)
    ahead = passed(under_way)
    process = ahead.runner[0]
    monkeypatch.setattr(judge, "runner", None)  # no other process
    records = verify.record_cases(judge, under_way, ahead)
    assert ahead.runner_used and ahead.runner is None and process.ended
    assert [(r.steps, r.buffers, r.outputs) for _, r in records] == [(r.steps, r.buffers, r.outputs) for _, r in fresh]
    assert not judge.warm["offline"].runners


def test_memory_kept_from_judged_calls_is_recorded_in_a_process_of_its_own(judge, grade, passed):
    source = find("vector_add").solution.read_text()
    kept = "    out = KEPT.setdefault((x.shape, x.dtype, x.stride()), torch.empty_like(x))\n"
    changed = source.replace("    out = torch.empty_like(x)\n", kept) + "\nKEPT = {}\n"
    under_way = grade("vector_add", changed)
    ahead = passed(under_way)
    records = verify.record_cases(judge, under_way, ahead)
    assert not ahead.runner_used and len(records) == len(under_way.problem.cases)
    assert not judge.warm["offline"].runners


CAUGHT_EARLY = (  # launches by a method that was taken before anything could be hooked behind the calls
    ("\n\ndef add(", "\n\nRUN = add_kernel.run\n\n\ndef add("),
    (
        "    add_kernel[grid](x, y, out, n, BLOCK=1024)\n",
        "    RUN(x, y, out, n, grid=grid, warmup=False, BLOCK=1024)\n",
    ),
)


@pytest.mark.parametrize(("changes", "again"), [(CAUGHT_EARLY, True), ((), False)])
def test_a_record_that_fails_is_replayed_once_more_only_if_another_process_makes_another(
    judge, grade, passed, monkeypatch, changes, again
):
    source = find("vector_add").solution.read_text()
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    under_way = grade("vector_add", source)
    ahead = passed(under_way)
    case = under_way.problem.cases[0]
    failure = (case, under_way.values(case), Outcome("nondeterministic"))
    replayed = iter([verify.Replayed(1, 1, failure), verify.Replayed(8, 2, None)])
    asked: list[Any] = []

    def replay(judge: Any, grade: Any, records: Any, ahead: Any = None) -> verify.Replayed:
        asked.append((len(records), ahead))
        return next(replayed)

    monkeypatch.setattr(verify, "replay_cases", replay)
    verify.verify(judge, under_way, ahead)
    count = len(under_way.problem.cases)
    assert asked == [(count, ahead), (count, None)][: 1 + again] and ahead.usable is not again
    assert (under_way.verdict.status, under_way.verdict.verified) == ("passed" if again else "nondeterministic", True)
