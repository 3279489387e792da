"""In the runner, offline: one call on tensors that have a shape and no memory. What it launches, what PyTorch does.

So a call of the size that is timed on a GPU is seen without a GPU, and without its gigabytes.
"""

from __future__ import annotations

from typing import Any

import torch

from grader import compiled_kernels, errors
from grader.dispatch_mode import DispatchMode


def sketched(runner: Any, message: dict[str, Any]) -> dict[str, Any]:
    """The compiled kernels of one call, as rows; each launch with its grid; bytes and calls of PyTorch's operations."""
    launches = runner.launches
    for tensors_on in ("meta", "cpu"):  # a custom operator launches nothing on meta; CPU memory is not touched either
        args = [_shaped(a["shaped"], tensors_on) if "shaped" in a else a["value"] for a in message["args"]]
        launches.kernels.clear()
        launches.grids.clear()
        launches._seen.clear()
        runner.tuners.new_call(None)
        try:
            runner.perform(args)  # an autotuner tries its configurations
            trials = [launch for launch in launches.grids if launch[2]]
            launches.grids.clear()
            with Moved() as moved:
                runner.perform(args)
        except BaseException as error:
            return errors.described(error, runner.path, "call", runner.module)
        if launches.grids:
            break
    return {
        "event": "sketched",
        "kernels": compiled_kernels.rows(launches.kernels, None),
        "launches": [
            {"kernel": kernel, "grid": [int(n) for n in grid], "trial": trial}
            for kernel, grid, trial in [*trials, *launches.grids][:MOST]
        ],
        "torch_bytes": moved.bytes,
        "torch_calls": moved.calls,
    }


MOST = 256  # launches that are told of


def _shaped(described: dict[str, Any], device: str) -> torch.Tensor:
    dtype = getattr(torch, described["dtype"])
    return torch.empty_strided(described["shape"], described["stride"], dtype=dtype, device=device)


class Moved(DispatchMode):
    """Bytes that PyTorch's operations read and write: every tensor that goes in and comes out, once."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.namespace == "aten" and not func.is_view and not func._schema.name.startswith(WITHOUT_WORK):
            self.bytes += sum(_extent(t) for t in _tensors([*args, *(kwargs or {}).values(), out]))
            self.calls += 1
        return out


# memory without a value, and what only names a tensor anew
WITHOUT_WORK = ("aten::empty", "aten::new_empty", "aten::detach", "aten::_reshape_alias", "aten::lift_fresh")


def _tensors(values: Any) -> list[torch.Tensor]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(value)
    return found


def _extent(tensor: torch.Tensor) -> int:
    """Bytes of the elements that are there: an expanded tensor's are few."""
    count = 1
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= n if stride else min(n, 1)
    return count * tensor.element_size()
