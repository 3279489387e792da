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


class Baselines:
    """The process that times PyTorch and the reference solutions. It runs nothing of a learner's: one for many grades.

    That saves each a context, and CUDA makes those one after another, for all GPUs of a machine.
    """

    def __init__(self) -> None:
        self._process: RunnerProcess | None = None
        self._readable: tuple[str, ...] = ()
        self._holds = False  # what it has prepared

    def prepared(self, judge: Judge, grade: Grade) -> RunnerProcess:
        """With the grade's exercise ready to be timed. Raises RunnerGone."""
        exercise = grade.submission.exercise
        request = {
            "op": "prepare",
            "exercise": grade.problem.slug,
            "solution": str(exercise.solution),
            "seed": secrets.randbits(48),
            "compiled": grade.options.time is True,
        }
        readable = (str(exercise.problem.parents[2]), str(exercise.solution.parents[1]))
        if self._process is None or self._process.ended or readable != self._readable:
            self.close()
            self._process = start_replayer(judge, grade, None, readable=readable)
            self._readable = readable
        self._process.cancelled = grade.cancelled
        self._holds = True
        self._process.ask(request, LIMIT)  # what goes wrong here, it says again when it is asked for the times
        return self._process

    def release(self) -> None:
        """The memory that was prepared, if it is still held."""
        held, self._holds = self._holds, False
        if held and self._process is not None and not self._process.ended:
            with contextlib.suppress(RunnerGone, Cancelled, Lost):
                self._process.ask({"op": "release"}, CALL_LIMIT["cuda"])

    def close(self) -> None:
        if self._process is not None:
            with contextlib.suppress(Lost):
                self._process.end()
            self._process = None


class Ahead:
    """On CUDA: a replayer, and with `timed` what the baselines need, made ready while the cases run.

    A context takes 0.2 s, and what the baselines compile more. The replayer ends with the block, whoever has taken it.
    """

    def __init__(self, judge: Judge, grade: Grade, timed: bool) -> None:
        self.judge, self.grade, self.timed = judge, grade, timed
        self.large: Record | Exception | None = None  # of the call that is timed, or why there is none
        self.large_number: int | None = None  # by which the replayer knows it
        self.runner: tuple[RunnerProcess, Buffers] | None = None  # in which the cases have passed
        self.runner_used = False  # for the records
        self.usable = True
        self._pool = ThreadPoolExecutor(2)
        self._replayer: Future[RunnerProcess] | None = None
        self._baselines: Future[RunnerProcess] | None = None

    def __enter__(self) -> Ahead:
        return self

    def start(self) -> None:
        self._replayer = self._pool.submit(start_replayer, self.judge, self.grade, None)
        if self.timed:
            self._baselines = self._pool.submit(self.judge.baselines.prepared, self.judge, self.grade)

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True)
        self.end_runner()
        if self._replayer is not None:
            with contextlib.suppress(RunnerGone, Cancelled, Lost):  # it never started
                self._replayer.result().end()
        if self._baselines is not None:
            self.judge.baselines.release()

    def end_runner(self) -> None:
        if self.runner is not None:
            (process, buffers), self.runner = self.runner, None
            process.end()
            self.grade.verdict.output = process.printed.text()
            buffers.close()

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
