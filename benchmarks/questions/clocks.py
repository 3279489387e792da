"""Microseconds of each run of each call, by the call's clock; needs a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.questions.question import Call, Clock, Trial
from grader import timing

ROUNDS, LOOP, IN_GRAPH = 25, 2000, 100
QUANTILES = (0.5, 0.2, 0.8)


def samples(trial: Trial, failed: Callable[[str, Exception], None]) -> dict[str, list[float]]:
    """Calls of one clock are interleaved with each other, round by round. `failed` hears of each whose clock raised."""
    found: dict[str, list[float]] = {}
    by_clock: dict[Clock, Trial] = {}
    for name, call in trial.items():
        by_clock.setdefault(call.clock, {})[name] = call
    for clock, calls in by_clock.items():
        try:
            found |= CLOCKS[clock](calls)
        except Exception as error:  # such as a library that cannot be captured in a graph: the other clocks still count
            for name in calls:
                failed(name, error)
            torch.cuda.synchronize()  # raises again after a fault: no other clock would be right any more
    return {name: found[name] for name in trial if name in found}


def cold(calls: Trial) -> dict[str, list[float]]:
    return timing.interleaved({name: call.run for name, call in calls.items()})


def after(calls: Trial) -> dict[str, list[float]]:
    """`before` right before each run: what it left in the L2 is there."""
    flush = torch.empty(timing.L2_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    marks: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            flush.zero_()
            if call.before is not None:
                call.before()
            pair = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            pair[0].record()
            call.run()
            pair[1].record()
            marks[name].append(pair)
    torch.cuda.synchronize()
    return {name: [a.elapsed_time(b) * 1000 for a, b in pairs] for name, pairs in marks.items()}


def warm(calls: Trial) -> dict[str, list[float]]:
    """The run before the timed one was of the same call."""
    return after({name: Call(call.run, call.want, before=call.run) for name, call in calls.items()})


def graph(calls: Trial) -> dict[str, list[float]]:
    graphs = {name: captured(call.run, IN_GRAPH) for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, recorded in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            recorded.replay()
            end.record()
            torch.cuda.synchronize()
            found[name].append(begin.elapsed_time(end) * 1000 / IN_GRAPH)
    return found


def captured(run: Callable[[], Any], times: int) -> torch.cuda.CUDAGraph:
    """`times` runs as one CUDA graph, replayed once."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        for _ in range(times):
            run()
    recorded.replay()
    torch.cuda.synchronize()
    return recorded


def host(calls: Trial) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(8):
        for name, call in calls.items():
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(LOOP):
                call.run()
            torch.cuda.synchronize()
            if round_:  # the first warms up
                found[name].append((time.perf_counter() - started) * 1e6 / LOOP)
    return found


def do_bench(calls: Trial) -> dict[str, list[float]]:
    from triton.testing import do_bench as bench

    return {name: _in_us(bench(call.run, quantiles=QUANTILES)) for name, call in calls.items()}


def do_bench_cudagraph(calls: Trial) -> dict[str, list[float]]:
    from triton.testing import do_bench_cudagraph as bench

    return {name: _in_us(bench(call.run, quantiles=QUANTILES)) for name, call in calls.items()}


def _in_us(median_p20_p80: Any) -> list[float]:
    """Five values whose median, 20th and 80th percentile, as grader.ranking.summary takes them, are those."""
    median, low, high = (1000 * value for value in median_p20_p80)
    return [low, low, median, high, high]


def processes(calls: Trial) -> dict[str, list[float]]:
    """These give their own samples: seconds of processes that they start."""
    return {name: [1e6 * seconds for seconds in call.run()] for name, call in calls.items()}


CLOCKS: dict[Clock, Callable[[Trial], dict[str, list[float]]]] = {
    "cold": cold, "after": after, "warm": warm, "graph": graph, "host": host,
    "do_bench": do_bench, "do_bench_cudagraph": do_bench_cudagraph, "process": processes,
}  # fmt: skip
