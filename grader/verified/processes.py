"""The trusted processes of a verified grade. They need nothing of the learner's, so they can be started ahead."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from grader.case_runner import Buffers
from grader.failures import Cancelled, RunnerGone
from grader.grade import CALL_LIMIT, MEMORY_MB, Grade
from grader.measure import LIMIT
from grader.protocol import Lost
from grader.runner_process import RunnerProcess

if TYPE_CHECKING:
    from grader.judge import Judge
    from grader.verified.record import Record


def start_replayer(judge: Judge, grade: Grade, buffers: Buffers | None, readable: Sequence[str] = ()) -> RunnerProcess:
    """A fresh replayer that has opened the judge's memory; without any, one that has only made its CUDA context.

    `readable` are paths it may read. Raises RunnerGone.
    """
    spec = {
        "file": "record",
        "role": "replayer",
        "target": grade.options.target,
        "memory_mb": MEMORY_MB[grade.backend],
        "readable": list(readable),
    }
    shared = buffers.shared if buffers is not None else None
    process = RunnerProcess(judge.warm[grade.backend], spec, b"", shared, grade.cancelled)
    try:
        if buffers is None:
            process.ask({"op": "ready"}, CALL_LIMIT["cuda"])
        elif shared is None:
            open_memory(process, buffers)
    except BaseException:
        process.end()
        raise
    return process


def open_memory(process: RunnerProcess, buffers: Buffers) -> None:
    """In place of what it had open. Raises RunnerGone."""
    process.ask(buffers.handle(), CALL_LIMIT["cuda"])


def start_baselines(judge: Judge, grade: Grade) -> RunnerProcess:
    """A fresh one that has PyTorch and the reference solution ready to be timed. Raises RunnerGone."""
    exercise = grade.submission.exercise
    request = {
        "op": "prepare",
        "exercise": grade.problem.slug,
        "solution": str(exercise.solution),
        "seed": secrets.randbits(48),
        "compiled": grade.options.time is True,
    }
    course = [str(exercise.problem.parents[2]), str(exercise.solution)]
    process = start_replayer(judge, grade, None, readable=course)
    process.ask(request, LIMIT)  # what goes wrong here, it says again when it is asked for the times
    return process


class Ahead:
    """On CUDA: a replayer, and with `timed` a process for the baselines, started while the launches are recorded.

    A context takes 0.2 s, and what the baselines compile more. Both end with the block, whoever has taken them.
    """

    def __init__(self, judge: Judge, grade: Grade, timed: bool) -> None:
        self.judge, self.grade, self.timed = judge, grade, timed
        self.large: Record | Exception | None = None  # of the call that is timed, or why there is none
        self.large_number: int | None = None  # by which the replayer knows it
        self._pool = ThreadPoolExecutor(2)
        self._replayer: Future[RunnerProcess] | None = None
        self._baselines: Future[RunnerProcess] | None = None

    def __enter__(self) -> Ahead:
        return self

    def start(self) -> None:
        self._replayer = self._pool.submit(start_replayer, self.judge, self.grade, None)
        if self.timed:
            self._baselines = self._pool.submit(start_baselines, self.judge, self.grade)

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)
        for started in (self._replayer, self._baselines):
            _end(started)

    def settle(self) -> None:
        """Wait until they are ready and leave the GPU alone; one that failed says so where it is used."""
        wait([started for started in (self._replayer, self._baselines) if started is not None])

    def replayer(self, buffers: Buffers) -> RunnerProcess:
        """With this memory open. Raises RunnerGone."""
        assert self._replayer is not None
        process = self._replayer.result()
        open_memory(process, buffers)
        return process

    def forget(self) -> None:
        """The memory that the replayer has open: it is about to be freed."""
        assert self._replayer is not None
        with contextlib.suppress(RunnerGone, Lost):
            self._replayer.result().ask({"op": "forget"}, CALL_LIMIT["cuda"])

    def baselines(self) -> RunnerProcess:
        """Raises RunnerGone."""
        assert self._baselines is not None
        return self._baselines.result()


def _end(started: Future[RunnerProcess] | None) -> None:
    if started is not None:
        with contextlib.suppress(RunnerGone, Cancelled, Lost):  # it never started
            started.result().end()
