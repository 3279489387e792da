"""In a runner on a GPU: the time of the learner's function, beside PyTorch, torch.compile and the reference solution.

Cold L2, the candidates interleaved round by round on values that change from round to round, medians with spread, the
last round's outputs verified. The limits (copy bandwidth, matmul peak) are measured in the same run. This process holds
the learner's code: its figures are unverified.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import torch

from grader.problem import Draw, Problem, Timing
from grader.ranking import summary

L2_FLUSH_BYTES = 256 << 20  # twice the largest L2, a B200's
ROUNDS = (7, 60)  # least and most
BUDGET = 0.6  # seconds of rounds
AHEAD = 4  # rounds: a driver's queue holds about 1,000 launches, and from then on each call would wait for the device
IDLE = 5e-4  # seconds that a device may take to say that it has nothing to do
TRIES = 5  # of that: a busy machine may put off one answer, work on another stream is there every time
SHIFT = 12347  # elements
# held here, before the learner's file is imported: what is patched later does not reach them
elapsed_ms, clock = torch.cuda.Event.elapsed_time, time.perf_counter


def timed(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    from grader import errors

    try:
        return _timed(runner, message)
    except BaseException as error:
        return errors.described(error, runner.path, "call", runner.module)


def _timed(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    problem, timing, args = _prepared(message)

    def learner() -> Any:
        return runner.perform(args)

    def truth() -> Any:
        return runner.perform(args, entry=problem.truth_when_timed)

    notes: list[str] = []
    candidates = {"median_us": learner, **_baselines(problem, args, message, notes, runner.perform)}
    if not problem.mutates:
        wrong = differs(learner(), truth())
        if wrong:
            return {"event": "timed", "wrong": wrong}
    else:
        learner()
    rounds = Rounds(moving_on(args) if not problem.mutates else None)
    measured = _measured(problem, timing, args, candidates, rounds)
    if not problem.mutates:
        # the values have not moved on since the last round
        wrong = differs(rounds.last["median_us"], truth() if problem.eager_is_random else rounds.last["eager_us"])
        rounds.last.clear()
        wrong = wrong or differently(args, learner, truth)
        if wrong:
            return {"event": "timed", "wrong": wrong}
    return {"event": "timed", **measured, "host_us": summary(rounds.host["median_us"])[0], "notes": notes}


def moving_on(args: list[Any]) -> Callable[[], None]:
    """Changes the values of the inputs where they lie: no result of an earlier call is right then."""
    tensors = [a for a in args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point and a.numel()]
    changing = [tensor for tensor in tensors if 0 not in tensor.stride()]

    def move() -> None:
        for tensor in changing:
            tensor.copy_(tensor.roll(SHIFT))

    return move


def differently(args: list[Any], learner: Callable[[], Any], truth: Callable[[], Any]) -> str | None:
    """How a function gives itself away that does not do its work while it is timed: called once more, on other values.

    It gives back an earlier result, or its work goes on when the current stream, the timed one, has nothing left to do.
    """
    changed = next((a for a in args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point), None)
    if changed is not None:
        changed.copy_(changed.roll(SHIFT))
    for _ in range(TRIES):
        out, late = _left_behind(learner)
        if late <= IDLE:
            return differs(out, truth())
    return "work goes on when the current stream is done: launch on the current stream, and wait for others"


def _left_behind(learner: Callable[[], Any]) -> tuple[Any, float]:
    """What the function gives, and for how many seconds the device goes on when the current stream is done."""
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    out = learner()
    done.record()
    done.synchronize()
    started = clock()
    torch.cuda.synchronize()
    return out, clock() - started


def prepared_baselines(message: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """In a process without the learner's code: what measures everything but the learner's own time.

    What it needs is compiled already.
    """
    problem, timing, args = _prepared(message)
    notes: list[str] = []
    candidates = _baselines(problem, args, message, notes, lambda args, entry: entry(*args))
    for call in candidates.values():
        call()
    torch.cuda.synchronize()

    def measure() -> dict[str, Any]:
        rounds = Rounds(moving_on(args) if not problem.mutates else None)
        return {"event": "baselines", **_measured(problem, timing, args, candidates, rounds), "notes": notes}

    return measure


def _prepared(message: dict[str, Any]) -> tuple[Problem, Timing, list[Any]]:
    """The problem, the size that is timed, and its inputs; `size` counts from the one that ranks."""
    from grader.catalog import find
    from grader.grade import load_problem

    problem = load_problem(find(message["exercise"]))
    timing = problem.timings[int(message.get("size", 0))]  # the judge asks only where there is one
    return problem, timing, list(timing.make(Draw(int(message["seed"]), "cuda")))


def _baselines(
    problem: Problem, args: list[Any], message: dict[str, Any], notes: list[str], perform: Callable[..., Any]
) -> dict[str, Callable[[], Any]]:
    """Eager PyTorch, the reference solution and, if asked for, torch.compile, by their names in a verdict."""
    solution = getattr(_load(message["solution"], "solution"), problem.entry)
    baseline = problem.eager or problem.reference

    def called(entry: Any) -> Callable[[], Any]:
        return lambda: perform(args, entry=entry)

    candidates = {"eager_us": called(baseline), "solution_us": called(solution)}
    if message.get("compiled", True):
        try:
            torch._dynamo.reset()
            compiled = torch.compile(baseline, dynamic=False)
            perform(args, entry=compiled)
            candidates["compiled_us"] = called(compiled)
        except Exception as error:
            notes.append(f"torch.compile of the baseline failed: {errors_line(error)}")
    return candidates


def _measured(
    problem: Problem, timing: Timing, args: list[Any], candidates: dict[str, Callable[[], Any]], rounds: Rounds
) -> dict[str, Any]:
    """The candidates' times, and what they are judged against."""
    from grader.expectation import work_of

    began = clock()
    limits = {"copy_gb_per_s": copy_bandwidth()}
    if timing.limit == "compute":
        limits["matmul_tflop_per_s"] = matmul_peak(args)
    samples = interleaved(candidates, rounds)
    work = work_of(problem, args)
    return {
        "case": timing.name,
        "measuring_s": clock() - began,
        "samples": {name: summary(values) for name, values in samples.items()},
        "limits": limits,
        "work": [work.bytes, work.flops],
        "kind": timing.limit,
        "thresholds": [timing.fair, timing.fast],
        "working_set": sum(a.numel() * a.element_size() for a in args if isinstance(a, torch.Tensor)),
        "l2_bytes": torch.cuda.get_device_properties(0).L2_cache_size,
        # "highest": PyTorch multiplies float32 exactly; a kernel's tl.dot may take TF32, which is faster and less exact
        "float32_matmul": torch.get_float32_matmul_precision() if _multiplies_float32(timing, args) else None,
    }


def _multiplies_float32(timing: Timing, args: list[Any]) -> bool:
    return timing.limit == "compute" and any(getattr(a, "dtype", None) == torch.float32 for a in args)


def errors_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"


@dataclass
class Rounds:
    """What is done between the rounds of a timing run, and what is kept of them."""

    move: Callable[[], None] | None = None  # changes the inputs before each round
    last: dict[str, Any] = field(default_factory=dict)  # each candidate's output of the last round
    host: dict[str, list[float]] = field(default_factory=dict)  # microseconds until each call returned


def interleaved(candidates: dict[str, Callable[[], Any]], kept: Rounds | None = None) -> dict[str, list[float]]:
    """Microseconds of each call, by events; every candidate once a round, the L2 flushed before each."""
    kept = kept or Rounds()
    flush = torch.empty(L2_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for call in candidates.values():
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for call in candidates.values():
        flush.zero_()
        call()
    end.record()
    torch.cuda.synchronize()
    one_round = elapsed_ms(begin, end) / 1000
    rounds = int(min(ROUNDS[1], max(ROUNDS[0], BUDGET / max(one_round, 1e-6))))
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in candidates}
    kept.host = {name: [] for name in candidates}
    for number in range(rounds):
        if number % AHEAD == 0:
            torch.cuda.synchronize()
            flush.zero_()  # so that the device has work while the first call is prepared
        if kept.move is not None:
            kept.move()
        for name, call in candidates.items():
            kept.last.pop(name, None)  # its memory is the next call's
            flush.zero_()
            pair = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            pair[0].record()
            started = clock()
            out = call()
            kept.host[name].append((clock() - started) * 1e6)
            pair[1].record()
            marks[name].append(pair)
            if kept.move is not None:
                kept.last[name] = out
            del out
    torch.cuda.synchronize()
    return {name: [elapsed_ms(a, b) * 1000 for a, b in pairs] for name, pairs in marks.items()}


def copy_bandwidth() -> float:
    """GB/s of a device-to-device copy of 1 GiB, bytes read plus bytes written."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    samples = interleaved({"copy": lambda: target.copy_(source)})["copy"]
    return 2 * source.numel() / median(samples) / 1000


def matmul_peak(args: list[Any]) -> float:
    """TFLOP/s of PyTorch's 8192^3 matmul on random data of the first argument's dtype (int8: TOP/s)."""
    tensors = (a.dtype for a in args if isinstance(a, torch.Tensor))
    dtype = next(t for t in tensors if t.is_floating_point or t == torch.int8)
    n = 8192
    if dtype == torch.int8:
        a, b = (torch.randint(-128, 128, (n, n), device="cuda", dtype=dtype) for _ in range(2))
        samples = interleaved({"matmul": lambda: torch._int_mm(a, b.t())})["matmul"]
    else:
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
        samples = interleaved({"matmul": lambda: a @ b})["matmul"]
    return 2 * n**3 / median(samples) / 1e6


def differs(got: Any, want: Any) -> str | None:
    """Relative error, in the norm, of the timed output against PyTorch's: None when it is only rounding."""
    got = got if isinstance(got, (tuple, list)) else (got,)
    want = want if isinstance(want, (tuple, list)) else (want,)
    for a, b in zip(got, want, strict=True):
        a, b = a.detach().float(), b.detach().float()
        bound = 1e-5 if want[0].dtype == torch.float32 else 2e-2
        error = float((a - b).norm() / b.norm().clamp_min(1e-30))
        if not error <= bound:
            return f"the timed output differs from PyTorch's: relative error {error:.2g}"
    return None


def _load(path: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
