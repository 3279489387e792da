"""On a GPU: what a submission compiles is compiled by processes beside its run, into the grade's own Triton cache.

Triton compiles within a call, and each size, dtype and alignment of the cases may cost a compile. A runner that finds
a kernel in the cache need not wait for it. Nothing depends on this: what is not there is compiled where it is needed.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from grader import checks, cores
from grader.beside import device_target
from grader.failures import Cancelled, Refused, RunnerGone
from grader.grade import Grade
from grader.problem import Case
from grader.protocol import Lost

if TYPE_CHECKING:
    from grader.judge import Judge

CORES_EACH = 4  # for one process that compiles: the run itself, its assembler and other graders want theirs
FAILED = ("compile_error", "runtime_error", "crashed", "timeout")
# an autotuner that keeps its choice in the cache would take it from a process without a GPU
KEEPS_CHOICES = (b"cache_results", b"TRITON_CACHE_AUTOTUNING")


class CompileAhead:
    """Compiles while the block runs. At its end nothing of it is left."""

    def __init__(self, judge: Judge, grade: Grade) -> None:
        self.judge = judge
        self.over = threading.Event()
        self.pool = ThreadPoolExecutor(8)
        options = replace(grade.options, target=device_target())
        self.grade = replace(grade, options=options, emit=lambda event: None, over=self.over)

    def __enter__(self) -> CompileAhead:
        for cases in shares(self.grade, processes()):
            self.pool.submit(self._compile, cases)
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.pool.shutdown(wait=True)

    def _compile(self, cases: Sequence[Case]) -> None:
        grade = self.grade
        try:
            values = [grade.values(case) for case in cases]
            with self.judge.runner(grade, "offline", values, cache=grade.cache) as runner:
                for drawn in values:
                    if self.over.is_set() or checks.call(runner, drawn, noop=True).status in FAILED:
                        return  # the run will say what is wrong
        except (Refused, RunnerGone, Cancelled, Lost):
            return


def processes() -> int:
    """How many may compile at a time. None on a machine with few cores, where they would only delay the run."""
    return cores.count() // CORES_EACH


def shares(grade: Grade, count: int) -> list[list[Case]]:
    """Which cases each process compiles for; those that come first are dealt first."""
    if grade.problem.call == "compiled" or any(word in grade.submission.source for word in KEEPS_CHOICES):
        return []  # torch.compile launches nothing without a GPU
    cases = [case for case in grade.problem.cases if case.offline and grade.values(case).size]
    return [cases[first::count] for first in range(min(count, len(cases)))]
