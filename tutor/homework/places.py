"""Where grades run. A place takes work by content and gives back what came of it, in any order."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from grader import cores
from grader.process_tree import descendants, end_all
from tutor.grading import Failed, Grader, GradeRequest, GraderLost, VerdictReady
from tutor.homework.turns import Seat, SharingGrader, TurnKeeper
from tutor.homework.work import CannotGrade, Facts, Graded, Work

PR_SET_CHILD_SUBREAPER = 36
GOES = 2  # tries of a piece of work whose grader was lost
PATIENCE = 60.0  # seconds for a cancelled grade to end before its grader is ended


class Place(Protocol):
    async def facts(self) -> Facts:
        """Raises CannotGrade."""
        ...

    def submit(self, work: Work) -> None: ...

    def collect(self) -> AsyncIterator[Graded]:
        """One Graded for each submitted piece of work, as they end; ends when none is left. More may be submitted
        while it is read."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True)
class Slot:
    """A grader, and where it grades."""

    grader: Grader
    gpu: str = ""  # as CUDA_VISIBLE_DEVICES names it
    seat: Seat | None = None  # at a GPU that others use too

    @property
    def waited(self) -> float:
        """Seconds, so far, that no grade of its own took."""
        return self.seat.waited if self.seat is not None else 0.0

    def reserved(self) -> contextlib.AbstractAsyncContextManager[None]:
        """Nobody else uses its GPU."""
        return self.seat.reserved() if self.seat is not None else contextlib.nullcontext()


class Local:
    """Grader processes on this machine: `workers` on the CPU, or on each of some GPUs.

    Those of one GPU take turns: together while they judge values, one alone while it measures. All take from one queue.
    """

    def __init__(self, workers: int, devices: Sequence[str] = (), *, alone: bool = False) -> None:
        """`devices`: one GPU each. `alone`: nothing else starts processes from this one, so that what lost graders
        leave can be ended."""
        self._alone = alone
        self._cores = max(1, (os.cpu_count() or 1) // max(1, workers * len(devices)))  # for each grader
        self._keepers = {device: TurnKeeper() for device in devices} if workers > 1 else {}
        # GPU by GPU: little work is spread over all of them
        self._slots = [self._slot(device) for _ in range(max(1, workers)) for device in devices or ("",)]
        self._waiting: asyncio.Queue[Work] = asyncio.Queue()
        self._ended: asyncio.Queue[Graded] = asyncio.Queue()
        self._open = 0
        self._starting = 0
        self._tasks: list[asyncio.Task[None]] = []

    def _slot(self, device: str) -> Slot:
        if not device:
            return Slot(Grader())
        environment = {"CUDA_VISIBLE_DEVICES": device, cores.VARIABLE: str(self._cores)}
        if device not in self._keepers:
            return Slot(Grader(environment=environment), device)
        seat = self._keepers[device].seat()
        return Slot(SharingGrader(environment, seat), device, seat)

    async def facts(self) -> Facts:
        if self._alone:
            _adopt_orphans()
        try:
            ready = await self._slots[0].grader.start()
        except GraderLost as error:
            raise CannotGrade(str(error)) from error
        if ready.backend == "none":
            raise CannotGrade(ready.reason)
        return Facts(ready.backend, ready.device, ready.versions)

    def submit(self, work: Work) -> None:
        self._open += 1
        self._waiting.put_nowait(work)

    async def collect(self) -> AsyncIterator[Graded]:
        # no more graders than work: each holds about 0.7 GB
        self._tasks = [asyncio.create_task(self._serve(slot)) for slot in self._slots[: max(1, self._open)]]
        while self._open:
            graded = await self._next()
            self._open -= 1
            yield graded

    async def _next(self) -> Graded:
        """Raises what a server task raised, rather than waiting for ever for its result."""
        waiting = asyncio.ensure_future(self._ended.get())
        done, _ = await asyncio.wait([waiting, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        if waiting in done:
            return waiting.result()
        waiting.cancel()
        for task in done:
            task.result()
        raise CannotGrade("the graders have ended")

    async def _serve(self, slot: Slot) -> None:
        while True:
            self._ended.put_nowait(await self._graded(slot, await self._waiting.get()))

    async def grade(self, work: Work) -> Graded:
        """One piece of work alone, for places that hand out work themselves. Raises CannotGrade."""
        return await self._graded(self._slots[0], work)

    async def _graded(self, slot: Slot, work: Work) -> Graded:
        started, waited = time.monotonic(), slot.waited
        graded = Graded(work.key, None, "not tried")
        for number in range(GOES):
            await self._started(slot.grader)
            # again: with the GPU to itself, in case it was a neighbour on it that had left too little
            async with slot.reserved() if number else contextlib.nullcontext():
                graded = await _grade(slot, work)
            if graded.fault is not None:
                # what a lost grader left is no ground to try again on
                await slot.grader.close()
                self._sweep()
            elif slot.seat is None or not short_of_memory(graded):
                break
        waited = slot.waited - waited
        seconds = time.monotonic() - started - waited
        return replace(graded, seconds=seconds, waited=waited, gpu=slot.gpu)

    async def _started(self, grader: Grader) -> None:
        self._starting += 1
        with contextlib.suppress(GraderLost):  # the grade itself will say so
            await grader.start()
        self._starting -= 1

    def _sweep(self) -> None:
        """Ends what submissions started and lost graders left; not while a grader starts, which looks alike."""
        ours = {slot.grader.pid for slot in self._slots if slot.grader.pid is not None}
        if self._alone and self._starting == 0:
            end_all(lambda: descendants(os.getpid(), spared=ours))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(slot.grader.close() for slot in self._slots))
        for keeper in self._keepers.values():
            keeper.close()
        self._starting = 0
        self._sweep()


async def _grade(slot: Slot, work: Work) -> Graded:
    grader = slot.grader
    request = GradeRequest(work.exercise, work.content.path, **work.options)
    last: VerdictReady | Failed | None = None

    async def listen() -> None:
        nonlocal last
        async for event in grader.grade(request):
            if isinstance(event, VerdictReady | Failed):
                last = event

    task = asyncio.create_task(listen())
    try:
        if not await _done_within(work.total_limit, task, slot):
            return await _out_of_time(grader, work, task)
        task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    if isinstance(last, VerdictReady):
        if last.verdict.get("status") == "infrastructure_error":
            return Graded(work.key, None, "; ".join(last.verdict.get("notes") or ()) or "the grader was lost")
        return Graded(work.key, last.verdict)
    if isinstance(last, Failed) and last.kind == "usage":  # what is wrong with a file was seen before it came here
        raise CannotGrade(last.message)
    return Graded(work.key, None, last.message if last else "the grader gave no answer")


async def _done_within(limit: float, task: asyncio.Task[None], slot: Slot) -> bool:
    """Seconds in which the grader waits for its turn on the GPU do not count."""
    begun = time.monotonic() - slot.waited
    while (left := limit - (time.monotonic() - slot.waited - begun)) > 0:
        done, _ = await asyncio.wait([task], timeout=max(left, 0.05))
        if done:
            return True
    return False


def short_of_memory(graded: Graded) -> bool:
    """Whether memory ran out somewhere in the grade; a learner's own words can say so too, and cost one more try."""
    return graded.verdict is not None and "out of memory" in json.dumps(graded.verdict).lower()


async def _out_of_time(grader: Grader, work: Work, task: asyncio.Task[None]) -> Graded:
    await grader.cancel()
    done, _ = await asyncio.wait([task], timeout=PATIENCE)
    if not done:
        await grader.close()
    text = f"the whole grade took longer than {work.total_limit:g} s and was ended"
    diagnosis = {"cause": None, "message": text, "line": None, "concept": None, "see": None}
    shape: dict[str, object] = {"schema": 1, "exercise": work.exercise, "status": "timeout", "cases": [], "stages": []}
    return Graded(work.key, {**shape, "diagnosis": diagnosis})


def _adopt_orphans() -> None:
    """Processes whose parents have died become this one's children, where `_sweep` finds them. Linux only."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
