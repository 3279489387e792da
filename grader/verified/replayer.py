"""The replayer: a trusted process of its own that carries out records on the judge's memory.

It is forked from the warm process as a runner is, and never sees the learner's file. What it compiles and launches
comes from a record, so it may crash or hang: then only it ends. It holds no reference, no expected value and no seed.
"""

from __future__ import annotations

import ctypes
import gc
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import torch

from grader import cores, guards
from grader.guards import Region
from grader.protocol import Channel, Lost
from grader.verified import record as form
from grader.verified.launchers import CudaLauncher, Launcher, OfflineLauncher

PR_SET_DUMPABLE = 4


class Replayer:
    """Answers the judge. Errors of a kernel come back as messages; what kills the process, the judge sees."""

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self.launcher, self.folder = launcher, folder
        self.text = ""
        self.kept: list[tuple[form.Record, list[Future[Any]]]] = []  # with its kernels, as they get compiled
        self.pool = ThreadPoolExecutor(cores.count())  # the compiler lets go of Python's lock
        self.compiles: dict[str, Future[Any]] = {}
        self.record: form.Record | None = None
        self.compiled: list[Any] = []
        self.baselines: Callable[[], dict[str, Any]] = _failing(RuntimeError("nothing is prepared"))

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        handler = getattr(self, f"_{message.get('op')}", None) if message.get("op") in OPERATIONS else None
        if handler is None:
            return {"event": "error", "status": "infrastructure_error", "message": "unknown operation"}
        try:
            return handler(message)
        except Exception as error:
            traceback.print_exc()
            return _described(error)

    def _ready(self, message: dict[str, Any]) -> dict[str, Any]:
        self.launcher.ready()
        return {"event": "ready"}

    def _forget(self, message: dict[str, Any]) -> dict[str, Any]:
        self.launcher.memory = None
        return {"event": "forgotten"}

    def _memory(self, message: dict[str, Any]) -> dict[str, Any]:
        self.launcher.open(message)
        return {"event": "memory"}

    def _record(self, message: dict[str, Any]) -> dict[str, Any]:
        """A record comes in parts; after the last one its kernels begin to be compiled."""
        self.text += message["text"]
        if not message["last"]:
            return {"event": "more"}
        text, self.text = self.text, ""
        record = form.parse(text)
        self.kept.append((record, [self._compiling(kernel) for kernel in record.kernels]))
        return {"event": "kept", "number": len(self.kept) - 1}

    def _compiling(self, kernel: form.Kernel) -> Future[Any]:
        key = msgspec.json.encode(kernel).decode()
        if key not in self.compiles:
            path = self.folder / f"kernel-{len(self.compiles)}.ttir"
            path.write_text(kernel.ttir)
            self.compiles[key] = self.pool.submit(self.launcher.compile, path, kernel)
        return self.compiles[key]

    def _use(self, message: dict[str, Any]) -> dict[str, Any]:
        """The record that is replayed from now on."""
        self.record, self.compiled = None, []
        record, kernels = self.kept[int(message["number"])]
        self.compiled = [kernel.result() for kernel in kernels]
        self.record = record
        for step in record.steps:
            if isinstance(step, form.Launch):
                self._check_arguments(step)
        return {"event": "compiled"}

    def _check_arguments(self, launch: form.Launch) -> None:
        assert self.record is not None
        wanted = self.launcher.parameters(self.compiled[launch.kernel])
        # TTIR has no unsigned integers
        given = tuple("*" if isinstance(a, form.Pointer) else a.type.replace("u", "i") for a in launch.arguments)
        if wanted != given:
            name = self.record.kernels[launch.kernel].name
            raise form.Malformed(f"{name} takes {', '.join(wanted)}, and is launched with {', '.join(given)}")

    def _replay(self, message: dict[str, Any]) -> dict[str, Any]:
        perform = self._steps(_regions(message["places"]), launches=bool(message["launches"]))
        started = time.perf_counter()
        perform()
        self.launcher.synchronize()
        return {"event": "replayed", "seconds": time.perf_counter() - started}

    def _time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Rounds on inputs shifted anew each time, so that no round can use an earlier one's answer.

        `inputs` are (place, dtype, shift by shift) of the arguments that may be shifted; `fresh` places are poisoned.
        """
        regions = _regions(message["places"])
        arena = self.launcher.memory
        assert arena is not None
        perform = self._steps(regions, launches=True)
        inputs = []
        for number, shifts in message["inputs"]:
            flat = guards.view(arena, _flat(regions[number]))
            inputs.append((flat, flat.clone(), shifts))
        fresh = [regions[number] for number in message["fresh"]]

        def prepare(round_number: int) -> None:
            for flat, pristine, shifts in inputs:
                moved_on(flat, pristine, shifts[round_number] if shifts else 0)
            for region in fresh:
                guards.poison(arena, region)

        samples = self.launcher.time(prepare, perform, int(message["rounds"]))
        return {"event": "timed", "samples": samples}

    def _steps(self, regions: list[Region], launches: bool) -> Callable[[], None]:
        """The record as one call, with addresses and views worked out beforehand."""
        record, arena, launcher = self.record, self.launcher.memory, self.launcher
        if record is None or arena is None:
            raise form.Malformed("no record, or no memory")
        base = arena.data_ptr()
        calls: list[Callable[[], Any]] = []
        for step in record.steps:
            if isinstance(step, form.Launch):
                arguments = [_argument(a, base, regions) for a in step.arguments]
                if launches:
                    calls.append(_bound(launcher.launch, self.compiled[step.kernel], step.grid, arguments))
            elif isinstance(step, form.Fill):
                calls.append(_bound(_view(arena, step.to, regions).fill_, step.value.number()))
            else:
                source = _view(arena, step.source, regions)
                calls.append(_bound(_view(arena, step.to, regions).copy_, source))

        def perform() -> None:
            for call in calls:
                call()

        return perform

    def _prepare(self, message: dict[str, Any]) -> dict[str, Any]:
        from grader.timing import prepared_baselines

        try:
            self.baselines = prepared_baselines(message)
        except Exception as error:
            self.baselines = _failing(error)  # told where their times are missed
            raise
        return {"event": "prepared"}

    def _release(self, message: dict[str, Any]) -> dict[str, Any]:
        self.baselines = _failing(RuntimeError("nothing is prepared"))
        gc.collect()
        torch.cuda.empty_cache()
        return {"event": "released"}

    def _baselines(self, message: dict[str, Any]) -> dict[str, Any]:
        return self.baselines()


OPERATIONS = {"ready", "memory", "forget", "record", "use", "replay", "time", "prepare", "baselines", "release"}


def _failing(error: Exception) -> Callable[[], dict[str, Any]]:
    def measure() -> dict[str, Any]:
        raise error

    return measure


def moved_on(target: torch.Tensor, source: torch.Tensor, shift: int) -> None:
    """Write a flat tensor's elements `shift` places further on, those past the end to the start. 0 <= shift < size."""
    count = source.numel()
    target[:shift].copy_(source[count - shift :])
    target[shift:].copy_(source[: count - shift])


def _bound(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)


def _view(arena: torch.Tensor, view: form.View, regions: list[Region]) -> torch.Tensor:
    return guards.view(arena, view.region(regions))


def _argument(argument: form.Pointer | form.Scalar, base: int, regions: list[Region]) -> int | float:
    if isinstance(argument, form.Scalar):
        return argument.number()
    return 0 if argument.buffer is None else base + regions[argument.buffer].offset + argument.offset


def _regions(places: list[dict[str, Any]]) -> list[Region]:
    return [Region(p["offset"], tuple(p["shape"]), tuple(p["stride"]), getattr(torch, p["dtype"])) for p in places]


def _flat(region: Region) -> Region:
    return Region(region.offset, (region.span,), (1,), region.dtype)


def _described(error: Exception) -> dict[str, Any]:
    """What the device or the compiler said, in the words of a verdict."""
    text = f"{type(error).__name__}: {error}"[:1500]
    if isinstance(error, form.Malformed):
        return {"event": "error", "status": "crashed", "cause": "crashed", "message": text}
    if type(error).__name__ in ("OutOfMemoryError", "OutOfResources"):
        cause = "out_of_memory" if "Memory" in type(error).__name__ else "out_of_resources"
        return {"event": "error", "status": "runtime_error", "cause": cause, "message": text}
    return {"event": "error", "status": "runtime_error", "cause": None, "message": text}


def serve(mode: str, spec: dict[str, Any], sock: Any, memory_fd: int | None) -> None:
    """Answer the judge until it closes."""
    # a process that a learner's file left behind must not read or write this one's memory
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    channel = Channel(sock)
    launcher = CudaLauncher() if mode == "cuda" else OfflineLauncher(spec["target"], memory_fd)
    replayer = Replayer(launcher, Path(spec["scratch"]))
    while True:
        try:
            channel.send(replayer.answer(channel.receive()))
        except Lost:
            return
