"""Whether a changed solution is still right, known without the grader: a slow comparison on a broad product of inputs.

    python -m benchmarks.mutation.truth interpreter|compile      JSON lines {"exercise", "file"} in, answers out

The process imports torch and triton once, draws each exercise's inputs and float64 references once, and forks a child
for every file. Neither the judge nor its comparison decides here: only the problem's reference and the fields of its
tolerance are used, and the adapter's hooks as instruments (accesses outside an argument, lanes without `other`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.mutation.reference import Call, distance, expect, perform

CALL_SECONDS, FILE_SECONDS = 20, 600
MEMORY_MB = 6144
GUARD = 4096  # elements before and after an argument
SM_90_SHARED = 227 * 1024  # bytes a program can have
INT_GAP = 113  # what lies between and around the elements of an integer argument


class Wrong(Exception):
    """This file is different: why."""


class Hang(BaseException):
    pass


# -- one file -----------------------------------------------------------------------------


def placed(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The value with its strides inside a buffer whose other elements are NaN (or odd numbers); and the buffer."""
    span = 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True)) if value.numel() else 0
    gap = float("nan") if value.is_floating_point() else INT_GAP
    buffer = torch.full((span + 2 * GUARD,), True if value.dtype == torch.bool else gap, dtype=value.dtype)
    view = buffer[GUARD:].as_strided(value.shape, value.stride(), GUARD) if span else value.clone()
    for dimension, stride in enumerate(value.stride() if span else ()):
        if stride == 0:
            value, view = value.narrow(dimension, 0, 1), view.narrow(dimension, 0, 1)
    if span:
        view.copy_(value)
    return buffer, view


class Comparison:
    """All calls of one exercise, on one imported file."""

    def __init__(self, problem: Any, module: Any, watch: Any, tuning: Any) -> None:
        self.problem, self.module, self.watch, self.tuning = problem, module, watch, tuning
        self.entry = getattr(module, problem.entry)
        self.worst = 0.0

    def check(self, call: Call, repeats: int = 2) -> None:
        """Raises Wrong."""
        args, buffers = [], []
        for value in call.args:
            if not isinstance(value, torch.Tensor):
                args.append(value)
                continue
            buffer, view = placed(value)
            args.append(view.as_strided(value.shape, value.stride()) if value.numel() else view)
            buffers.append((buffer, buffer.view(torch.uint8).clone()))
        self.watch.undefined = 0
        for turn in range(repeats):
            self._once(call, args, buffers, "poison", "" if turn == 0 else ", the second time")
        if self.watch.undefined:
            self._once(call, args, buffers, "huge", ", with huge values in masked-off lanes")

    def _once(self, call: Call, args: list[Any], buffers: list[Any], filler: str, when: str) -> None:
        self.watch.filler = filler
        signal.setitimer(signal.ITIMER_PROF, CALL_SECONDS)  # of processor time: the machine may be busy
        try:
            outputs = perform(self.problem, self.entry, tuple(args))
        except Hang:
            if call.large:
                return  # thousands of small programs, not an endless loop: nothing is known of this call
            raise Wrong(f"hangs{when}") from None
        except Exception as error:
            raise Wrong(
                f"raises {type(error).__name__}{when}: {str(error).splitlines()[0][:160] if str(error) else ''}"
            ) from error
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if len(outputs) != len(call.expected):
            raise Wrong(f"{len(outputs)} outputs")
        for position, (out, expected) in enumerate(zip(outputs, call.expected, strict=True)):
            if not isinstance(out, torch.Tensor):
                raise Wrong(f"returns {type(out).__name__}")
            if out.shape != expected.native.shape or out.dtype != expected.native.dtype:
                raise Wrong(f"output {position} is {tuple(out.shape)} {out.dtype}")
            if position == 0 and self.problem.contiguous and not out.is_contiguous():
                raise Wrong("the result is not contiguous")
            ratio = distance(out.detach(), expected)
            if ratio > 2:
                raise Wrong(f"output {position} is off by {ratio:.3g} bounds{when}")
            self.worst = max(self.worst, ratio)
        for buffer, before in buffers:
            if not torch.equal(buffer.view(torch.uint8), before):
                raise Wrong(f"an input or its surroundings changed{when}")

    def all(self, calls: list[Call]) -> dict[str, Any]:
        tuners = self.tuning.tuners(self.module)
        call = None
        try:
            for pick in range(max((len(t.configs) for t in tuners), default=1)):
                self.tuning.choose(self.module, pick)
                for number, call in enumerate(calls if pick == 0 else calls[::4]):
                    twice = pick == 0 and not call.large and number < 30
                    self.check(call, repeats=2 if twice else 1)
            call = None
            if self.problem.call == "operator":
                self._operator(calls)
        except Wrong as wrong:
            truth = "different" if call is None else call.blame
            return {"truth": truth, "why": str(wrong), "call": call.name if call else ""}
        if self.worst > 1:
            return {"truth": "borderline", "why": f"off by {self.worst:.3g} bounds", "call": ""}
        self.watch.order = "reversed"
        self.tuning.choose(self.module, 0)
        try:
            for call in calls[::3]:
                if not call.large:
                    self.check(call, repeats=1)
        except Wrong as wrong:
            return {"truth": "race", "why": f"programs in reverse order: {wrong}", "call": call.name if call else ""}
        return {"truth": "equal", "why": "", "call": "", "worst": self.worst}

    def _operator(self, calls: list[Call]) -> None:
        for call in [c for c in calls if c.args[0].numel()][:1]:
            for test in ("test_schema", "test_autograd_registration"):
                try:
                    torch.library.opcheck(self.entry, (call.args[0].clone().requires_grad_(),), test_utils=test)
                except Exception as error:
                    raise Wrong(f"opcheck {test}: {type(error).__name__}") from error


def compiled(problem: Any, module: Any, launches: Any, calls: list[Call]) -> dict[str, Any]:
    """Whether every kind of call compiles for sm_90 and fits into it."""
    for call in sorted(representative(calls), key=lambda call: call.large):
        try:
            perform(problem, getattr(module, problem.entry), call.args)
        except Exception as error:
            first = str(error).strip().splitlines()
            return {
                "truth": "only large" if call.large else "different",
                "why": f"does not compile: {type(error).__name__}: {first[-1][:160] if first else ''}",
                "call": call.name,
            }
    for kernel in launches.kernels:
        if kernel.metadata.shared > SM_90_SHARED:
            why = f"{kernel.metadata.name} needs {kernel.metadata.shared} bytes of shared memory: it would not load"
            return {"truth": "different", "why": why, "call": ""}
    return {"truth": "equal", "why": "", "call": ""}


def representative(calls: list[Call]) -> list[Call]:
    """The largest call of each kind: dtypes, width of a head, all sizes multiples of 16, very large."""
    kinds: dict[Any, Call] = {}
    for call in calls:
        tensors = [a for a in call.args if isinstance(a, torch.Tensor)]
        if any(t.numel() == 0 for t in tensors):
            continue
        even = all(n % 16 == 0 for t in tensors for n in t.shape)
        width = tensors[0].shape[-1] if tensors[0].dim() == 4 else 0
        large = call.expected[0].native.numel() // 400_000
        block = [a for a in call.args if isinstance(a, int)]
        key = (tuple(t.dtype for t in tensors), even, width, large, tuple(block))
        old = kinds.get(key)
        if old is None or sum(t.numel() for t in tensors) > sum(
            t.numel() for t in old.args if isinstance(t, torch.Tensor)
        ):
            kinds[key] = call
    return list(kinds.values())


# -- the process --------------------------------------------------------------------------


def load(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("mutant", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutant"] = module
    spec.loader.exec_module(module)
    return module


class Truth:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.known: dict[str, tuple[Any, list[Call]]] = {}
        self.left_out: dict[str, list[str]] = {}

    def calls(self, exercise: str) -> tuple[Any, list[Call]]:
        """The problem and its calls, without those on which the solution itself is wrong (bfloat16 arithmetic)."""
        from benchmarks.mutation import inputs
        from grader.catalog import find
        from grader.grade import load_problem

        if exercise not in self.known:
            files = find(exercise)
            problem = load_problem(files)
            if problem.call == "operator":  # opcheck's imports cost seconds: here, not in every child
                import torch.testing._internal.optests  # noqa: F401
            calls = [Call(name, args, expect(problem, args)) for name, args in inputs.calls(exercise)]
            self.left_out[exercise] = []
            if self.mode == "interpreter":
                answer = self.in_child(lambda: self._unfit(problem, str(files.solution), calls))
                self.left_out[exercise] = answer["unfit"]
                calls = [call for call in calls if call.name not in answer["unfit"]]
            calls.sort(key=lambda call: (call.half_known, call.large))
            self.known[exercise] = (problem, calls)
        return self.known[exercise]

    def _unfit(self, problem: Any, file: str, calls: list[Call]) -> dict[str, Any]:
        comparison = self._comparison(problem, file)
        unfit = []
        for call in calls:
            comparison.worst = 0.0
            try:
                comparison.check(call)
            except Wrong:
                unfit.append(call.name)
            if comparison.worst > 1:
                unfit.append(call.name)
        return {"unfit": unfit}

    def _comparison(self, problem: Any, file: str) -> Comparison:
        from benchmarks.mutation.triton_tuning import Tuning
        from grader import triton_adapter

        watch = triton_adapter.watch_interpreter(file)
        triton_adapter.allow_interpreted_in_torch_library()
        tuning = Tuning()
        return Comparison(problem, load(file), watch, tuning)

    def answer(self, exercise: str, file: str) -> dict[str, Any]:
        problem, calls = self.calls(exercise)
        started = time.perf_counter()
        found = self.in_child(lambda: self._judge(problem, file, calls))
        return {
            **found,
            "seconds": round(time.perf_counter() - started, 2),
            "calls": len(calls),
            "left_out": self.left_out[exercise],
        }

    def _judge(self, problem: Any, file: str, calls: list[Call]) -> dict[str, Any]:
        try:
            if self.mode == "compile":
                from grader import triton_adapter

                triton_adapter.use_stand_in_driver("sm_90")
                triton_adapter.use_own_benchmark(runs=1, every_key=False)
                launches = triton_adapter.watch_launches("compile")
                return compiled(problem, load(file), launches, calls)
            comparison = self._comparison(problem, file)
        except Exception as error:
            return {
                "truth": "different",
                "why": f"cannot be imported: {type(error).__name__}: {error}"[:200],
                "call": "",
            }
        return comparison.all(calls)

    def in_child(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, 1)
                pages = int(Path("/proc/self/statm").read_text().split()[0])
                most = pages * resource.getpagesize() + MEMORY_MB * 2**20
                resource.setrlimit(resource.RLIMIT_AS, (most, most))
                signal.signal(signal.SIGPROF, _hang)
                os.write(write, json.dumps(work()).encode())
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(write)
        data, until = b"", time.monotonic() + FILE_SECONDS
        while select.select([read], [], [], max(0.0, until - time.monotonic()))[0]:
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            data += piece
        timed_out = time.monotonic() >= until
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(read)
        if data:
            return json.loads(data)
        return {"truth": "different", "why": "hangs" if timed_out else "the process died", "call": ""}


def _hang(*_: Any) -> None:
    raise Hang


def main() -> None:
    mode = sys.argv[1]
    os.environ["TRITON_INTERPRET"] = "1" if mode == "interpreter" else "0"
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(prefix="triton-prep-truth-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        import triton.language  # noqa: F401

        torch.set_num_threads(1)
        # empty tensors come filled with NaN, or with the largest integer
        torch.use_deterministic_algorithms(True)
        truth = Truth(mode)
        for line in sys.stdin:
            request = json.loads(line)
            replies.write(json.dumps(truth.answer(request["exercise"], request["file"])) + "\n")


if __name__ == "__main__":
    main()
