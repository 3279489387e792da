"""In a runner on a GPU: the time of the learner's function, beside PyTorch, torch.compile and the reference solution.

Cold L2, the candidates interleaved round by round, medians with spread, outputs verified. The limits (copy bandwidth,
matmul peak) are measured in the same run. This process holds the learner's code: its figures are unverified.
"""

from __future__ import annotations

import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

import torch

L2_FLUSH_BYTES = 256 << 20  # several times the largest L2
ROUNDS = (7, 60)  # least and most
BUDGET = 0.6  # seconds of rounds


def timed(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    from grader import errors

    try:
        return _timed(runner, message)
    except BaseException as error:
        return errors.described(error, runner.path, "call", runner.module)


def _timed(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    from grader.catalog import find
    from grader.expectation import work_of
    from grader.grade import load_problem
    from grader.problem import Draw

    problem = load_problem(find(message["exercise"]))
    timing = problem.timing
    assert timing is not None  # the judge asks only where there is one
    solution = getattr(_load(message["solution"], "solution"), problem.entry)
    args = list(timing.make(Draw(int(message["seed"]), "cuda")))
    baseline = problem.eager or problem.reference

    def learner() -> Any:
        return runner.perform(args)

    def called(entry: Any) -> Callable[[], Any]:
        return lambda: runner.perform(args, entry=entry)

    candidates: dict[str, Callable[[], Any]] = {
        "median_us": learner,
        "eager_us": called(baseline),
        "solution_us": called(solution),
    }
    notes: list[str] = []
    if message.get("compiled", True):
        try:
            torch._dynamo.reset()
            compiled = torch.compile(baseline, dynamic=False)
            runner.perform(args, entry=compiled)
            candidates["compiled_us"] = called(compiled)
        except Exception as error:
            notes.append(f"torch.compile of the baseline failed: {errors_line(error)}")
    if not problem.mutates:
        wrong = _differs(learner(), candidates["eager_us"]())
        if wrong:
            return {"event": "timed", "wrong": wrong}
    else:
        learner()
    limits = {"copy_gb_per_s": copy_bandwidth()}
    if timing.limit == "compute":
        limits["matmul_tflop_per_s"] = matmul_peak(args)
    samples = interleaved(candidates)
    work = work_of(problem, args)
    return {
        "event": "timed",
        "case": timing.name,
        "samples": {name: summary(values) for name, values in samples.items()},
        "limits": limits,
        "work": [work.bytes, work.flops],
        "kind": timing.limit,
        "thresholds": [timing.fair, timing.fast],
        "working_set": sum(a.numel() * a.element_size() for a in args if isinstance(a, torch.Tensor)),
        "l2_bytes": torch.cuda.get_device_properties(0).L2_cache_size,
        "notes": notes,
    }


def errors_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"


def interleaved(candidates: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Microseconds of each call, by events; every candidate once a round, the L2 flushed before each."""
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
    one_round = begin.elapsed_time(end) / 1000
    rounds = int(min(ROUNDS[1], max(ROUNDS[0], BUDGET / max(one_round, 1e-6))))
    marks: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, call in candidates.items():
            flush.zero_()
            pair = (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True))
            pair[0].record()
            call()
            pair[1].record()
            marks[name].append(pair)
    torch.cuda.synchronize()
    return {name: [a.elapsed_time(b) * 1000 for a, b in pairs] for name, pairs in marks.items()}


def summary(values: list[float]) -> list[float]:
    """Median, 20th and 80th percentile."""
    ordered = sorted(values)
    return [statistics.median(ordered), ordered[int(0.2 * (len(ordered) - 1))], ordered[int(0.8 * (len(ordered) - 1))]]


def copy_bandwidth() -> float:
    """GB/s of a device-to-device copy of 1 GiB, bytes read plus bytes written."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda").fill_(1)
    target = torch.empty_like(source)
    samples = interleaved({"copy": lambda: target.copy_(source)})["copy"]
    return 2 * source.numel() / statistics.median(samples) / 1000


def matmul_peak(args: list[Any]) -> float:
    """TFLOP/s of PyTorch's 8192^3 matmul on random data of the arguments' dtype."""
    dtype = next(a.dtype for a in args if isinstance(a, torch.Tensor) and a.dtype.is_floating_point)
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.float32).to(dtype) for _ in range(2))
    samples = interleaved({"matmul": lambda: a @ b})["matmul"]
    return 2 * n**3 / statistics.median(samples) / 1e6


def _differs(got: Any, want: Any) -> str | None:
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
