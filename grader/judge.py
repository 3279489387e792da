"""The trusted side: owns inputs, outputs, references and seeds, and decides. One Judge serves many grades."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from grader import diagnose, stub_check
from grader.beside import bounds, compile_offline, compiled_rows, device_target
from grader.case_runner import Buffers, CaseRunner, Outcome
from grader.catalog import ExerciseFiles
from grader.compare import compare
from grader.expectation import Values
from grader.failures import Refused, RunnerGone, Unavailable
from grader.grade import CALL_LIMIT, IMPORT_LIMIT, MEMORY_MB, Emit, Grade, Options, Submission, load_problem, versions
from grader.problem import Case, Problem
from grader.protocol import Lost
from grader.runner_process import RunnerProcess
from grader.verdict import Verdict, case_row
from grader.warm import Warm


class Judge:
    def __init__(self, warm: dict[str, Warm], device_name: str) -> None:
        """`warm` maps interpreter, offline and, where there is a GPU, cuda to warm processes."""
        self.warm, self.device_name = warm, device_name
        self.problems: dict[str, tuple[float, Problem]] = {}

    def problem(self, files: ExerciseFiles) -> Problem:
        changed = files.problem.stat().st_mtime
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
        grade = Grade(submission, problem, options, backend, emit, cancelled, verdict)
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
        """Values on the backend; beside them, in parallel, what the other warm processes can tell."""
        with ThreadPoolExecutor(1) as beside:
            if grade.backend == "interpreter":
                other = beside.submit(compile_offline, self, grade)
            else:
                other = beside.submit(bounds, self, grade)
            try:
                self._run_cases(grade)
            except BaseException:
                grade.over.set()
                raise
            if grade.verdict.status in ("timeout", "crashed", "import_error"):
                grade.over.set()
            _stage(grade, "offline compile" if grade.backend == "interpreter" else "bounds", other)
        verdict = grade.verdict
        if verdict.status == "passed" and grade.backend == "cuda" and not verdict.compile:
            compile_offline(self, grade)  # torch.compile launches by itself: what it launched was not seen
        if verdict.status == "passed" and grade.backend == "cuda":
            if grade.options.time is not False and grade.problem.timing is not None:
                from grader.measure import measure

                measure(self, grade)
        if grade.options.sanitize:
            if grade.backend != "cuda":
                raise Unavailable("--sanitize needs a GPU: on the interpreter every access is checked exactly anyway")
            from grader.sanitize import sanitize

            sanitize(grade)
        if grade.backend == "interpreter":
            verdict.notes.append("no timing: that needs a GPU")
            if grade.problem.call == "compiled":
                verdict.notes.append("called without torch.compile: that needs a GPU")
        diagnose.finish(grade)

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
            **extra,
        }
        cancelled = grade.cancelled if mode == grade.backend else lambda: grade.cancelled() or grade.over.is_set()
        process = RunnerProcess(self.warm[mode], spec, grade.submission.source, buffers.shared, cancelled)
        try:
            if buffers.shared is None:
                process.ask(buffers.handle(), IMPORT_LIMIT)
            reply = process.ask({"op": "load"}, IMPORT_LIMIT)
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

    def _run_cases(self, grade: Grade) -> None:
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
            except RunnerGone as gone:
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
            if process is not None:
                process.end()
                verdict.output = process.printed.text()
            buffers.close()

    def _each_case(self, grade: Grade, process: RunnerProcess, buffers: Buffers) -> None:
        problem, verdict, mode = grade.problem, grade.verdict, grade.backend
        limit = grade.options.call_limit or CALL_LIMIT[mode]
        runner = CaseRunner(problem, process, buffers, limit)
        again = undefined = 0
        last_passed: tuple[Case, Values] | None = None
        failed = False
        for number, case in enumerate(problem.cases):
            if failed and not grade.options.keep_going:
                row = case_row(case, Outcome("not_run"))
            elif case.needs_gpu and mode == "interpreter":
                row = case_row(case, Outcome("skipped", f"needs a GPU: {case.needs_gpu}"))
                verdict.notes.append(f"case {case.name!r} needs a GPU: {case.needs_gpu}")
            else:
                values = grade.values(case)
                outcome = self.call(runner, values)
                repeat = mode == "cuda" or (again < 2 and values.size > 0)
                if outcome.status == "passed" and repeat:
                    again += 1
                    outcome, values = self._once_more(runner, grade, case, values, outcome)
                if outcome.status == "passed" and outcome.undefined and undefined < 2:
                    undefined += 1
                    outcome = self.other_filler(runner, values, outcome)
                verdict.add_traffic(outcome, values, problem)
                if outcome.status == "passed":
                    if values.size > 0 and (last_passed is None or values.size >= last_passed[1].size):
                        last_passed = (case, values)
                elif not failed:
                    failed = True
                    outcome = self._with_owner(runner, values, outcome)
                    verdict.first_failure(case, values, outcome)
                row = case_row(case, outcome)
                if outcome.status in ("crashed", "timeout"):
                    verdict.cases.append(row)
                    grade.emit({"event": "case", "index": number, "total": len(problem.cases), "case": row})
                    return
            verdict.cases.append(row)
            grade.emit({"event": "case", "index": number, "total": len(problem.cases), "case": row})
        if failed:
            verdict.undefined_filler = mode == "interpreter" and self._filler_matters(runner, grade)
            return
        if last_passed is None:
            verdict.fail("runtime_error", "no case could be run", None)
            return
        verdict.status = "passed"
        self._must_matter(grade, runner, last_passed)
        if problem.call == "operator":
            self._opcheck(grade, runner, last_passed[1])

    def call(self, runner: CaseRunner, values: Values, **how: Any) -> Outcome:
        try:
            return runner.run(values, **how)
        except RunnerGone as gone:
            return Outcome(gone.status, str(gone), cause=gone.status)

    def _with_owner(self, runner: CaseRunner, values: Values, outcome: Outcome) -> Outcome:
        """In the interpreter, which program stored the first wrong element."""
        bad = outcome.comparison.first_bad_index if outcome.comparison else None
        returned = len(values.expected) - len(runner.problem.mutates)
        if outcome.status != "wrong_answer" or bad is None or outcome.output >= returned:
            return outcome
        if runner.process.warm.mode != "interpreter" or outcome.cause is not None:
            return outcome
        try:
            again = runner.run(values, trace=True)
            if again.status == "wrong_answer" and again.output == outcome.output:
                return replace(outcome, program_id=runner.owner(outcome.output, bad))
        except RunnerGone:
            pass
        return outcome

    def _once_more(
        self, runner: CaseRunner, grade: Grade, case: Case, values: Values, first: Outcome
    ) -> tuple[Outcome, Values]:
        """On a GPU the same bits from the same values; on either backend, right on new values in the same buffers.

        Returns the outcome that counts, and the values it belongs to.
        """
        if grade.backend == "cuda":
            second = self.call(runner, values)
            if second.status != "passed":
                message = f"right at first, then wrong on the same input: {second.message}"
                return replace(second, message=message, cause="wrong_on_second_call"), values
            pairs = zip(first.outputs, second.outputs, strict=True)
            if not all(_same_bits(a, b) for a, b in pairs):
                message = "two runs on the same input differ: programs race, or float atomics add in another order"
                return replace(second, status="nondeterministic", cause="differs_between_runs", message=message), values
        new = grade.values(case, 1)
        fresh = self.call(runner, new)
        if fresh.status == "passed":
            return first, values
        if self._alone(grade, new) == "passed":  # right in a process that has not called it before: state is at fault
            message = f"right at first, then wrong on new values in the same buffers: {fresh.message}"
            return replace(fresh, message=message, cause="wrong_on_second_call"), new
        return fresh, new

    def _alone(self, grade: Grade, values: Values) -> str:
        """The status of one call in a runner of its own."""
        try:
            with self.runner(grade, grade.backend, [values]) as runner:
                return self.call(runner, values).status
        except (Refused, RunnerGone):
            return "crashed"

    def other_filler(self, runner: CaseRunner, values: Values, first: Outcome) -> Outcome:
        """NaN in a masked-off lane may go unseen, as tl.max ignores it: try another undefined value."""
        second = self.call(runner, values, filler="huge")
        return replace(second, cause="load_without_other") if second.status == "wrong_answer" else first

    def _filler_matters(self, runner: CaseRunner, grade: Grade) -> bool:
        failure = grade.verdict.failure
        if failure is not None and failure.outcome.cause == "load_without_other":
            return True
        if failure is None or failure.outcome.status not in ("wrong_answer", "not_written") or runner.process.ended:
            return False
        # both now: the failing call may have been the first, and the first may differ (autotuning, a cache)
        poisoned = self.call(runner, failure.values)
        zeros = self.call(runner, failure.values, filler="zero")
        if poisoned.status != "passed" and zeros.status == "passed":
            return True
        pairs = zip(zeros.outputs, poisoned.outputs, strict=False)
        return any(not _same_bits(a, b) for a, b in pairs)

    def _must_matter(self, grade: Grade, runner: CaseRunner, passed: tuple[Case, Values]) -> None:
        """Run again with the learner's kernels replaced by no-ops: the answer must be gone."""
        values = passed[1]
        outcome = self.call(runner, values, noop=True)
        right = [
            position
            for position, (out, expected) in enumerate(zip(outcome.outputs, values.expected, strict=False))
            if out.numel() and position not in grade.problem.by_torch and compare(out, expected).right
        ]
        if right:
            what = "the answer" if len(values.expected) == 1 else f"output {right[0]}"
            grade.verdict.fail(
                "not_triton",
                f"{what} is right without the kernels: something else computes it (PyTorch, or a copy of an input)",
                "kernel_does_not_matter",
            )

    def _opcheck(self, grade: Grade, runner: CaseRunner, values: Values) -> None:
        try:
            results = runner.opcheck(values)
        except RunnerGone as gone:
            grade.verdict.fail(gone.status, f"during torch.library.opcheck: {gone}", gone.status)
            return
        for test, problem in results.items():
            if problem is not None and grade.verdict.status == "passed":
                grade.verdict.fail(
                    "wrong_answer", f"torch.library.opcheck, {test}: {problem}", f"opcheck_{test.removeprefix('test_')}"
                )
        if grade.backend != "cuda":
            grade.verdict.notes.append("opcheck's fake-tensor and AOT tests need a GPU")


MISSING = {
    "cuda": "PyTorch sees no CUDA device; use --backend interpreter",
    "interpreter": "triton cannot be imported; `triton-prep doctor` says more",
}


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def _stage(grade: Grade, name: str, future: Any) -> None:
    grade.emit({"event": "stage", "name": name, "state": "started"})
    started = time.perf_counter()
    future.result()
    seconds = time.perf_counter() - started
    grade.verdict.stages.append({"name": name, "seconds": round(seconds, 4)})
    grade.emit({"event": "stage", "name": name, "state": "done", "seconds": seconds})
