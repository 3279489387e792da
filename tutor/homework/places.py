"""Where grades run. A place takes work by content and gives back what came of it, in any order."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Protocol

from grader.process_tree import descendants, end_all
from tutor.grading import Failed, Grader, GradeRequest, GraderLost, VerdictReady
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


class Local:
    """Grader processes on this machine: `workers` on the CPU; with GPUs one for each, so that nothing is timed while
    another grade uses the same GPU."""

    def __init__(self, workers: int, devices: Sequence[str] = (), *, alone: bool = False) -> None:
        """`alone`: nothing else starts processes from this one, so that what lost graders leave can be ended."""
        self._alone = alone
        environments = [{"CUDA_VISIBLE_DEVICES": device} for device in devices] or [{}] * max(1, workers)
        self._graders = [Grader(environment=environment) for environment in environments]
        self._waiting: asyncio.Queue[Work] = asyncio.Queue()
        self._ended: asyncio.Queue[Graded] = asyncio.Queue()
        self._open = 0
        self._starting = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def facts(self) -> Facts:
        if self._alone:
            _adopt_orphans()
        try:
            ready = await self._graders[0].start()
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
        self._tasks = [asyncio.create_task(self._serve(grader)) for grader in self._graders[: max(1, self._open)]]
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

    async def _serve(self, grader: Grader) -> None:
        while True:
            self._ended.put_nowait(await self._graded(grader, await self._waiting.get()))

    async def grade(self, work: Work) -> Graded:
        """One piece of work alone, for places that hand out work themselves. Raises CannotGrade."""
        return await self._graded(self._graders[0], work)

    async def _graded(self, grader: Grader, work: Work) -> Graded:
        started = time.monotonic()
        graded = Graded(work.key, None, "not tried")
        for _ in range(GOES):
            await self._started(grader)
            graded = await _grade(grader, work)
            if graded.fault is None:
                break
            # what a lost grader left is no ground to try again on
            await grader.close()
            self._sweep()
        return Graded(graded.key, graded.verdict, graded.fault, time.monotonic() - started)

    async def _started(self, grader: Grader) -> None:
        self._starting += 1
        with contextlib.suppress(GraderLost):  # the grade itself will say so
            await grader.start()
        self._starting -= 1

    def _sweep(self) -> None:
        """Ends what submissions started and lost graders left; not while a grader starts, which looks alike."""
        ours = {grader.pid for grader in self._graders if grader.pid is not None}
        if self._alone and self._starting == 0:
            end_all(lambda: descendants(os.getpid(), spared=ours))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(grader.close() for grader in self._graders))
        self._starting = 0
        self._sweep()


async def _grade(grader: Grader, work: Work) -> Graded:
    request = GradeRequest(work.exercise, work.content.path, **work.options)
    last: VerdictReady | Failed | None = None

    async def listen() -> None:
        nonlocal last
        async for event in grader.grade(request):
            if isinstance(event, VerdictReady | Failed):
                last = event

    task = asyncio.create_task(listen())
    try:
        done, _ = await asyncio.wait([task], timeout=work.total_limit)
        if not done:
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


def gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them; asked without CUDA."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(name.strip() for name in given.split(",") if name.strip() and name.strip() != "-1")
    listed = Path("/proc/driver/nvidia/gpus")
    return tuple(str(number) for number in range(len(list(listed.iterdir())))) if listed.is_dir() else ()
