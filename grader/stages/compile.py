"""A submission's kernels compiled for a target that need not be here, with every stage's text kept."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from grader import offline
from grader.case_runner import CaseRunner, Outcome, error_outcome
from grader.failures import Refused, RunnerGone, Unavailable
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.modelled import LIMIT, NotModelled, described_shapes, shapes_of
from grader.problem import Case, Draw, Problem
from grader.verdict import Verdict

TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")
MOST_KERNELS = 8  # that are shown; an autotuned kernel has one for each configuration
MOST_TEXT = 16 << 20  # bytes of one stage
KEPT = 6  # compiles


@dataclass(frozen=True)
class Kernel:
    """One compiled kernel. `row` is what the verdict's `compile` holds; `texts` maps a stage to its text."""

    row: dict[str, Any]
    texts: dict[str, str]
    binary: bytes  # a cubin; empty where there is none to disassemble


@dataclass(frozen=True)
class Wanted:
    """What is compiled for. `timed`: with the sizes that are timed on a GPU, where the problem has any."""

    options: Options
    timed: bool = True
    num_warps: int | None = None  # None: as the launches say

    @property
    def key(self) -> tuple[Any, ...]:
        return self.options.target, self.timed, self.num_warps

    @property
    def spec(self) -> dict[str, Any]:
        """For the runner."""
        forced = {"num_warps": self.num_warps} if self.num_warps else {}
        return {"stage": "all", "options": forced}


@dataclass
class Compiled:
    """What one compile gave. `file` is the path that the locations in the texts name."""

    file: str
    case: str
    timed: bool
    kernels: list[Kernel] = field(default_factory=list)
    total: int = 0
    error: Outcome | None = None


class Compiles:
    """The last few compiles: the disassembly is asked for later, and going back to a target costs nothing."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], tuple[Problem, Compiled]] = OrderedDict()

    def find(self, judge: Judge, submission: Submission, wanted: Wanted, cancelled: Callable[[], bool]) -> Compiled:
        """Raises Unavailable where Triton is not, Cancelled when the learner cancels."""
        problem = judge.problem(submission.exercise)
        digest = hashlib.sha256(submission.source).hexdigest()
        key = (problem.slug, digest, Path(submission.file).name, *wanted.key)
        known = self._kept.pop(key, None)
        if known is None or known[0] is not problem:  # the problem's file has changed since
            known = (problem, compile_stages(judge, submission, wanted, cancelled))
        self._kept[key] = known
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return known[1]


def compile_stages(judge: Judge, submission: Submission, wanted: Wanted, cancelled: Callable[[], bool]) -> Compiled:
    """Call the learner's entry with launches that only compile: with the sizes that are timed, else as in a case."""
    if "offline" not in judge.warm:
        raise Unavailable("triton cannot be imported here: `triton-prep doctor` says more")
    problem = judge.problem(submission.exercise)
    verdict = Verdict(problem.slug, problem.title, submission.file, "", wanted.options.seed, "offline", "", {})
    grade = Grade(
        submission, problem, wanted.options, "offline", lambda event: None, cancelled, verdict, judge.drawings
    )
    found = _as_timed(judge, grade, wanted) if wanted.timed else None
    return found or _as_in_case(judge, grade, wanted)


def _as_timed(judge: Judge, grade: Grade, wanted: Wanted) -> Compiled | None:
    """On tensors that have a shape and no memory. None where the call needs values, or there is no such size."""
    timings = grade.problem.timings[:1]
    if not timings:
        return None
    found = Compiled(Path(grade.submission.file).name, timings[0].name, timed=True)
    try:
        described = described_shapes(shapes_of(timings[0]))
        with judge.runner(grade, "offline", [], **wanted.spec) as runner:
            reply = runner.process.ask({"op": "sketch", "args": described}, LIMIT)
            if reply.get("event") != "sketched":
                found.error = error_outcome(reply)
            _take_kernels(found, runner, grade)
    except Refused as refused:
        found.error = error_outcome(refused.reply)
    except (NotModelled, RunnerGone):
        return None
    if found.error is not None and found.error.status not in ("compile_error", "import_error"):
        return None  # perhaps for want of values
    return found if found.kernels or found.error else None


def _as_in_case(judge: Judge, grade: Grade, wanted: Wanted) -> Compiled:
    case = _case(grade.problem)
    if case is None:
        raise Unavailable(f"no case of {grade.problem.slug} can be compiled without a GPU")
    values = grade.values(case)
    found = Compiled(Path(grade.submission.file).name, case.name, timed=False)
    try:
        with judge.runner(grade, "offline", [values], **wanted.spec) as runner:
            outcome = runner.run(values, noop=True)
            if outcome.status in ("compile_error", "runtime_error"):
                found.error = outcome
            _take_kernels(found, runner, grade)
    except Refused as refused:
        found.error = error_outcome(refused.reply)
    except RunnerGone as gone:
        found.error = Outcome(gone.status, str(gone))
    return found


def _take_kernels(found: Compiled, runner: CaseRunner, grade: Grade) -> None:
    """What has been compiled so far. Raises RunnerGone."""
    folder = runner.process.scratch
    found.file = str(folder / Path(grade.submission.file).name)
    rows = runner.process.ask({"op": "compiled"}, 30).get("kernels", [])
    found.total = len(rows)
    found.kernels = [_kernel(row, folder, grade.options.target) for row in rows[:MOST_KERNELS]]


def _case(problem: Problem) -> Case | None:
    """The one that the verdict's `compile` is of: sizes that are multiples of 16 show whether loads vectorise."""
    ranked: list[tuple[bool, int, int, Case]] = []
    for number, case in enumerate(problem.cases):
        if case.offline:
            tensors = [a for a in case.make(Draw(0)) if isinstance(a, torch.Tensor)]
            size = sum(t.numel() for t in tensors)
            if size:
                ranked.append((all(n % 16 == 0 for t in tensors for n in t.shape), size, -number, case))
    return max(ranked, key=lambda entry: entry[:3])[3] if ranked else None


def _kernel(row: dict[str, Any], folder: Path, target: str) -> Kernel:
    texts = {
        stage: _content(folder, name).decode("utf-8", "replace")
        for stage, name in (row.get("stages") or {}).items()
        if stage in TEXTS
    }
    binary = str(row.get("binary", ""))
    cubin = _content(folder, binary) if binary.endswith(".cubin") else b""
    return Kernel(offline.compile_row(row, folder, target), texts, cubin)


def _content(folder: Path, name: str) -> bytes:
    """A file that the runner wrote. It may have written anything: no link leads out of its folder."""
    path = folder / Path(name).name
    if path.is_symlink() or not path.is_file():
        return b""
    with path.open("rb") as file:
        return file.read(MOST_TEXT)
