"""Honest timing, without a GPU: what is done between rounds, and what may be said of lists of samples."""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from grader import clocks as clocks_module
from grader import measure, sweep, timing
from grader.advice import advice
from grader.catalog import find
from grader.clocks import Clocks
from grader.failures import Cancelled, RunnerGone, Unavailable
from grader.gpu_turns import Turns
from grader.grade import Grade, Options, Submission
from grader.problem import Timing
from grader.ranking import apart, ranked, summary
from grader.verdict import Verdict


def reply(median: float, spread: float = 0.01, **more: Any) -> dict[str, Any]:
    """4 MB of traffic at a copy bandwidth of 4000 GB/s: 1 µs is the limit."""
    samples = {"median_us": [median, median * (1 - spread), median * (1 + spread)], "eager_us": [2.0, 1.98, 2.02]}
    return {
        "case": "n", "samples": samples, "work": [4_000_000, 1000], "kind": "memory", "thresholds": [0.6, 0.85],
        "limits": {"copy_gb_per_s": 4000.0}, "working_set": 10, "l2_bytes": 5, **more,
    }  # fmt: skip


# -- what samples allow to say


def test_a_summary_is_median_and_spread():
    assert summary([5.0, 1.0, 2.0, 3.0, 4.0, 100.0]) == [3.5, 2.0, 5.0]


def test_results_are_apart_only_when_their_spreads_do_not_overlap():
    assert apart([10, 9.9, 10.1], [10.5, 10.4, 10.6]) and not apart([10, 9.5, 10.5], [10.5, 10.4, 10.6])
    assert not apart([10, 9, 11], [10, 9, 11])


def test_a_spread_across_a_mark_gives_no_rank():
    assert ranked(reply(1.18, spread=0.001))["rank"] == "fair"  # 0.847 of the limit, the mark is 0.85
    assert ranked(reply(1.18, spread=0.01))["rank"] == "too_noisy"


def test_nothing_faster_than_the_hardware_is_believed():
    assert ranked(reply(1.0))["rank"] == "fast"
    assert ranked(reply(0.95))["rank"] == "fast"  # a copy does not reach all of the bandwidth
    assert ranked(reply(0.80))["rank"] == "not_believed"
    compute = reply(0.6, kind="compute", work=[1, 4_000_000], limits={"copy_gb_per_s": 1.0, "matmul_tflop_per_s": 4.0})
    assert ranked(compute)["rank"] == "not_believed"
    faster_than_cublas = ranked({**compute, "samples": {"median_us": [0.9, 0.9, 0.9]}})
    assert (faster_than_cublas["rank"], faster_than_cublas["percent_of_limit"]) == ("fast", 111.1)


def test_data_that_fits_in_the_l2_is_labelled_and_may_be_faster_than_memory():
    found = ranked(reply(0.5, l2_bytes=50_000_000))
    assert found["in_l2"] and found["rank"] == "fast"
    assert not ranked(reply(1.0, l2_bytes=3_000_000, working_set=1))["in_l2"]  # the output counts too


def test_what_is_no_different_and_every_spread_is_said():
    found = ranked(reply(2.0))
    assert found["like"] == ["eager_us"] and found["spreads"] == {"eager_us": [1.98, 2.02]}
    assert ranked(reply(1.5))["like"] == []


def test_conditions_are_said_where_they_are_known():
    found = ranked(reply(5.0, host_us=20.0, float32_matmul="highest", sm_mhz=[1700, 1980]))
    assert found["launch_bound"] and found["host_us"] == 20.0
    assert (found["float32_matmul"], found["sm_mhz"]) == ("highest", [1700, 1980])
    assert not ranked(reply(500.0, host_us=20.0))["launch_bound"]
    assert "sm_mhz" not in ranked(reply(1.0, sm_mhz=None)) and "host_us" not in ranked(reply(1.0))


# -- advice


ROW = {"spill_bytes": 0, "vector_loads": 4, "tensor_core_ops": 0, "occupancy": 1.0}


@pytest.mark.parametrize(
    ("words", "row", "traffic", "more"),
    [
        ("spilled", {"spill_bytes": 64}, 2.0, {}),
        ("2.00 times the least bytes", {}, 2.0, {}),
        ("launching takes", {}, 1.0, {"launch_bound": True}),
        ("16 bytes a thread", {"vector_loads": 0}, 1.0, {}),
        ("tl.dot", {}, 1.0, {"limit": "compute"}),
        ("12 % of a multiprocessor's warps", {"occupancy": 0.125}, 1.0, {}),
        ("takes 0.50 of your time", {}, 1.0, {"solution_us": 1.0}),
        ("as fast as the reference solution", {}, 1.0, {"solution_us": 2.0}),
    ],
)
def test_the_largest_lever_is_named(words, row, traffic, more):
    section = {"rank": "slow", "limit": "memory", "median_us": 2.0, **more}
    told = advice(section, [{**ROW, **row}], {"ratio": traffic})
    assert told is not None and words in told


def test_what_is_fast_or_has_no_rank_is_not_advised():
    for rank in ("fast", "too_noisy", "not_believed"):
        assert advice({"rank": rank, "limit": "memory"}, [{**ROW, "spill_bytes": 64}], None) is None
    assert advice({"rank": "slow", "limit": "memory", "median_us": 1.0}, None, None) is not None


# -- the rounds


class Event:
    """Each record takes a millisecond of make-believe time."""

    now = 0.0

    def __init__(self, enable_timing: bool = False) -> None:
        self.at = 0.0

    def record(self) -> None:
        Event.now += 1.0
        self.at = Event.now

    def synchronize(self) -> None:
        pass


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    monkeypatch.setattr(timing, "elapsed_ms", lambda a, b: b.at - a.at)
    monkeypatch.setattr(timing, "BUDGET", 0.0)
    monkeypatch.setattr(timing, "L2_FLUSH_BYTES", 16)
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **{n: v for n, v in k.items() if n != "device"}))


def test_candidates_take_turns_on_the_same_new_values_of_each_round(device):
    x = torch.arange(5.0)
    seen: list[tuple[str, float]] = []
    rounds = timing.Rounds(timing.moving_on([x, 3, torch.arange(3)]))

    def candidate(name: str):
        return lambda: seen.append((name, float(x[0]))) or x * 2

    samples = timing.interleaved({"a": candidate("a"), "b": candidate("b")}, rounds)
    timed = seen[-2 * timing.ROUNDS[0] :]
    assert [name for name, _ in timed] == ["a", "b"] * timing.ROUNDS[0]
    assert all(first[1] == second[1] for first, second in zip(timed[::2], timed[1::2], strict=True))
    assert len({value for _, value in timed}) > 2  # other values from round to round
    assert {name: len(values) for name, values in samples.items()} == dict.fromkeys("ab", timing.ROUNDS[0])
    assert len(rounds.host["a"]) == timing.ROUNDS[0]
    assert torch.equal(rounds.last["a"], x * 2)  # the last round's output, of the last round's values


def test_few_rounds_are_ahead_of_the_device_so_that_no_call_waits_for_a_full_queue(device, monkeypatch):
    ahead, most = [0], [0]
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: ahead.__setitem__(0, 0))
    monkeypatch.setattr(timing, "ROUNDS", (30, 30))

    def call() -> None:
        ahead[0] += 1
        most[0] = max(most[0], ahead[0])

    timing.interleaved({"a": call, "b": call})
    assert most[0] == 2 * timing.AHEAD


def test_an_input_that_is_expanded_or_whole_stays_as_it_is():
    whole, expanded = torch.arange(5), torch.ones(1).expand(4)
    timing.moving_on([whole, expanded, None])()
    assert whole.tolist() == [0, 1, 2, 3, 4] and expanded.tolist() == [1.0] * 4


def test_a_timed_result_of_earlier_values_is_found(device, monkeypatch):
    monkeypatch.setattr(timing, "copy_bandwidth", lambda: 4000.0)
    properties = type("Properties", (), {"L2_cache_size": 5})
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: properties)
    x = torch.randn(100_000)
    work = staticmethod(lambda x: type("W", (), {"bytes": 8, "flops": 1}))
    truth = staticmethod(lambda x: x * 2)
    problem = type("P", (), {"mutates": (), "work": work, "truth_when_timed": truth, "eager_is_random": False})()
    size = Timing("n", lambda draw: [x])
    monkeypatch.setattr(timing, "_prepared", lambda message: (problem, size, [x]))
    monkeypatch.setattr(timing, "_baselines", lambda *_: {"eager_us": lambda: x * 2, "solution_us": lambda: x * 2})
    calls: list[torch.Tensor] = []
    untimed = 1 + 3 + 1  # the check before, the warm-up, the round that is measured to plan the others

    def lazy(args: list[torch.Tensor], entry=None) -> torch.Tensor:
        """Works when it is looked at, and gives back an earlier result in the timed rounds alone."""
        if entry is not None:  # another function in its place
            return entry(*args)
        timed = untimed < len(calls) + 1 <= untimed + timing.ROUNDS[0]
        calls.append(calls[-1] if timed else args[0] * 2)
        return calls[-1]

    runner = type("R", (), {"perform": staticmethod(lazy)})
    assert "differs" in timing._timed(runner, {})["wrong"]
    honest = type("R", (), {"perform": staticmethod(lambda args, entry=None: args[0] * 2)})
    answer = timing._timed(honest, {})
    assert answer["event"] == "timed" and "wrong" not in answer and answer["host_us"] >= 0


# -- clocks, and the sweep


def test_clocks_are_sampled_while_the_block_runs_and_missing_tools_are_no_failure(monkeypatch):
    monkeypatch.setattr(clocks_module, "PATIENCE", 60.0)
    command = (sys.executable, "-c", "print(1755)")
    clocks = Clocks(command, every=0.001)
    with clocks:
        while not clocks.samples and clocks._thread.is_alive():
            clocks._thread.join(0.05)
    assert clocks.range() == [1755, 1755]
    clocks.samples, clocks.ended = [(1.0, 345), (8.5, 1980), (9.5, 1965)], 10.0
    assert clocks.range() == [345, 1980] and clocks.range(2.0) == [1965, 1980] and clocks.range(0.1) is None
    with Clocks(("no-such-tool",)) as none:
        pass
    assert none.range() is None


def test_the_clock_is_that_of_the_device_that_is_visible(monkeypatch):
    for visible, number in (("3,1", "3"), ("GPU-8f2a", "GPU-8f2a"), ("", "0")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert Clocks().command[-1] == f"--id={number}"


class Judge:
    """Answers a timing run for each size; the second one is lost, the third one answers nonsense."""

    device_name = "Some GPU"
    warm = {"cuda": None}
    drawings = None

    def __init__(self, problem: Any) -> None:
        self.known, self.asked, self.turns = problem, [], Turns()

    def problem(self, files: Any) -> Any:
        return self.known

    def runner(self, grade: Any, mode: str, drawn: list[Any], readable: list[str]) -> Any:
        judge = self

        class Runner:
            process = property(lambda self: self)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                return False

            def ask(self, request, limit):
                judge.asked.append(request)
                if request["size"] == 1:
                    raise RunnerGone("crashed", "the process died")
                if request["size"] == 2:
                    return {"event": "timed", "samples": {"median_us": [0.0]}, "notes": None, "measuring_s": "long"}
                return reply(1.0 + request["size"], case=f"size {request['size']}", event="timed", notes=[])

        return Runner()


@pytest.fixture
def swept(monkeypatch):
    from grader.grade import load_problem

    monkeypatch.setattr(measure, "Clocks", lambda: Clocks(("no-such-tool",)))
    files = find("vector_add")
    judge = Judge(load_problem(files))
    events: list[dict[str, Any]] = []

    def run(cancelled=lambda: False, **request):
        submission = Submission(files, "mine.py", b"")
        return sweep.answer(judge, submission, request, events.append, cancelled)  # type: ignore[arg-type]

    run.judge, run.events = judge, events  # type: ignore[attr-defined]
    return run


def test_a_sweep_times_every_size_and_one_that_fails_costs_the_others_nothing(swept):
    data = swept(model=False)
    sizes = [size.name for size in swept.judge.known.timings]
    assert (data["model"], data["device"], len(data["rows"])) == (False, "Some GPU", len(sizes))
    assert "died" in data["rows"][1]["reason"] and data["rows"][1]["case"] == sizes[1]
    assert data["rows"][0]["rank"] == "fast" and data["rows"][3]["median_us"] == 4.0
    assert "nonsense" in data["rows"][2]["reason"]
    assert [request["size"] for request in swept.judge.asked] == list(range(len(sizes)))
    assert len({request["seed"] for request in swept.judge.asked}) == len(sizes)
    assert all(request["compiled"] for request in swept.judge.asked)
    assert [event["done"] for event in swept.events] == list(range(len(sizes) + 1))


def test_a_runner_that_answers_nonsense_when_it_is_timed_is_a_crash_of_the_submission(swept):
    class Babbling(Judge):
        def runner(self, *_: Any, **__: Any) -> Any:
            answer = {"event": "timed", "samples": [], "measuring_s": None}
            process = SimpleNamespace(ask=lambda request, limit: answer)
            return contextlib.nullcontext(SimpleNamespace(process=process))

    judge, files = Babbling(swept.judge.known), find("vector_add")
    verdict = Verdict("vector_add", "", "mine.py", "", 0, "cuda", "", {})
    submission, emit = Submission(files, "mine.py", b""), lambda event: None
    grade = Grade(submission, judge.known, Options(), "cuda", emit, lambda: False, verdict, None)  # type: ignore[arg-type]
    measure.measure(judge, grade)  # type: ignore[arg-type]
    assert verdict.status == "crashed" and verdict.timing is None
    assert "nonsense" in verdict.diagnosis["message"]


def test_a_sweep_can_be_cancelled_between_sizes_and_needs_a_gpu_to_measure(swept):
    with pytest.raises(Cancelled):
        swept(cancelled=lambda: len(swept.judge.asked) == 1)
    assert len(swept.judge.asked) == 1
    swept.judge.warm = {}
    with pytest.raises(Unavailable, match="--model"):
        swept(model=False)


def test_every_size_of_the_course_has_a_name_of_its_own_and_inputs():
    from grader.catalog import exercises
    from grader.grade import load_problem
    from grader.modelled import shapes_of

    for files in exercises():
        problem = load_problem(files)
        names = [size.name for size in problem.timings]
        assert len(set(names)) == len(names), files.slug
        for size in problem.timings:
            args = shapes_of(size)
            assert len(args) == len(shapes_of(problem.timings[0])), (files.slug, size.name)
            assert problem.sizes == () or problem.work(*args).bytes > 0, (files.slug, size.name)
