"""A function that behaves differently when it is timed gives itself away; a device is stood in for by a fake one."""

from __future__ import annotations

import time

import pytest
import torch

from grader import timing
from grader.catalog import exercises, find
from grader.grade import load_problem


class FakeEvent:
    def __init__(self, enable_timing: bool = False) -> None:
        pass

    def record(self) -> None:
        pass

    def synchronize(self) -> None:
        pass


@pytest.fixture
def device(monkeypatch):
    """`device.busy` is for how many seconds streams other than the current one have work left; `put_off` are the
    seconds that the machine takes over each wait, however little there is to wait for. Time stands still otherwise."""

    class Device:
        busy = 0.0
        put_off: list[float] = []
        now = 0.0

    def synchronize(*_: object) -> None:
        Device.now += Device.busy + (Device.put_off.pop(0) if Device.put_off else 0.0)
        Device.busy = 0.0

    monkeypatch.setattr(timing, "clock", lambda: Device.now)

    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    return Device


def test_an_honest_function_is_let_be(device):
    x = torch.randn(100_000)
    assert timing.differently([x, 3], lambda: x * 2, lambda: x * 2) is None


def test_a_machine_that_is_slow_to_answer_accuses_nobody(device):
    x = torch.randn(1000)
    device.put_off = [0.0, 0.2, 0.0, 0.3]
    assert timing.differently([x], lambda: x * 2, lambda: x * 2) is None
    assert not device.put_off


def test_an_earlier_result_is_seen(device):
    x = torch.randn(100_000)
    earlier = x * 2
    found = timing.differently([x], lambda: earlier, lambda: x * 2)
    assert found is not None and "differs" in found


def test_work_on_another_stream_is_seen(device):
    x = torch.randn(1000)

    def aside():
        device.busy = 0.01
        return x * 2

    found = timing.differently([x], aside, lambda: x * 2)
    assert found is not None and "current stream" in found


def test_clocks_patched_after_the_grader_was_imported_do_not_count(monkeypatch):
    import statistics

    monkeypatch.setattr(statistics, "median", lambda values: 0.0)
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(torch.cuda.Event, "elapsed_time", lambda self, other: 0.0)
    assert timing.summary([1.0, 2.0, 3.0])[0] == 2.0
    assert timing.clock() > 0 and timing.elapsed_ms is not torch.cuda.Event.elapsed_time


def test_a_baseline_that_draws_its_own_numbers_is_no_truth():
    """PyTorch's dropout takes another mask at each call: a right one would be told that it is wrong."""
    problem = load_problem(find("seeded_dropout"))
    x = torch.randn(4096)
    args = (x, 0.5, 7)
    assert problem.eager is not None and timing.differs(problem.eager(*args), problem.reference(*args))
    assert timing.differs(problem.truth_when_timed(*args), problem.reference(*args)) is None


def test_every_other_baseline_gives_what_the_reference_gives():
    random = [files.slug for files in exercises() if load_problem(files).eager_is_random]
    assert random == ["seeded_dropout"]
    for slug in ("swiglu", "rms_norm", "matmul_bias_relu", "persistent_matmul"):
        problem = load_problem(find(slug))
        assert problem.truth_when_timed is problem.eager
