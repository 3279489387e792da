"""The questions for a GPU, without one: what is made of them, what the run survives, what its tables say, a dry run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.questions import __main__ as questions
from benchmarks.questions import clocks, timed
from benchmarks.questions.catalog import QUESTIONS, by_name
from benchmarks.questions.checked import differs
from benchmarks.questions.question import Call, Place, Question
from benchmarks.questions.report import against, markdown
from grader import timing
from tests.conftest import REPOSITORY

READY = {"event": "ready", "device": "NVIDIA Test", "versions": {"torch": "1", "triton": "2"}}


def test_every_variant_of_every_question_can_be_made_at_full_size_without_memory() -> None:
    failures: list[Any] = []
    for question in QUESTIONS.values():
        made = timed.trial(question, Place("meta"), [], lambda *why: failures.append(why))
        assert failures == [], question.name
        assert tuple(made) == question.variants
        assert len(question.variants) % question.groups == 0, question.name
        assert question.module in {f"m0{n}" for n in range(1, 9)}


def test_a_name_is_given_once() -> None:
    one = next(iter(QUESTIONS.values()))
    with pytest.raises(ValueError, match="the same name"):
        by_name([one, one])


def test_a_variant_is_compared_with_the_first_of_its_group() -> None:
    question = QUESTIONS["dropout-rand4x"]
    assert question.first("torch, float32") == "rand, float32"
    assert question.first("rand4x, bfloat16") == "rand, bfloat16"
    assert QUESTIONS["transpose-tiles"].first("64 x 64") == "1 x 1024"


def test_outputs_differ_by_more_than_rounding_in_shape_in_number_or_at_all_in_whole_numbers() -> None:
    x = torch.randn(1000)
    assert differs(x, x * (1 + 1e-7)) is None
    assert "relative error" in str(differs(x, x * 1.001))
    assert differs(x, (x * 1.001).half()) is None  # as coarse as the coarser of the two
    assert differs(x, x * 1.04, tolerance=0.05) is None
    assert differs([x, x], [x]) == "2 outputs, not 1"
    assert "shape" in str(differs(x[:10], x))
    assert differs(torch.arange(5), torch.tensor([0, 1, 2, 3, 5])) == "output 0 differs in 1 elements"
    assert "relative error nan" in str(differs(x * float("nan"), x))


def row(median: float, spread: float = 0.02, **more: Any) -> dict[str, Any]:
    times = {"median_us": median, "p20_us": median * (1 - spread / 2), "p80_us": median * (1 + spread / 2)}
    return {"clock": "cold", "bytes": 0, "flops": 0, **times, **more}


def test_a_ratio_says_where_it_may_be_noise() -> None:
    assert against(row(100.0), row(250.0)) == "2.50 ×"
    assert against(row(100.0), row(101.0)) == "1.01 ×, within the spread"
    assert against(row(100.0, spread=0.4), row(250.0)) == "2.50 ×, noisy"
    assert against(None, row(100.0)) == "–"


def test_the_table_gives_times_rates_registers_and_what_failed() -> None:
    name = "histogram"
    first, second, third, fourth = QUESTIONS[name].variants
    copied = {"bytes": 400_000_000}
    result = {
        "rows": {
            first: row(1000.0, **copied, peak_bytes=2_000_000),
            second: row(200.0, **copied),
            fourth: row(50.0, **copied),
        },
        "kernels": {first: [{"registers": 30, "spill_bytes": 0, "shared_bytes": 8192}]},
        "failed": {third: {"why": "hung | stopped\nat once", "traceback": ""}},
    }
    record = {**READY, "date": "today", "copy_gb_per_s": 4000.0, "sm_mhz": [1900, 1980], "questions": {name: result}}
    lines = {line.split("|")[1].strip(): line for line in markdown(record, QUESTIONS).splitlines() if "|" in line}
    assert "| 1,000 | 990.0–1,010 | – | 400 GB/s, 10 % of a copy | 30 | 0 | 8192 | 2.0 MB |" in lines[first]
    assert "| 200.0 | 198.0–202.0 | 0.20 × | 2000 GB/s, 50 % of a copy | – |" in lines[second]
    assert f"| {third} | hung / stopped at once |" in lines[third]
    # the first of its group is missing: nothing to compare with
    assert "| 50.0 | 49.5–50.5 | – | 8000 GB/s, 200 % of a copy, more than the memory has |" in lines[fourth]


def test_a_rate_counts_what_a_call_must_move_and_no_more() -> None:
    """Of a cache what the lengths reach; of a matmul the output too."""
    place = Place("cpu", programs=4)
    gqa, fp8 = QUESTIONS["gqa"], QUESTIONS["fp8-matmul"]
    q, k, v, _ = gqa.inputs(place)
    lengths = torch.tensor([310, 330], dtype=torch.int32)
    assert k.shape == (2, 330, 8, 128)
    assert gqa.make(place, [q, k, v, lengths], alone=False).bytes == 2 * (310 + 330) * 8 * 128 * 2
    call = fp8.make(place, None, dtype=torch.float16, M=16)
    n = call.want().shape[1]
    assert call.bytes == 2 * (16 * n + n * n + 16 * n)


def test_the_table_on_record_is_that_of_the_record_and_no_memory_is_faster_than_its_data_sheet() -> None:
    stem = REPOSITORY / "benchmarks" / "results" / "questions-nvidia-h200"
    record = json.loads(stem.with_suffix(".json").read_text(encoding="utf-8"))
    assert stem.with_suffix(".md").read_text(encoding="utf-8") == markdown(record, QUESTIONS)
    for name, result in record["questions"].items():
        for variant, found in result["rows"].items():
            if found["clock"] == "cold" and found["bytes"]:
                assert found["bytes"] / found["median_us"] / 1e6 < 4.8, (name, variant)
    assert record["questions"]["gqa"]["note"] in stem.with_suffix(".md").read_text(encoding="utf-8")


@pytest.fixture
def run(tmp_path: Path) -> questions.Run:
    return questions.Run("cuda", tmp_path, time.monotonic() + 600, READY)


def asked(run: questions.Run, names: list[str], monkeypatch: pytest.MonkeyPatch, *sources: str) -> list[dict[str, Any]]:
    """Ask these questions of these programs, in the place of the timing processes; the jobs they were given."""
    jobs: list[dict[str, Any]] = []

    def start(job: dict[str, Any]) -> subprocess.Popen[str]:
        jobs.append(json.loads(json.dumps(job)))
        return subprocess.Popen([sys.executable, "-uc", sources[len(jobs) - 1]], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(questions, "start", start)
    run.ask(names)
    return jobs


def says(*events: dict[str, Any]) -> str:
    return "".join(f"print({json.dumps(event)!r})\n" for event in events)


def answered(name: str, *without: str) -> dict[str, Any]:
    rows = {v: row(10.0) for v in QUESTIONS[name].variants if v not in without}
    return {"event": "answered", "question": name, "rows": rows, "seconds": 1.0}


def trying(name: str, variant: str | None) -> dict[str, Any]:
    return {"event": "trying", "question": name, "variant": variant}


def test_a_variant_that_ends_its_process_is_left_out_and_the_others_are_timed(run, monkeypatch) -> None:
    crash = says(answered("row-pitch"), trying("exp2", None), trying("exp2", "exp2")) + "import os; os.abort()"
    jobs = asked(run, ["row-pitch", "exp2"], monkeypatch, crash, says(answered("exp2", "exp2")))
    assert [job["names"] for job in jobs] == [["row-pitch", "exp2"], ["exp2"]]
    assert jobs[1]["excluded"] == {"exp2": ["exp2"]}
    assert "ended with -6" in run.record["questions"]["exp2"]["failed"]["exp2"]["why"]
    run.finish(["row-pitch", "exp2"], None)
    assert run.complete(["row-pitch"]) and not run.complete(["exp2"])
    kept = json.loads(run.stem.with_suffix(".json").read_text())["questions"]["exp2"]
    assert set(kept["rows"]) == {"solution", "exp, scale first"}
    assert "ended with -6" in run.stem.with_suffix(".md").read_text()


def test_a_question_that_fails_or_ends_its_process_as_a_whole_is_not_asked_again(run, monkeypatch) -> None:
    fails = {"event": "failed", "question": "gqa", "variant": None, "why": "no memory", "traceback": "where"}
    first = says(fails, trying("exp2", None)) + "raise SystemExit(1)"
    jobs = asked(run, ["gqa", "exp2", "row-pitch"], monkeypatch, first, says(answered("row-pitch")))
    assert jobs[1]["names"] == ["row-pitch"]
    assert run.record["questions"]["gqa"]["failed"][""] == {"why": "no memory", "traceback": "where"}
    assert "ended with 1" in run.record["questions"]["exp2"]["failed"][""]["why"]
    assert not run.complete(["gqa"]) and run.complete(["row-pitch"])


def test_what_may_hang_is_asked_last_and_what_is_not_reached_says_so(run, monkeypatch) -> None:
    names = ["warp-specialise", "exp2", "gqa"]

    def never(*_: Any) -> Any:
        raise AssertionError("nothing may start")

    run.until = time.monotonic() - 1
    monkeypatch.setattr(questions, "start", never)
    run.ask(names)
    run.finish(names, None)
    assert all("budget was spent" in run.record["questions"][name]["skipped"] for name in names)
    run.until = time.monotonic() + 600
    jobs = asked(run, names, monkeypatch, says(*map(answered, ["exp2", "gqa", "warp-specialise"])))
    assert jobs[0]["names"] == ["exp2", "gqa", "warp-specialise"]


class Event:
    """Stands for a CUDA event: each is recorded 5 µs after the one before."""

    now = 0.0

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        Event.now += 5.0
        self.at = Event.now

    def elapsed_time(self, later: Event) -> float:
        return (later.at - self.at) / 1000


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Just enough in the place of torch.cuda to follow the clocks."""
    for name in ("synchronize", "reset_peak_memory_stats", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda: None)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda: 100)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 164)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(timing, "elapsed_ms", Event.elapsed_time)
    monkeypatch.setattr(timing, "L2_FLUSH_BYTES", 1024)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, device=None, **more: empty(*shape, **more))
    monkeypatch.setattr(clocks, "captured", lambda run, times: SimpleNamespace(replay=run))
    monkeypatch.setattr("triton.testing.do_bench", lambda run, quantiles: [0.003, 0.002, 0.004])
    monkeypatch.setattr("triton.testing.do_bench_cudagraph", lambda run, quantiles: [0.002, 0.001, 0.003])


def emitted(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    monkeypatch.setattr(timed, "emit", lambda event, **fields: said.append({"event": event, **fields}))
    return said


def test_every_clock_gives_microseconds_of_one_run(no_gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    said, runs = emitted(monkeypatch), []

    def make(place: Place, inputs: Any, clock: Any) -> Call:
        if clock == "process":
            return Call(lambda: [0.5, 0.5, 0.5], lambda: None, clock=clock)
        if clock == "says":
            return Call(lambda: "it is refused", lambda: None, clock=clock)
        one = torch.ones(3)
        before = (lambda: runs.append("before")) if clock == "after" else None
        return Call(lambda: runs.append(clock) or one, lambda: one, clock=clock, before=before)

    names = ["says", *clocks.CLOCKS]
    question = Question("q", "m01", "which?", "because", {name: {"clock": name} for name in names}, make)
    timed.Answering(question, Place("cuda")).answer([])
    assert [event for event in said if event["event"] == "failed"] == []
    rows = said[-1]["rows"]
    assert set(rows) == set(names)
    assert rows["says"]["says"] == "it is refused"
    for name in ("cold", "after", "warm"):
        assert rows[name]["median_us"] == pytest.approx(5.0), name
    assert rows["graph"]["median_us"] == pytest.approx(5.0 / clocks.IN_GRAPH)
    assert [rows["do_bench"][key] for key in ("median_us", "p20_us", "p80_us")] == pytest.approx([3.0, 2.0, 4.0])
    assert rows["do_bench_cudagraph"]["median_us"] == pytest.approx(2.0)
    assert rows["process"]["median_us"] == pytest.approx(500_000)
    assert rows["host"]["median_us"] > 0
    assert rows["cold"]["peak_bytes"] == 64
    after = [clock for clock in runs if clock in ("after", "before")]
    assert after[-2:] == ["before", "after"]


def test_a_clock_that_fails_costs_the_variants_of_other_clocks_nothing(no_gpu, monkeypatch) -> None:
    said = emitted(monkeypatch)

    def refuse(run: Any, times: int) -> Any:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(clocks, "captured", refuse)
    one = torch.ones(3)
    settings = {clock: {"clock": clock} for clock in ("graph", "cold")}
    question = Question(
        "q", "m01", "which?", "because", settings, lambda p, i, clock: Call(lambda: one, lambda: one, clock=clock)
    )
    timed.Answering(question, Place("cuda")).answer([])
    failed = [event for event in said if event["event"] == "failed"]
    assert [event["variant"] for event in failed] == ["graph"] and "refuse" in failed[0]["traceback"]
    assert list(said[-1]["rows"]) == ["cold"] and said[-1]["rows"]["cold"]["median_us"] == pytest.approx(5.0)


def test_a_wrong_variant_one_that_raises_and_one_that_cannot_be_made_are_told_and_the_rest_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = emitted(monkeypatch)

    def make(place: Place, inputs: Any, how: str) -> Call:
        if how == "unmade":
            raise RuntimeError("no such tile")
        x = place.normal(8)
        ways = {"right": lambda: x, "wrong": lambda: x + 1, "raises": lambda: x[9]}
        return Call(ways[how], lambda: x)

    settings = {how: {"how": how} for how in ("unmade", "wrong", "raises", "right", "left out")}
    question = Question("q", "m01", "which?", "because", settings, make)
    timed.Answering(question, Place("cpu")).answer(["left out"])
    failed = {event["variant"]: event for event in said if event["event"] == "failed"}
    assert list(failed) == ["unmade", "wrong", "raises"]
    assert failed["unmade"]["why"] == "RuntimeError: no such tile"
    assert "relative error" in failed["wrong"]["why"]
    assert "Traceback" in failed["raises"]["traceback"] and "IndexError" in failed["raises"]["why"]
    assert list(said[-1]["rows"]) == ["right"]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "benchmarks.questions", *arguments]
    return subprocess.run(line, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)


def test_a_dry_run_compares_values_and_compiles_every_kernel(tmp_path: Path) -> None:
    names = ["row-pitch", "split-k", "compile-time"]
    done = command("--dry", "--only", *names, "--jobs", "1", "--out", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "questions-dry-run.json").read_text())["questions"]
    assert list(record) == names
    for name in ("row-pitch", "split-k"):
        assert set(record[name]["rows"]) == set(QUESTIONS[name].variants)
        assert record[name]["failed"] == {}
    assert set(record["row-pitch"]["kernels"]) == set(QUESTIONS["row-pitch"].variants)
    two_passes = record["split-k"]["kernels"]["8, two passes"]
    assert [kernel["kernel"] for kernel in two_passes] == ["split_kernel", "add_parts_kernel"]
    assert two_passes[0]["tensor_core_ops"] > 0 and two_passes[0]["registers"] > 16
    assert "nothing to compile" in record["compile-time"]["skipped"]
    assert "right, not timed" in (tmp_path / "questions-dry-run.md").read_text()


def test_without_a_gpu_it_says_so_and_exits_with_3() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = command("--only", "exp2")
    assert done.returncode == 3 and "no CUDA device" in done.stderr
