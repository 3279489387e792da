"""A process of its own that times the settings of one ladder; run by `python -m benchmarks.ladders`.

Reads one JSON job from stdin: `device`, `settings` (names) and `excluded` (setting to candidates that failed before).
Writes JSON lines: `ready`, then for each setting `trying` for each candidate, `failed` where one raises or is wrong,
and `timed`. A candidate that hangs or breaks the GPU ends this process only; the last `trying` names it.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.ladders.settings import COMPILED, SETTINGS, Rung, Setting
from grader import timing
from grader.problem import Draw
from grader.ranking import summary

Call = Callable[[], Any]
SEED = 20
TRIES = 3  # calls before a candidate is trusted in the rounds, where nobody could say which one hung


def emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def inputs(setting: Setting, device: str) -> list[Any]:
    """Standard normal tensors: x · a, b · q, k, v. For rms_norm x, a weight from 0.5 to 2, eps."""
    draw, dtype = Draw(SEED, device), getattr(torch, setting.dtype)
    shape = setting.shape if device == "cuda" else setting.dry
    if setting.ladder == "rms_norm":
        return [draw.normal(*shape, dtype=dtype), draw.uniform(shape[1], low=0.5, high=2.0, dtype=dtype), 1e-6]
    if setting.ladder == "softmax":
        shapes = [shape]
    elif setting.ladder == "matmul":
        m, n, k = shape
        shapes = [(m, k), (k, n)]
    else:
        shapes = [shape] * 3
    return [draw.normal(*each, dtype=dtype) for each in shapes]


def unfused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> torch.Tensor:
    """Attention as separate operations; q, k, v [B, H, N, D]."""
    s = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    if causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).triu(1), float("-inf"))
    return torch.softmax(s, dim=-1) @ v


def norms(args: list[Any], compiled: bool) -> dict[str, Call]:
    x, weight, eps = args

    def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)

    calls: dict[str, Call] = {"F.rms_norm": lambda: norm(x, weight)}
    if compiled:
        torch.compiler.reset()  # for each size a kernel of its own
        fused = torch.compile(norm, dynamic=False)
        calls[COMPILED] = lambda: fused(x, weight)
    return calls


def library(setting: Setting, args: list[Any], device: str) -> dict[str, Call]:
    """PyTorch's calls by name. The first gives the values that all others are compared with."""
    if setting.ladder == "softmax":
        return {"torch.softmax": lambda: torch.softmax(args[0], dim=1)}
    if setting.ladder == "rms_norm":
        return norms(args, compiled=COMPILED not in setting.skipped(device))
    if setting.ladder == "matmul":
        return {"torch.matmul": lambda: args[0] @ args[1]}
    causal = setting.exercises == ("causal_attention",)

    def by(backend: SDPBackend) -> Call:
        def call() -> torch.Tensor:
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(*args, is_causal=causal)

        return call

    return {
        "unfused PyTorch": lambda: unfused(*args, causal=causal),
        "SDPA flash": by(SDPBackend.FLASH_ATTENTION),
        "SDPA cuDNN": by(SDPBackend.CUDNN_ATTENTION),
    }


def submission(rung: Rung, args: list[Any], programs: int) -> Call:
    """The rung's function on these inputs. Imports its file."""
    spec = importlib.util.spec_from_file_location(rung.path.stem, rung.path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entry = getattr(module, rung.exercise)
    more = (programs,) if rung.exercise == "persistent_matmul" else ()
    return lambda: entry(*args, *more)


def work(setting: Setting, args: list[Any]) -> tuple[int, int]:
    """The least bytes through device memory, and the FLOPs of the products (softmax, rms_norm: none are counted)."""
    if setting.ladder == "softmax":
        return 2 * args[0].nbytes, 0
    if setting.ladder == "rms_norm":
        return 2 * args[0].nbytes + args[1].nbytes, 0
    if setting.ladder == "matmul":
        (m, k), n = args[0].shape, args[1].shape[1]
        return 2 * (m * k + k * n + m * n), 2 * m * n * k
    batch, heads, n, d = args[0].shape
    pairs = n * (n + 1) // 2 if setting.exercises == ("causal_attention",) else n * n
    return 4 * args[0].nbytes, 4 * batch * heads * pairs * d


class Device:
    """Where the candidates run, and its clock: none in a dry run."""

    def __init__(self, name: str) -> None:
        self.name = name
        cuda = name == "cuda"
        self.programs = torch.cuda.get_device_properties(0).multi_processor_count if cuda else 4
        self.title = torch.cuda.get_device_name() if cuda else "dry run on the CPU"

    def wait(self) -> None:
        if self.name == "cuda":
            torch.cuda.synchronize()

    def limits(self) -> dict[str, float]:
        if self.name != "cuda":
            return {}
        peak = timing.matmul_peak([torch.empty(0, dtype=torch.float16)])
        return {"copy_gb_per_s": timing.copy_bandwidth(), "matmul_tflop_per_s": peak}

    def samples(self, candidates: dict[str, Call], rounds: timing.Rounds) -> dict[str, list[float]]:
        """Microseconds; in a dry run none, after one round."""
        if self.name == "cuda":
            return timing.interleaved(candidates, rounds)
        assert rounds.move is not None
        rounds.move()
        rounds.last = {name: call() for name, call in candidates.items()}
        return {name: [] for name in candidates}


def sound(setting: Setting, name: str, call: Call, want: Any, device: Device) -> bool:
    """Whether the candidate runs and is right. Says why not. Ends the process where the device is broken."""
    emit("trying", setting=setting.name, candidate=name)
    try:
        for _ in range(TRIES if device.name == "cuda" else 1):
            out = call()
            device.wait()
        wrong = None if want is None else timing.differs(out, want)
    except Exception as error:
        wrong = timing.errors_line(error)
    if wrong is None:
        return True
    emit("failed", setting=setting.name, candidate=name, why=wrong)
    device.wait()  # raises again after a fault: nothing that runs in this process would be right any more
    return False


def time_setting(setting: Setting, device: Device, excluded: list[str], limits: dict[str, float]) -> None:
    emit("trying", setting=setting.name, candidate=None)
    args = inputs(setting, device.name)
    calls = library(setting, args, device.name)
    reference = next(iter(calls))
    calls |= {rung.label: submission(rung, args, device.programs) for rung in setting.rungs(device.name)}
    want = calls[reference]()
    candidates = {
        name: call
        for name, call in calls.items()
        if name not in excluded and sound(setting, name, call, None if name == reference else want, device)
    }
    del want
    emit("trying", setting=setting.name, candidate=None)
    rounds = timing.Rounds(timing.moving_on(args))
    samples = device.samples(candidates, rounds)
    rows = {}
    for name, values in samples.items():
        row: dict[str, Any] = {"wrong": timing.differs(rounds.last[name], rounds.last[reference])}
        if values:
            row |= dict(zip(("median_us", "p20_us", "p80_us"), summary(values), strict=True), rounds=len(values))
        rows[name] = row
    nbytes, flops = work(setting, args)
    emit("timed", setting=setting.name, rows=rows, bytes=nbytes, flops=flops, limits=limits)


def main() -> None:
    job = json.loads(sys.stdin.readline())
    if job["device"] == "cuda" and not torch.cuda.is_available():
        sys.exit(3)
    if job["device"] == "cpu":
        from grader.triton_adapter import mend_index
        from grader.triton_autotuner import use_own_benchmark

        assert os.environ.get("TRITON_INTERPRET") == "1"
        mend_index()
        use_own_benchmark(1)
    device = Device(job["device"])
    versions = {"torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]}
    emit("ready", device=device.title, versions=versions)
    limits = device.limits() if job["settings"] else {}
    for setting in SETTINGS:
        if setting.name in job["settings"]:
            time_setting(setting, device, job["excluded"].get(setting.name, []), limits)
            gc.collect()


if __name__ == "__main__":
    main()
