"""The trusted side: owns inputs, outputs, references and seeds, and decides. One Judge serves many grades."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from grader import checks, compile_ahead, configurations, diagnose, evidence, gradients, measure, state, stub_check
from grader.beside import bounds, compile_offline, compiled_rows, device_target
from grader.case_runner import Buffers, CaseRunner, Outcome
from grader.catalog import ExerciseFiles
from grader.compile_ahead import CompileAhead
from grader.drawings import Drawings
from grader.expectation import Values
from grader.failures import NotStarted, Refused, RunnerGone, Unavailable
from grader.gpu_turns import Turns
from grader.grade import CALL_LIMIT, IMPORT_LIMIT, MEMORY_MB, Emit, Grade, Options, Submission, load_problem, versions
from grader.kernels_alone import check as kernels_alone
from grader.problem import Case, Problem
from grader.program_order import Passed, depends_on_order
from grader.protocol import Lost
from grader.runner_process import RunnerProcess
from grader.verdict import Verdict, case_row
from grader.verified import measured, verify
from grader.verified.processes import Ahead, Baselines
from grader.warm import Warm


class Judge:
    def __init__(self, warm: dict[str, Warm], device_name: str, turns: Turns | None = None) -> None:
        """`warm` maps interpreter, offline and, where there is a GPU, cuda to warm processes.

        `turns` are for graders that use one GPU together.
        """
        self.warm, self.device_name = warm, device_name
        self.turns = turns or Turns()
        self.baselines = Baselines()
        self.problems: dict[str, tuple[float, Problem]] = {}
        self.drawings = Drawings()

    def problem(self, files: ExerciseFiles) -> Problem:
        changed = max(file.stat().st_mtime for file in files.problem.parent.glob("*.py"))
        known = self.problems.get(files.slug)
        if known is None or known[0] != changed:
            known = (changed, load_problem(files))
            self.problems[files.slug] = known
        return known[1]

    def grade(
        self, submission: Submission, options: Options, emit: Emit, cancelled: Callable[[], bool]
    ) -> dict[str, Any]:
        """The verdict (a dict as in the documented schema). Raises Cancelled."""
        problem = self.problem(submission.exercise)
        backend = self._backend(options.backend)
        if options.verified and backend != "cuda":
            raise Unavailable("--verified needs a GPU: it replays what a kernel's compiled launches do")
        verdict = Verdict(
            exercise=problem.slug,
            title=problem.title,
            file=submission.file,
            sha256=hashlib.sha256(submission.source).hexdigest(),
            seed=options.seed,
            backend=backend,
            device=self.device_name if backend == "cuda" else "CPU interpreter",
            versions=versions(),
        )
        grade = Grade(submission, problem, options, backend, emit, cancelled, verdict, self.drawings)
        if stub_check.untouched(submission.source, submission.exercise.stub.read_bytes()):
            verdict.status = "not_started"
            verdict.notes.append("the stub is as it was given: write the kernel, then grade again")
            return verdict.as_dict()
        reason = stub_check.unreadable(submission.source)
        if reason is not None:
            verdict.fail("import_error", reason[0], "syntax_error", reason[1])
            return verdict.as_dict()
        try:
            self._judge(grade)
        except Lost as error:
            verdict.status = "infrastructure_error"
            verdict.notes.append(f"{error}: start the grader again")
        return verdict.as_dict()

    def _backend(self, wanted: str) -> str:
        if wanted == "auto":
            return "cuda" if "cuda" in self.warm else "interpreter"
        if wanted not in self.warm:
            raise Unavailable(f"no {wanted} backend here: {MISSING.get(wanted, 'unknown backend')}")
        return wanted

    def _judge(self, grade: Grade) -> None:
        grade.verdict.sandbox = dict(self.warm[grade.backend].layers)
        waited = self.turns.waited
        with ExitStack() as stack:
            if grade.backend == "cuda":
                folder = tempfile.TemporaryDirectory(prefix="triton-prep-", ignore_cleanup_errors=True)
                grade.cache = stack.enter_context(folder)
                compiling = stack.enter_context(CompileAhead(self, grade)).over
                ahead = stack.enter_context(Ahead(self, grade, _is_timed(grade))) if _is_replayed(grade) else None
                with self.turns.sharing(grade.cancelled):
                    if ahead is not None:
                        ahead.start()
                    self._run_beside(grade, compiling, ahead)
                    if ahead is not None:
                        ahead.settle()
                    if grade.options.verified:  # before others get the GPU alone: the runner may be alive
                        verify.verify(self, grade, ahead)
            else:
                ahead = None
                self._run_beside(grade, threading.Event())
            self._after_run(grade, ahead)
        if self.turns.shared_gpu:
            seconds = round(self.turns.waited - waited, 4)
            grade.verdict.stages.append({"name": "waiting for the GPU", "seconds": seconds})
        diagnose.finish(grade)

    def _run_beside(self, grade: Grade, compiling: threading.Event, ahead: Ahead | None = None) -> None:
        """Values on the backend; beside them, in parallel, what the other warm processes can tell.

        `compiling` is set when the run needs nothing more compiled.
        """
        on_cuda, verdict = grade.backend == "cuda", grade.verdict
        with ThreadPoolExecutor(2) as pool:
            other = pool.submit(bounds if on_cuda else compile_offline, self, grade)
            clean = None
            if on_cuda and not grade.options.verified and compile_ahead.processes():  # else it would delay the run
                clean = pool.submit(kernels_alone.clean, self, grade, compiling)
            try:
                self._run_cases(grade, ahead)
            except BaseException:
                grade.over.set()
                compiling.set()
                raise
            if verdict.status in ("timeout", "crashed", "import_error", "infrastructure_error"):
                grade.over.set()
            if verdict.status == "passed" and not grade.options.verified:
                if clean is None or not _stage(grade, "kernels alone", clean):
                    kernels_alone.check(self, grade)
            compiling.set()
            _stage(grade, "bounds" if on_cuda else "offline compile", other)

    def _after_run(self, grade: Grade, ahead: Ahead | None) -> None:
        """What a pass leads to, timing above all, and what was asked for beside."""
        verdict = grade.verdict
        if verdict.status == "passed" and grade.backend == "cuda" and not verdict.compile:
            compile_offline(self, grade)  # torch.compile launches by itself: what it launched was not seen
        if verdict.status == "passed" and grade.options.verified and not verdict.verified:
            with self.turns.sharing(grade.cancelled):
                kernels_alone.check(self, grade)
        if verdict.status == "passed" and _is_timed(grade):
            if verdict.verified:
                measured.measure(self, grade, ahead if ahead is not None and ahead.usable else None)
            else:
                measure.measure(self, grade)
        if grade.options.sanitize:
            if grade.backend != "cuda":
                raise Unavailable("--sanitize needs a GPU: on the interpreter every access is checked exactly anyway")
            from grader.sanitize import sanitize

            sanitize(grade)
        if grade.backend == "interpreter":
            verdict.notes.append("no timing: that needs a GPU")
            if grade.options.time and verdict.status == "passed":
                from grader.modelled import of_grade

                verdict.estimate = of_grade(self, grade)
            if grade.problem.call == "compiled":
                verdict.notes.append("called without torch.compile: that needs a GPU")

    # -- values -------------------------------------------------------------------------------------------------

    def start(self, grade: Grade, mode: str, buffers: Buffers, **extra: Any) -> RunnerProcess:
        """A fresh runner that has imported the learner's file. Raises Refused when the import fails."""
        problem = grade.problem
        spec = {
            "file": grade.submission.file,
            "entry": problem.entry,
            "parameters": list(problem.parameters),
            "call": problem.call,
            "differentiable": list(problem.differentiable),
            "target": grade.options.target,
            "memory_mb": MEMORY_MB[mode],
            "fixed": dict(problem.fixed),
            "cache": grade.cache if mode == "cuda" else None,
            **extra,
        }
        cancelled = grade.cancelled if mode == grade.backend else lambda: grade.cancelled() or grade.over.is_set()
        process = RunnerProcess(self.warm[mode], spec, grade.submission.source, buffers.shared, cancelled)
        try:
            if buffers.shared is None:
                _opened(process, buffers)
            reply = process.ask({"op": "load"}, IMPORT_LIMIT)
        except RunnerGone as gone:
            process.end()
            gone.printed = process.printed.text()
            raise
        except BaseException:
            process.end()
            raise
        if reply.get("event") == "error":
            process.end()
            raise Refused(reply, process.printed.text())
        return process

    @contextmanager
    def runner(self, grade: Grade, mode: str, drawn: Sequence[Values], **extra: Any) -> Iterator[CaseRunner]:
        """A fresh runner with buffers for these values; both end with the block. Raises Refused and RunnerGone."""
        buffers = Buffers("cuda" if mode == "cuda" else "cpu", drawn)
        try:
            process = self.start(grade, mode, buffers, **extra)
            try:
                yield CaseRunner(grade.problem, process, buffers, grade.options.call_limit or CALL_LIMIT[mode])
            finally:
                process.end()
        finally:
            buffers.close()

    def _run_cases(self, grade: Grade, ahead: Ahead | None = None) -> None:
        """A runner in which all has passed is left to `ahead`, if there is one."""
        problem, verdict, mode = grade.problem, grade.verdict, grade.backend
        grade.emit({"event": "stage", "name": "import", "state": "started"})
        device = "cuda" if mode == "cuda" else "cpu"
        judged = [case for case in problem.cases if mode == "cuda" or not case.needs_gpu]
        buffers = Buffers(device, [grade.values(case) for case in judged])
        started = time.perf_counter()
        process = None
        try:
            try:
                process = self.start(grade, mode, buffers)
            except Refused as refused:
                reply = refused.reply
                verdict.fail(
                    reply["status"],
                    reply["message"],
                    reply.get("cause"),
                    reply.get("line"),
                    whole=reply.get("whole", ""),
                )
                verdict.output = refused.printed
                return
            except NotStarted as gone:
                verdict.status, verdict.output = "infrastructure_error", gone.printed
                verdict.notes.append(f"the process that is to run the file did not get ready: {gone}")
                return
            except RunnerGone as gone:
                verdict.output = gone.printed
                verdict.fail(
                    gone.status if gone.status == "timeout" else "import_error",
                    f"while importing the file: {gone}",
                    "dies_at_import",
                )
                return
            seconds = time.perf_counter() - started
            verdict.stages.append({"name": "import", "seconds": round(seconds, 4)})
            grade.emit({"event": "stage", "name": "import", "state": "done", "seconds": seconds})
            grade.emit({"event": "stage", "name": "run", "state": "started"})
            started = time.perf_counter()
            self._each_case(grade, process, buffers)
            seconds = time.perf_counter() - started
            verdict.stages.append({"name": "run", "seconds": round(seconds, 4)})
            grade.emit({"event": "stage", "name": "run", "state": "done", "seconds": seconds})
            if mode == "cuda" and verdict.status not in ("crashed", "timeout", "runtime_error"):
                compiled_rows(grade, process, device_target())
        finally:
            if process is not None and ahead is not None and verdict.status == "passed":
                ahead.runner = (process, buffers)
            else:
                if process is not None:
                    process.end()
                    verdict.output = process.printed.text()
                buffers.close()

    def _each_case(self, grade: Grade, process: RunnerProcess, buffers: Buffers) -> None:
        problem, verdict, mode = grade.problem, grade.verdict, grade.backend
        limit = grade.options.call_limit or CALL_LIMIT[mode]
        runner = CaseRunner(problem, process, buffers, limit)
        again = undefined = 0
        passed: list[Passed] = []
        before: Case | None = None
        failed = False
        for number, case in enumerate(problem.cases):
            if failed and not grade.options.keep_going:
                row = case_row(case, Outcome("not_run"))
            elif case.needs_gpu and mode == "interpreter":
                row = case_row(case, Outcome("skipped", f"needs a GPU: {case.needs_gpu}"))
                verdict.notes.append(f"case {case.name!r} needs a GPU: {case.needs_gpu}")
            else:
                values = grade.values(case)
                outcome = checks.call(runner, values)
                repeat = mode == "cuda" or (again < 2 and values.size > 0)
                if outcome.status == "passed" and repeat:
                    again += 1
                    outcome, values = checks.once_more(self, grade, runner, case, values, outcome)
                if outcome.status == "passed" and outcome.undefined and undefined < 2:
                    undefined += 1
                    outcome = checks.other_filler(runner, values, outcome)
                verdict.add_traffic(outcome, values, problem)
                if outcome.status == "passed":
                    if values.size > 0:
                        passed.append(Passed(case, values.size, replace(outcome, outputs=())))
                elif not failed:
                    failed = True
                    outcome = checks.with_owner(runner, values, outcome)
                    outcome = state.blamed_on_earlier_calls(self, grade, before, values, outcome)
                    verdict.first_failure(case, values, outcome)
                before = case
                row = case_row(case, outcome)
                if outcome.status in ("crashed", "timeout"):
                    verdict.cases.append(row)
                    grade.emit({"event": "case", "index": number, "total": len(problem.cases), "case": row})
                    return
            verdict.cases.append(row)
            grade.emit({"event": "case", "index": number, "total": len(problem.cases), "case": row})
        if failed:
            verdict.undefined_filler = mode == "interpreter" and checks.filler_matters(runner, grade)
            evidence.gather(grade, runner)
            return
        if not passed:
            verdict.fail("runtime_error", "no case could be run", None)
            return
        verdict.status = "passed"
        largest = max(passed, key=lambda p: p.size)
        checks.must_matter(grade, runner, (largest.case, grade.values(largest.case)))
        if problem.call == "operator":
            checks.opcheck(grade, runner, grade.values(largest.case))
        if verdict.status == "passed":
            self._look_again(grade, runner, passed)

    def _look_again(self, grade: Grade, runner: CaseRunner, passed: list[Passed]) -> None:
        """Every case has passed: in another order, in each configuration, on another stream too?"""
        untuned = configurations.not_tuned(grade, passed)
        if untuned is not None:
            grade.verdict.fail("not_triton", untuned, "not_autotuned")
            return
        found = state.other_sizes(grade, runner, passed)
        if found is None and grade.problem.call in ("gradient", "operator"):
            found = gradients.once_more(grade, runner, passed)
        found = found or configurations.each_configuration(grade, runner, passed)
        if found is None and grade.backend == "interpreter":
            found = depends_on_order(grade, runner, passed)
        elif found is None:
            found = state.another_stream(grade, runner, passed)
            if found is None:
                state.another_device(self, grade, passed)
        if found is not None:
            grade.verdict.first_failure(*found)


def _is_timed(grade: Grade) -> bool:
    return grade.backend == "cuda" and grade.options.time is not False and grade.problem.timing is not None


def _is_replayed(grade: Grade) -> bool:
    return grade.options.verified and grade.problem.call not in verify.NOT_BY_REPLAY


MISSING = {
    "cuda": "PyTorch sees no CUDA device; use --backend interpreter",
    "interpreter": "triton cannot be imported; `triton-prep doctor` says more",
}


def _opened(process: RunnerProcess, buffers: Buffers) -> None:
    """Raises NotStarted."""
    try:
        process.ask(buffers.handle(), IMPORT_LIMIT)
    except RunnerGone as gone:
        raise NotStarted(gone.status, str(gone)) from gone


def _stage(grade: Grade, name: str, future: Any) -> Any:
    """What it gives. The stage's seconds are those that the grade waited for it."""
    grade.emit({"event": "stage", "name": name, "state": "started"})
    started = time.perf_counter()
    result = future.result()
    seconds = time.perf_counter() - started
    grade.verdict.stages.append({"name": name, "seconds": round(seconds, 4)})
    grade.emit({"event": "stage", "name": name, "state": "done", "seconds": seconds})
    return result
