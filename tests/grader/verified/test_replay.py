"""The judge's whole path without a GPU: launches recorded from the offline compiler, replayed on known kernels."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

from grader.case_runner import Outcome
from grader.catalog import exercises, find
from grader.expectation import draw
from grader.failures import RunnerGone
from grader.grade import load_problem
from grader.verdict import Verdict
from grader.verified import measured, verify
from tests.grader.verified.replaying import HereProcess, at
from tests.grader.verified.submissions import ADD, changed

ABOUT_PYTHON = [files.slug for files in exercises() if load_problem(files).call != "forward"]


def add(grid, x_ptr, y_ptr, out_ptr, n=1) -> None:
    covered = min(n, grid[0] * 1024)
    x, y, out = (at(p, (covered,)) for p in (x_ptr, y_ptr, out_ptr))
    out.copy_(x + y)


def status_and_cause(verdict: Verdict) -> tuple[str, str | None]:
    cause = verdict.failure.outcome.cause if verdict.failure else (verdict.diagnosis or {}).get("cause")
    return verdict.status, cause


def test_a_right_replay_is_a_verified_pass(replayed):
    verdict = replayed("vector_add", {"add_kernel": add})
    assert (verdict.status, verdict.verified) == ("passed", True), verdict.notes
    assert any("replayed outside" in note for note in verdict.notes)


def test_fills_and_strides_are_replayed(replayed):
    def accumulate(grid, x_ptr, out_ptr, M=1, N=1, stride_m=1, stride_n=1):
        at(out_ptr, (N,)).add_(at(x_ptr, (M, N), (stride_m, stride_n)).float().sum(0))

    def copy(grid, x_ptr, out_ptr, n_rows=1, n_cols=1, stride_xm=1, stride_xn=1, stride_om=1, stride_on=1):
        x, out = (
            at(x_ptr, (n_rows, n_cols), (stride_xm, stride_xn)),
            at(out_ptr, (n_rows, n_cols), (stride_om, stride_on)),
        )
        out.copy_(x)

    summed = replayed("accumulate_rows", {"accumulate_kernel": accumulate})
    copied = replayed("block_copy_2d", {"block_copy_kernel": copy})
    assert [(v.status, v.verified) for v in (summed, copied)] == [("passed", True)] * 2


def test_a_kernel_that_is_wrong_on_other_values_fails_the_replay(replayed):
    def remembers(grid, x_ptr, y_ptr, out_ptr, n=1):
        at(out_ptr, (n,)).copy_(torch.linspace(0, 1, n))

    verdict = replayed("vector_add", {"add_kernel": remembers})
    assert status_and_cause(verdict)[0] == "wrong_answer" and verdict.verified
    assert verdict.cases[0]["status"] == "wrong_answer" and "in the replay" in verdict.cases[0]["message"]


def test_the_replay_draws_other_values_than_any_that_the_runner_can_work_out(replayed, judge, grade):
    seen: list[torch.Tensor] = []

    def watching(grid, x_ptr, y_ptr, out_ptr, n=1):
        seen.append(at(x_ptr, (n,)).clone())
        add(grid, x_ptr, y_ptr, out_ptr, n)

    replayed("vector_add", {"add_kernel": watching})
    problem = judge.problem(find("vector_add"))
    known = [draw(problem, case, 0, drawing).args[0] for case in problem.cases for drawing in (0, 1, 2)]
    random = [values for values in seen if values.numel() > 8 and values.unique().numel() > 8]
    assert random and not any(torch.equal(a, b) for a in random for b in known if a.shape == b.shape)


def test_poison_guards_and_inputs_are_checked_in_the_replay(replayed):
    def half(grid, x_ptr, y_ptr, out_ptr, n=1):
        add(grid, x_ptr, y_ptr, out_ptr, max(n // 2, 1))

    def too_far(grid, x_ptr, y_ptr, out_ptr, n=1):
        at(out_ptr, (n + 1,)).fill_(0)

    def into_input(grid, x_ptr, y_ptr, out_ptr, n=1):
        add(grid, x_ptr, y_ptr, out_ptr, n)
        at(x_ptr, (n,)).add_(1)

    assert status_and_cause(replayed("vector_add", {"add_kernel": half}))[0] == "not_written"
    assert status_and_cause(replayed("vector_add", {"add_kernel": too_far}))[0] == "out_of_bounds"
    assert status_and_cause(replayed("vector_add", {"add_kernel": into_input}))[0] == "input_mutated"
    # whole numbers are poisoned with another byte than the guards
    assert status_and_cause(replayed("program_ids", {"add_ids_kernel": lambda grid, **_: None}))[0] == "not_written"


def test_two_replays_must_agree_to_the_bit(replayed):
    def row_sum(grid, x_ptr, out_ptr, n_cols=1, stride_m=1, stride_n=1):
        calls.append(1)
        sums = at(x_ptr, (grid[0], n_cols), (stride_m, stride_n)).float().sum(1)
        at(out_ptr, (grid[0],)).copy_(sums * (1 + 1.2e-7 * drift * (len(calls) % 2)))

    calls: list[int] = []
    drift = 0
    assert replayed("row_sum", {"row_sum_kernel": row_sum}).status == "passed"
    drift = 1
    verdict = replayed("row_sum", {"row_sum_kernel": row_sum})
    assert status_and_cause(verdict) == ("nondeterministic", "differs_between_runs")


def test_a_copy_of_an_input_with_a_decoy_kernel_is_not_triton(replayed):
    source = find("tile_copy").solution.read_text()
    source = changed(source, "copy_kernel[grid](x, out, n", "copy_kernel[grid](x, torch.empty_like(x), n")
    source = changed(source, "out = torch.empty_like(x)", "out = x.clone()")
    verdict = replayed("tile_copy", {"copy_kernel": lambda grid, **_: None}, source)
    assert status_and_cause(verdict) == ("not_triton", "kernel_does_not_matter"), verdict.notes


def test_a_computation_by_pytorch_fails_where_the_plain_grade_would_see_a_kernel_run(replayed):
    source = changed(ADD, "    add_kernel[grid]", "    x = x * 1\n    add_kernel[grid]")
    verdict = replayed("vector_add", {"add_kernel": add}, source)
    assert status_and_cause(verdict) == ("not_triton", "computed_by_torch") and not verdict.verified


def test_a_result_of_another_dtype_or_kind_is_refused(replayed):
    half = replayed("vector_add", {"add_kernel": add}, changed(ADD, "    return out\n", "    return out.half()\n"))
    nothing = replayed("vector_add", {"add_kernel": add}, changed(ADD, "    return out\n", "    return 3\n"))
    assert (half.status, nothing.status) == ("wrong_dtype", "wrong_shape")


@pytest.mark.parametrize("slug", ABOUT_PYTHON)
def test_exercises_about_python_say_that_they_are_unverified(replayed, slug):
    verdict = replayed(slug, {})
    assert (verdict.status, verdict.verified) == ("passed", False)
    assert any(note.startswith("graded unverified: ") for note in verdict.notes)


def test_nothing_is_replayed_after_a_plain_failure(judge, grade):
    under_way = grade("vector_add")
    under_way.verdict.status = "wrong_answer"
    verify.verify(judge, under_way)
    assert not under_way.verdict.verified and "not verified" in under_way.verdict.notes[0]


def test_timed_rounds_work_on_shifted_inputs_and_the_last_one_is_judged(judge, grade, replayed, monkeypatch, tmp_path):
    under_way = grade("vector_add")
    problem = under_way.problem
    case = next(case for case in problem.cases if case.name == "n=1000 float32")
    small = type(problem.timing)("n=1000", lambda draw: case.make(draw))
    object.__setattr__(under_way, "problem", type(problem)(**{**vars(problem), "timing": small}))
    record = measured.record_large(judge, under_way)
    seen: list[torch.Tensor] = []

    def watching(grid, x_ptr, y_ptr, out_ptr, n=1):
        seen.append(at(x_ptr, (n,)).clone())
        add(grid, x_ptr, y_ptr, out_ptr, n)

    def stale(grid, x_ptr, y_ptr, out_ptr, n=1):
        if not kept:
            kept.append(at(x_ptr, (n,)) + at(y_ptr, (n,)))
        at(out_ptr, (n,)).copy_(kept[0])

    kept: list[torch.Tensor] = []

    def timed(kernel: Any) -> list[float]:
        started = lambda judge, grade, buffers, **_: HereProcess({"add_kernel": kernel}, buffers, tmp_path)
        monkeypatch.setattr(measured, "start_replayer", started)
        return measured.timed_replay(judge, under_way, record)

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "triton"))
    samples = timed(watching)
    assert len(samples) >= 7 and len({tuple(values.tolist()) for values in seen}) > 7
    with pytest.raises(verify.Fails, match="differs from PyTorch"):
        timed(stale)


BESIDE = {
    "samples": {"eager_us": [20.0, 19.0, 21.0], "solution_us": [11.0, 10.0, 12.0]},
    "limits": {"copy_gb_per_s": 4000.0}, "work": [30_000_000, 0], "kind": "memory", "thresholds": [0.6, 0.85],
    "case": "n=2^28", "working_set": 10, "l2_bytes": 5, "notes": [],
}  # fmt: skip


def measured_with(judge, under_way, monkeypatch, samples: Any) -> Verdict:
    def timed(judge: Any, grade: Any, record: Any, ahead: Any, beside: Any) -> list[float]:
        beside()
        if isinstance(samples, Exception):
            raise samples
        return samples

    monkeypatch.setattr(measured, "record_large", lambda judge, grade: None)
    monkeypatch.setattr(measured, "timed_replay", timed)
    monkeypatch.setattr(measured, "_beside", lambda *_: copy.deepcopy(BESIDE))
    measured.measure(judge, under_way)
    return under_way.verdict


def test_the_verdicts_time_is_the_replays_and_its_rank_follows(judge, grade, monkeypatch):
    timing = measured_with(judge, grade("vector_add"), monkeypatch, [10.0, 9.9, 10.1]).timing
    assert timing is not None
    assert (timing["median_us"], timing["eager_us"], timing["solution_us"]) == (10.0, 20.0, 11.0)
    assert (timing["gb_per_s"], timing["rank"]) == (3000.0, "fair")


def test_a_wrong_timed_result_fails_and_a_lost_replayer_only_loses_the_time(judge, grade, monkeypatch):
    wrong = verify.Fails(Outcome("wrong_answer", "it differs", cause="wrong_when_timed"))
    verdict = measured_with(judge, grade("vector_add"), monkeypatch, wrong)
    assert status_and_cause(verdict) == ("wrong_answer", "wrong_when_timed") and verdict.timing is None
    verdict = measured_with(judge, grade("vector_add"), monkeypatch, RunnerGone("timeout", "no answer"))
    assert (verdict.status, verdict.timing) == ("passed", None)
    assert "no verified timing: no answer" in verdict.notes
