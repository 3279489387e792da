"""A device for replays without a GPU: TTIR is compiled for sm_90, and known kernels are carried out by PyTorch.

A table maps a kernel's name to a function of its grid and its arguments by name. Arguments that were folded into the
TTIR, as integers equal to 1 are, are left out of the call.
"""

from __future__ import annotations

import ctypes
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from grader import triton_launches
from grader.case_runner import Buffers
from grader.verified.replayer import Replayer

Table = dict[str, Callable[..., None]]


DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "i1": torch.bool,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
}
PARAMETER = re.compile(r"%([\w.]+): (?:!tt\.ptr<(\w+)>|\w+)")


class Address(int):
    """A pointer argument: where it points, and to what."""

    dtype: torch.dtype


def at(address: Address, shape: tuple[int, ...], stride: tuple[int, ...] = (1,)) -> torch.Tensor:
    """The memory at an address as a tensor."""
    span = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    raw = (ctypes.c_char * (span * address.dtype.itemsize)).from_address(address)
    return torch.frombuffer(raw, dtype=address.dtype).as_strided(shape, stride)


class KnownKernels:
    def __init__(self, table: Table, arena: torch.Tensor) -> None:
        self.table, self.memory = table, arena
        self.launched: list[str] = []

    def open(self, message: dict[str, Any]) -> None:
        pass

    def compile(self, path: Path, kernel: Any) -> Any:
        entry = re.search(r"tt\.func public @\w+\((.*)\) attributes", kernel.ttir)
        assert entry is not None
        return kernel.name, PARAMETER.findall(entry[1]), triton_launches.compile_ttir(path, kernel.options, "sm_90")

    def parameters(self, compiled: Any) -> tuple[str, ...]:
        return triton_launches.parameters_of(compiled[2])

    def launch(self, compiled: Any, grid: Any, arguments: Any) -> None:
        name, parameters, _ = compiled
        self.launched.append(name)
        given = {}
        for (parameter, pointee), value in zip(parameters, arguments, strict=True):
            given[parameter] = value
            if pointee:
                given[parameter] = Address(value)
                given[parameter].dtype = DTYPES[pointee]
        self.table[name](grid, **given)

    def synchronize(self) -> None:
        pass

    def time(self, prepare: Callable[[int], None], perform: Callable[[], None], rounds: int) -> list[float]:
        for number in range(rounds):
            prepare(number)
            perform()
        return [10.0] * rounds


class Printed:
    def text(self) -> dict[str, Any]:
        return {"text": "", "bytes": 0, "truncated": False}


class HereProcess:
    """A replayer in this process, spoken to in JSON as if it were another one."""

    printed = Printed()

    def __init__(self, table: Table, buffers: Buffers, folder: Path) -> None:
        self.launcher = KnownKernels(table, buffers.arena)
        self.replayer = Replayer(self.launcher, folder)

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        return json.loads(json.dumps(self.replayer.answer(json.loads(json.dumps(message)))))

    def end(self) -> int:
        return 0
