"""The judge's side: record the calls that passed, replay them on new values without the learner's Python."""

from __future__ import annotations

import secrets
import threading
import time
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
import torch

from grader import stand_in_cuda
from grader.case_runner import Buffers, CaseRunner, Outcome, arguments_of
from grader.checks import alone, call
from grader.compare import compare
from grader.expectation import Values
from grader.failures import Cancelled, Refused, RunnerGone
from grader.grade import CALL_LIMIT, IMPORT_LIMIT, MEMORY_MB, Grade
from grader.kernels_alone import by_replay, plain
from grader.kernels_alone import record as form
from grader.problem import Case
from grader.runner_process import RunnerProcess

if TYPE_CHECKING:
    from grader.judge import Judge

MODE = "interpreter"
SECONDS = 2.0  # after which only the largest case is still replayed
CAUSE = "kernels_alone_are_wrong"
BY_NAME = (
    'the file asks for the GPU by name, as with device="cuda": right here, wrong on a machine without one, and on one '
    "with several where the input may lie on another. device=x.device is right everywhere"
)


@cache
def drawing() -> int:
    """Which drawing the kernels are replayed on: nobody who knows the seed can know its values.

    Drawn when first asked for, which is after the processes were forked that learners' code runs in.
    """
    return 2 + secrets.randbits(60)


class NotAlone(Exception):
    """The answer is not the kernels' own; the text says how that was seen."""


class Unrecorded(NotAlone):
    """The function, or its import, failed where its launches are recorded; the text says how."""


def check(judge: Judge, grade: Grade) -> None:
    """Turn a pass into `not_triton` where the kernels alone do not give the answer."""
    started = time.perf_counter()
    try:
        _alone(judge, grade)
    except plain.NotPlain as found:
        grade.verdict.fail("not_triton", f"the kernels cannot be run by themselves: {found}", CAUSE, found.line)
    except NotAlone as found:
        _not_alone(judge, grade, found)
    except RunnerGone as gone:
        grade.verdict.fail(gone.status, f"while what the function launches was recorded: {gone}", gone.status)
    grade.verdict.stages.append({"name": "kernels alone", "seconds": round(time.perf_counter() - started, 4)})


def clean(judge: Judge, grade: Grade, over: threading.Event) -> bool:
    """Whether `check` would have nothing to say: asked beside a run whose verdict is not known, until `over`."""
    verdict = replace(grade.verdict, status="passed", notes=[], stages=[], cases=[])
    tried = replace(grade, verdict=verdict, over=over)
    try:
        _alone(judge, tried)
    except (plain.NotPlain, NotAlone, RunnerGone, Cancelled):
        return False
    return verdict.status == "passed" and not verdict.notes and verdict.filler_failure is None


def _alone(judge: Judge, grade: Grade) -> None:
    """Raises NotPlain, NotAlone and RunnerGone. What runs on a GPU may insist on one: then one is made up for it."""
    # the largest first, whatever time is left then; a cheat may also serve small sizes differently
    cases = [c for c in grade.problem.cases if not c.needs_gpu and grade.values(c).size]
    cases.sort(key=lambda c: -grade.values(c).size)
    if MODE not in judge.warm or not cases:
        return
    text = plain.kernels_of(grade.submission.source.decode("utf-8"))
    how: dict[str, Any] = {}
    try:
        records = _recorded(judge, grade, cases, how)
    except (Unrecorded, RunnerGone):
        if grade.backend != "cuda":
            raise
        how = {"stand_in_cuda": stand_in_cuda.properties()}
        try:
            records = _recorded(judge, grade, cases, how)
        except RunnerGone as gone:
            raise Unrecorded(str(gone)) from gone
        grade.verdict.notes.append(BY_NAME)
    _replayed(judge, grade, text, records, how)


def _not_alone(judge: Judge, grade: Grade, found: NotAlone) -> None:
    """On a GPU the interpreter does not have the last word: the launches can be replayed there."""
    verdict = grade.verdict
    told = str(found)
    if grade.backend == "cuda":
        try:
            by_replay.check(judge, grade, told)
            # a replay that fails too says what is wrong only where the interpreter has seen nothing
            if verdict.status == "passed" or isinstance(found, Unrecorded):
                return
        except by_replay.NotReplayed as why:
            told = str(why) if isinstance(found, Unrecorded) else told
    verdict.failure = None
    verdict.fail("not_triton", told, CAUSE)


def _recorded(judge: Judge, grade: Grade, cases: list[Case], how: dict[str, Any]) -> list[tuple[Case, form.Record]]:
    """The record of every case; `how` goes to the runner. Raises NotAlone and RunnerGone."""
    found = []
    try:
        with judge.runner(grade, MODE, [grade.values(c) for c in cases], **how) as runner:
            for case in cases:
                try:
                    record = _record(runner, grade.values(case), noop=True)
                except NotAlone:
                    record = _again(judge, grade, case, how)
                found.append((case, record))
    except Refused as refused:
        raise Unrecorded(f"imported once more, the file fails: {refused}") from refused
    return found


def _again(judge: Judge, grade: Grade, case: Case, how: dict[str, Any]) -> form.Record:
    """In a runner of its own and with kernels that run: a wrapper may keep memory, or look at results."""
    with judge.runner(grade, MODE, [grade.values(case)], **how) as runner:
        try:
            return _record(runner, grade.values(case), noop=False)
        except NotAlone as found:
            raise type(found)(f"case {case.name}: {found}") from found


def _record(runner: CaseRunner, values: Values, noop: bool) -> form.Record:
    """Raises NotAlone."""
    arguments = runner.write_inputs(values)[1]
    problem = runner.problem
    message = {
        "op": "record kernels",
        "args": arguments_of(values, arguments),
        "noop": noop,
        "allowed": list(problem.torch_ops),
        "by_torch": list(problem.by_torch),
    }
    reply = runner.process.ask(message, runner.limit)
    if reply.get("event") != "recorded":
        kind = Unrecorded if reply.get("event") == "error" else NotAlone
        raise kind(str(reply.get("message"))[:500])
    try:
        record = form.parse(reply.get("text"), [None if r is None else r.nbytes for r in arguments], problem.torch_ops)
        outputs = tuple(out for n, out in enumerate(record.outputs) if n not in problem.by_torch)
        return msgspec.structs.replace(record, outputs=outputs)
    except form.Malformed as error:
        raise NotAlone(f"what it launches makes no sense: {error}") from error


def _replayed(
    judge: Judge, grade: Grade, text: str, records: list[tuple[Case, form.Record]], how: dict[str, Any]
) -> None:
    """Raises NotAlone for a case that comes out wrong."""
    drawn = [grade.values(case, drawing()) for case, _ in records]
    buffers = Buffers("cpu", drawn)
    until = time.monotonic() + SECONDS
    try:
        process = _process(judge, grade, text, buffers)
        try:
            runner = CaseRunner(grade.problem, process, buffers, CALL_LIMIT[MODE])
            needed = False
            for (case, record), values in zip(records, drawn, strict=True):
                outcome = _carried_out(runner, record, _asked(grade, values))
                if outcome.status != "passed":
                    # it may come from kernels that did not run, and what a wrapper launches may depend on their results
                    outcome = _carried_out(runner, _again(judge, grade, case, how), _asked(grade, values))
                needed |= _one_case(judge, grade, runner, case, values, outcome)
                if time.monotonic() > until:
                    break
            if not needed and grade.verdict.status == "passed":
                raise NotAlone("without any kernel, copies and fills alone give the answer")
        finally:
            process.end()
    finally:
        buffers.close()


def _asked(grade: Grade, values: Values) -> Values:
    """Without the outputs that PyTorch may compute."""
    return replace(values, expected=tuple(e for n, e in enumerate(values.expected) if n not in grade.problem.by_torch))


def _one_case(judge: Judge, grade: Grade, runner: CaseRunner, case: Case, values: Values, outcome: Outcome) -> bool:
    """Whether the kernels are needed for the answer. Raises NotAlone when they do not give it."""
    asked = _asked(grade, values)
    if outcome.status == "passed":
        return not _right(call(runner, asked, noop=True), asked)
    if outcome.undefined and call(runner, asked, filler="zero").status == "passed":
        grade.verdict.filler_failure = (case, values, outcome)  # on a GPU these lanes happened to hold 0
        return True
    if alone(judge, grade, values) != "passed":
        grade.verdict.first_failure(case, values, outcome)  # wrong on these values with or without its Python
        return True
    raise NotAlone(
        f"case {case.name}: the grader ran the kernels by themselves, on new values, and the answer is not right "
        f"({outcome.status}: {_without_values(outcome)}): something else computes it"
    )


def _without_values(outcome: Outcome) -> str:
    """The new values are drawn by chance; a verdict reads the same each time."""
    return str(outcome.message).partition("; at [")[0]


def _process(judge: Judge, grade: Grade, text: str, buffers: Buffers) -> RunnerProcess:
    spec = {
        "file": "kernels.py",
        "entry": "",
        "parameters": [],
        "call": "forward",
        "differentiable": [],
        "target": grade.options.target,
        "memory_mb": MEMORY_MB[MODE],
        "fixed": {},
    }
    return RunnerProcess(judge.warm[MODE], spec, text.encode(), buffers.shared, grade.cancelled)


def _carried_out(runner: CaseRunner, record: form.Record, values: Values) -> Outcome:
    try:
        reply = runner.process.ask({"op": "replay kernels", "record": form.dump(record)}, IMPORT_LIMIT)
    except RunnerGone as gone:
        return Outcome(gone.status, str(gone))
    if reply.get("event") == "error":
        return Outcome("runtime_error", str(reply.get("message")))
    return call(runner, values)


def _right(outcome: Outcome, values: Values) -> bool:
    pairs = list(zip(outcome.outputs, values.expected, strict=False))
    return any(isinstance(out, torch.Tensor) and out.numel() and compare(out, e).right for out, e in pairs)
