"""What carries out a replay's steps: the CUDA device; without one, a compiler that launches nothing."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from grader import triton_launches
from grader.memory_views import RunnerMemory
from grader.verified.record import Kernel


class Launcher(Protocol):
    """The device: what a replay needs of it."""

    memory: torch.Tensor | None  # the judge's arena, bytes

    def ready(self) -> None:
        """Make a context on the device."""

    def open(self, message: dict[str, Any]) -> None:
        """Open the arena by the judge's handle, in place of an earlier one."""

    def compile(self, path: Path, kernel: Kernel) -> Any: ...

    def parameters(self, compiled: Any) -> tuple[str, ...]: ...

    def launch(self, compiled: Any, grid: Sequence[int], arguments: Sequence[int | float]) -> None: ...

    def synchronize(self) -> None: ...

    def time(self, prepare: Callable[[int], None], perform: Callable[[], None], rounds: int) -> list[float]:
        """Microseconds of each round's `perform`, with a cold L2. `prepare` gets the round's number."""


class CudaLauncher:
    """The current CUDA device, through Triton's own launcher."""

    def __init__(self) -> None:
        self.memory: torch.Tensor | None = None

    def ready(self) -> None:
        torch.zeros(1, device="cuda")

    def open(self, message: dict[str, Any]) -> None:
        opened = RunnerMemory("cuda", None)
        opened.open(message)
        self.memory = opened.arena
        triton_launches.give_scratch(lambda size, align, stream: torch.empty(size, dtype=torch.int8, device="cuda"))

    def compile(self, path: Path, kernel: Kernel) -> Any:
        return triton_launches.compile_ttir(path, kernel.options)

    def parameters(self, compiled: Any) -> tuple[str, ...]:
        return triton_launches.parameters_of(compiled)

    def launch(self, compiled: Any, grid: Sequence[int], arguments: Sequence[int | float]) -> None:
        triton_launches.launch(compiled, grid, arguments)

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def time(self, prepare: Callable[[int], None], perform: Callable[[], None], rounds: int) -> list[float]:
        from grader.timing import L2_FLUSH_BYTES

        flush = torch.empty(L2_FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        marks = []
        for number in range(rounds):
            prepare(number)
            flush.zero_()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            perform()
            end.record()
            marks.append((begin, end))
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) * 1000 for begin, end in marks]


class OfflineLauncher:
    """Compiles for a GPU that is not there, on memory shared with the judge. Launches do nothing."""

    def __init__(self, target: str, memory_fd: int | None) -> None:
        self.target = target
        mapping = mmap.mmap(memory_fd, 0) if memory_fd is not None else bytearray(1)
        self.memory: torch.Tensor | None = torch.frombuffer(mapping, dtype=torch.uint8)

    def ready(self) -> None:
        pass

    def open(self, message: dict[str, Any]) -> None:
        pass  # it came with the process

    def compile(self, path: Path, kernel: Kernel) -> Any:
        return triton_launches.compile_ttir(path, kernel.options, self.target)

    def parameters(self, compiled: Any) -> tuple[str, ...]:
        return triton_launches.parameters_of(compiled)

    def launch(self, compiled: Any, grid: Sequence[int], arguments: Sequence[int | float]) -> None:
        pass

    def synchronize(self) -> None:
        pass

    def time(self, prepare: Callable[[int], None], perform: Callable[[], None], rounds: int) -> list[float]:
        raise RuntimeError("nothing can be timed without a GPU")
