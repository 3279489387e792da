"""Modules 2 and 8: what a launch costs, and what it is to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from benchmarks.questions.question import SOLUTIONS, Call, Place, Question, solution


@triton.jit
def twenty_more_kernel(
    x_ptr, y_ptr, out_ptr, n,
    s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18, s19,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """An add that takes twenty strides and uses none."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


@triton.jit
def relu_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """relu(2 * x + y)"""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    z = 2.0 * tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where(z < 0, 0.0, z), mask=mask)


def adding(place: Place, n: int, how: str) -> Callable[[], torch.Tensor]:
    x, y, out = place.normal(n), place.normal(n), place.empty(n)
    kernel = solution("02-first-kernel/vector_add").add_kernel
    grid = (triton.cdiv(n, 256),)
    strides = tuple(range(2, 22))

    def of_triton() -> torch.Tensor:
        kernel[grid](x, y, out, n, BLOCK=256)
        return out

    def with_strides() -> torch.Tensor:
        twenty_more_kernel[grid](x, y, out, n, *strides, BLOCK=256)
        return out

    def of_torch() -> torch.Tensor:
        return torch.add(x, y, out=out)

    run = {"triton": of_triton, "strides": with_strides, "torch": of_torch}[how]
    run.want = lambda: x + y  # type: ignore[attr-defined]
    return run


def launch(place: Place, inputs: Any, how: str) -> Call:
    run = adding(place, 256, how)
    return Call(run, run.want, clock="host", torch=how == "torch")  # type: ignore[attr-defined]


LAUNCH = Question(
    "launch-cost", "m02", "What does a warm launch of an add of 256 elements cost the CPU?",
    "m02.lesson.launch-cost assumes 10 µs, by name",
    {"Triton": {"how": "triton"}, "Triton, 20 more integers": {"how": "strides"}, "torch.add": {"how": "torch"}},
    launch, unit="µs a call",
)  # fmt: skip


def in_graph(place: Place, inputs: Any, how: str, clock: str) -> Call:
    run = adding(place, 4096, how)
    return Call(run, run.want, clock=clock, torch=how == "torch")  # type: ignore


GRAPH = Question(
    "cuda-graph", "m02", "How much faster is an add of 4096 elements as one of 100 nodes of a CUDA graph, a call?",
    "when is a graph worth it",
    {f"{name}, {where}": {"how": how, "clock": clock}
     for name, how in (("Triton", "triton"), ("torch.add", "torch"))
     for where, clock in (("loop", "host"), ("graph", "graph"))},
    in_graph, unit="µs a call", groups=2, options=("level", "2 to 4 times", "10 times"),
)  # fmt: skip


def small_relu(place: Place, inputs: Any, how: str, clock: str) -> Call:
    n = 1 << 10
    x, y, out = place.normal(n), place.normal(n), place.empty(n)

    def eager(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(2 * x + y)

    def kernel() -> torch.Tensor:
        relu_add_kernel[(1,)](x, y, out, n, BLOCK=1024)
        return out

    if how == "kernel":
        run = kernel
    else:
        called = torch.compile(eager, dynamic=False) if how == "compiled" and place.device == "cuda" else eager
        run = lambda: called(x, y)
    return Call(run, lambda: eager(x, y), clock=clock, torch=how != "kernel")  # type: ignore[arg-type]


SMALL = Question(
    "small-op", "m08", "relu(2 * x + y) of 1024 elements: what does a call cost, by how it is written?",
    "launch overhead: three launches, one through Dynamo's guards, one, and a graph of them",
    {"eager": {"how": "eager", "clock": "host"}, "torch.compile": {"how": "compiled", "clock": "host"},
     "one Triton kernel": {"how": "kernel", "clock": "host"}, "eager in a graph": {"how": "eager", "clock": "graph"},
     "one Triton kernel in a graph": {"how": "kernel", "clock": "graph"}},
    small_relu, unit="µs a call",
)  # fmt: skip

# Solutions whose first call is timed, in one process that has launched another kernel before
FIRST_CALLS = {
    "vector add": ("02-first-kernel/vector_add", "add", "[r(4096), r(4096)]"),
    "softmax": ("04-softmax-and-reductions/softmax", "softmax", "[r(256, 1024)]"),
    "matmul": ("06-blocked-matmul/matmul", "matmul", "[r(1024, 1024).half(), r(1024, 1024).half()]"),
    "attention": ("07-flash-attention/attention", "attention", "[r(1, 4, 1024, 128).half() for _ in range(3)]"),
}
PROGRAM = """
import importlib.util, json, sys, time, torch
def entry(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
def timed(call, args):
    torch.cuda.synchronize()
    started = time.perf_counter()
    call(*args)
    torch.cuda.synchronize()
    return time.perf_counter() - started
r = lambda *shape: torch.randn(*shape, device="cuda")
first = entry(*json.loads(sys.argv[1]))
timed(first, [r(64, 8), 0.5, 1.0])  # what the first kernel of all sets up is not this one's cost
print(json.dumps([timed(entry(path, name), eval(args)) for path, name, args in json.loads(sys.argv[2])]))
"""
AGAIN = 2  # processes with an empty cache, and as many with a full one


def first_calls(place: Place) -> dict[str, list[float]]:
    """Seconds of each first call, by kernel and state of Triton's cache on disk; empty until the first is asked for."""
    return {}


def measured(found: dict[str, list[float]]) -> None:
    kernels = [(str(SOLUTIONS / f"{file}.py"), name, args) for file, name, args in FIRST_CALLS.values()]
    first = json.dumps([str(SOLUTIONS / "02-first-kernel/affine_relu.py"), "affine_relu"])
    for _ in range(AGAIN):
        with tempfile.TemporaryDirectory() as cache:
            for state in ("empty", "full"):
                print(json.dumps({"event": "waiting"}), flush=True)  # to whoever takes silence for a hang
                done = subprocess.run(
                    [sys.executable, "-c", PROGRAM, first, json.dumps(kernels)],
                    env={**os.environ, "TRITON_CACHE_DIR": cache},
                    capture_output=True, text=True, timeout=120, check=False,
                )  # fmt: skip
                if done.returncode:
                    raise RuntimeError(done.stderr[-2000:])
                for name, seconds in zip(FIRST_CALLS, json.loads(done.stdout.splitlines()[-1]), strict=True):
                    found.setdefault(f"{name}, {state}", []).append(seconds)


def first_call(place: Place, found: dict[str, list[float]], key: str) -> Call:
    def run() -> list[float]:
        if not found:
            measured(found)
        return found[key]

    return Call(run, lambda: None, clock="process", torch=True)


COMPILE = Question(
    "compile-time", "m02", "What does a first call in a process cost, with an empty and with a full cache on disk?",
    "m02.lesson.cache: seconds against milliseconds",
    {f"{k}, {s}": {"key": f"{k}, {s}"} for k in FIRST_CALLS for s in ("empty", "full")},
    first_call, first_calls, groups=4, dry_skip="there is nothing to compile for in the interpreter",
)  # fmt: skip


def graph_break(place: Place, inputs: Any) -> Call:
    """What torch.compile(fullgraph=True) says of a function that asks a tensor's values which way to go."""
    x, y, out = place.normal(2000), place.normal(2000), place.empty(2000)
    kernel = solution("08-pytorch-integration/compiled_add").add_kernel

    def asks(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        kernel[(triton.cdiv(2000, 1024),)](x, y, out, 2000, BLOCK=1024)
        return torch.relu(out) if (out < 0).any() else out

    def run() -> str:
        try:
            torch.compile(asks, fullgraph=True)(x, y)
        except Exception as error:
            here = str(Path(__file__).resolve().parents[2])
            return f"{type(error).__name__}: {str(error).strip()}".replace(f"{here}/", "")[:2000]
        return "nothing: it ran"

    return Call(run, lambda: None, clock="says", torch=True)


BREAK = Question(
    "fullgraph-asks-a-value", "m08", "Does fullgraph=True refuse `if (out < 0).any()`, and in which words?",
    "a bug that the interpreter cannot show, where nothing is traced", {"fullgraph=True": {}}, graph_break,
    dry_skip="fullgraph is not traced in the interpreter",
)  # fmt: skip


@triton.jit
def nothing_kernel(out_ptr):
    tl.store(out_ptr, 1.0)


def floor(place: Place, inputs: Any, clock: str) -> Call:
    out = place.empty(1)

    def run() -> torch.Tensor:
        nothing_kernel[(1,)](out)
        return out

    return Call(run, lambda: torch.ones_like(out), clock=clock)  # type: ignore[arg-type]


FLOOR = Question(
    "event-floor", "m02", "What do events measure around a kernel that stores one number?",
    "what every other figure here by events contains, and a graph's does not",
    {"cold": {"clock": "cold"}, "warm": {"clock": "warm"}, "graph": {"clock": "graph"}}, floor,
)  # fmt: skip

QUESTIONS = (FLOOR, LAUNCH, GRAPH, COMPILE, SMALL, BREAK)
