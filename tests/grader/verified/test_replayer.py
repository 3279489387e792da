"""The replayer's process: it compiles what was recorded, refuses what does not fit, and may die alone."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from msgspec.structs import replace

from grader.case_runner import Buffers, Outcome
from grader.failures import RunnerGone
from grader.judge import Judge
from grader.runner_process import RunnerProcess
from grader.verified import verify
from grader.verified.processes import Ahead, Baselines
from grader.verified.record import Record
from grader.verified.replay import Replay, hand_over
from tests.grader.verified.submissions import LAUNCH_MANY, MANY, PLAIN, recorded


@pytest.mark.parametrize(("body", "kernel"), [(PLAIN, ""), (LAUNCH_MANY, MANY)])
def test_a_replayer_compiles_what_was_recorded_and_performs_it(judge, grade, body, kernel):
    outcome, process = handed_over(judge, grade, recorded(judge, grade, body, kernel))
    assert outcome is None
    places = [{"offset": 256 * n, "shape": [64], "stride": [1], "dtype": "float32"} for n in range(1, 4)]
    assert process.ask({"op": "replay", "places": places, "launches": True}, 10)["event"] == "replayed"
    process.end()


def test_a_launch_whose_arguments_are_not_the_kernels_is_refused(judge, grade):
    record = recorded(judge, grade, PLAIN)
    short = replace(record.steps[0], arguments=record.steps[0].arguments[1:])
    outcome, process = handed_over(judge, grade, replace(record, steps=(short,)))
    assert outcome is not None and "is launched with" in str(outcome.message)
    process.end()


def test_ttir_that_does_not_parse_is_an_error_and_the_replayer_lives(judge, grade):
    record = recorded(judge, grade, PLAIN)
    ttir = "module {\n  tt.func public @add_kernel(%x: nonsense) {\n"
    outcome, process = handed_over(judge, grade, replace(record, kernels=(replace(record.kernels[0], ttir=ttir),)))
    assert outcome is not None and outcome.status == "runtime_error"
    assert process.ask({"op": "replay", "places": [], "launches": True}, 10)["event"] == "error"
    process.end()


def test_a_replayer_that_dies_is_lost_and_the_judge_is_not(judge, grade):
    outcome, process = handed_over(judge, grade, recorded(judge, grade, PLAIN))
    assert outcome is None
    os.kill(process.pid, signal.SIGSEGV)
    with pytest.raises(RunnerGone) as gone:
        process.ask({"op": "replay", "places": [], "launches": True}, 10)
    assert gone.value.status == "crashed"


def handed_over(judge: Judge, grade: Any, record: Record) -> tuple[Outcome | None, RunnerProcess]:
    """A record given to a real replayer, which compiles and launches nothing."""
    under_way = grade("vector_add")
    buffers = Buffers("cpu", [], least=1 << 16)
    process = verify.start_replayer(judge, under_way, buffers)
    return Replay(under_way.problem, process, buffers, 30).use(hand_over(process, record), record), process


def test_processes_started_ahead_wait_and_end_with_their_block(judge, grade):
    with Ahead(judge, grade("vector_add"), timed=False) as ahead:
        ahead.start()
        ahead.settle()
        assert len(judge.warm["offline"].runners) == 1
        ahead.forget()
    assert not judge.warm["offline"].runners


def test_kernels_are_compiled_once_and_each_record_is_used_by_its_number(judge, grade):
    first, second = recorded(judge, grade, PLAIN), recorded(judge, grade, LAUNCH_MANY, MANY)
    under_way = grade("vector_add")
    buffers = Buffers("cpu", [], least=1 << 16)
    process = verify.start_replayer(judge, under_way, buffers)
    try:
        numbers = [hand_over(process, record) for record in (first, second, first)]
        replay = Replay(under_way.problem, process, buffers, 30)
        assert numbers == [0, 1, 2]
        assert [replay.use(n, r) for n, r in ((2, first), (1, second), (0, first))] == [None] * 3
        assert len(list(process.scratch.glob("kernel-*.ttir"))) == len(first.kernels) + len(second.kernels)
    finally:
        process.end()


def test_one_process_serves_the_baselines_of_many_grades_until_it_is_lost(judge, grade):
    """Without a GPU nothing can be prepared, and it says so when it is asked for times."""
    baselines = Baselines()
    try:
        first = baselines.prepared(judge, grade("vector_add"))
        assert baselines.prepared(judge, grade("softmax")) is first
        assert first.ask({"op": "baselines"}, 10)["event"] == "error"
        baselines.release()
        first.end()
        assert baselines.prepared(judge, grade("vector_add")) is not first
    finally:
        baselines.close()
    assert not judge.warm["offline"].runners
