"""Compiles the kernels of a ladder's rung for sm_90 at a size of the benchmark, for what the ladder lessons say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache

from benchmarks.ladders.settings import rungs
from tests.evidence.run import compiled
from tests.evidence.test_m05_resources import USAGE

# Launches go through run(); memory that nobody touches costs nothing.
WATCH = r"""
import json
from grader.offline import ASYNC_COPY, TENSOR_CORE
from triton.runtime.jit import JITFunction

launched = []
run = JITFunction.run
def watched(self, *args, **options):
    kernel = run(self, *args, **options)
    launched.append((self.__name__, kernel))
    return kernel
JITFunction.run = watched

def half(*shape):
    return torch.empty(shape, dtype=torch.float16)
"""
REPORT = r"""
def in_flight(ptx):
    count = pending = 0
    for event in re.findall(r"wgmma.commit_group|wgmma.wait_group\S*\s+\d+|ex2.approx", ptx):
        if event.startswith("wgmma.commit"):
            pending += 1
        elif event.startswith("wgmma.wait"):
            pending = min(pending, int(event.split()[-1]))
        else:
            count += pending > 0
    return count

for name, kernel in launched:
    ptx = kernel.asm["ptx"]
    counts = [len(regex.findall(ptx)) for regex in (TENSOR_CORE, ASYNC_COPY)]
    words = {w: ptx.count(w) for w in ("wgmma.mma_async", "cp.async.bulk.tensor", "setmaxnreg", "ex2.approx", "mul.f32",
                                       "fma.rn.f32", "sub.f32", "div.full", "shfl.sync", "bar.sync", "tensormap",
                                       "ld.global", "evict_last.L2::cache_hint", "evict_first.L2::cache_hint")}
    print(json.dumps([name, *usage(kernel), kernel.metadata.num_warps, *counts, words, in_flight(ptx),
                      kernel.metadata.global_scratch_size]))
"""
CALLS = {
    "softmax": "softmax(half({shape}))",
    "rms_norm": "x = torch.empty(({shape}), dtype=torch.bfloat16); rms_norm(x, x[0], 1e-6)",
    "matmul": "matmul(half({shape}), half({shape}))",
    "grouped_matmul": "grouped_matmul(half({shape}), half({shape}))",
    "persistent_matmul": "persistent_matmul(half({shape}), half({shape}), 132)",
    "attention": "attention(half({shape}), half({shape}), half({shape}))",
    "causal_attention": "causal_attention(half({shape}), half({shape}), half({shape}))",
}


@dataclass(frozen=True)
class Compiled:
    kernel: str
    registers: int  # a thread
    stack: int  # bytes a thread: spilled values
    shared: int  # bytes a program
    warps: int
    tensor_core_ops: int  # in the code, not executed
    async_copies: int
    words: dict[str, int]  # how often each occurs in the PTX
    exps_in_flight: int  # exponentials that the PTX has between the start of a wgmma and the wait for it
    scratch: int  # bytes a program in global memory, for descriptors


@cache
def kernels(ladder: str, number: int, *shape: int, before: str = "") -> tuple[Compiled, ...]:
    """The kernels that one call of the rung launches, its inputs of `shape`. `before`: run before the call."""
    rung = rungs(ladder)[number - 1]
    call = CALLS[rung.exercise].format(shape=", ".join(map(str, shape)))
    out = compiled(USAGE + rung.path.read_text() + WATCH + before + "\n" + call + "\n" + REPORT)
    return tuple(Compiled(*json.loads(line)) for line in out.splitlines())
