"""The judge's side of a verified grade: record every case where the learner's file runs, replay it where it does not.

The recording sees other values than the replay: those are drawn with a seed made up for this grade, so that no record
can carry answers. What passes is a list of launches, fills and copies, carried out on the judge's memory.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from grader import checks
from grader.case_runner import CPU_GUARD, CUDA_GUARD, Buffers, CaseRunner, Outcome, arguments_of
from grader.expectation import Values, draw, seed_of
from grader.failures import Refused, RunnerGone
from grader.grade import CALL_LIMIT, Grade
from grader.problem import Case, Draw
from grader.verdict import case_row
from grader.verified import record as form
from grader.verified.processes import Ahead, open_memory, start_replayer
from grader.verified.replay import Replay, hand_over, layout_for, sizes_of

if TYPE_CHECKING:
    from grader.judge import Judge

NOT_BY_REPLAY = {
    "gradient": "the exercise is about autograd, which is Python",
    "operator": "the exercise is about a PyTorch operator, which is Python",
    "compiled": "torch.compile makes the launches of its own accord",
}
PARTS_LIMIT = 60.0  # seconds to fetch a whole record
REPLAY_LIMIT = 300.0  # seconds after which no further case is replayed


class Unrecordable(Exception):
    """The call does something that is allowed, and that a record cannot hold: the text says what."""


class Fails(Exception):
    """The recording shows that the submission falls short."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(outcome.message)


def verify(judge: Judge, grade: Grade, ahead: Ahead | None = None) -> None:
    """Replace a "passed" by what the replay says, and set `verified` if it says anything; else note why not.

    `ahead` has processes that are started already, and gets the record of the call that is timed.
    """
    verdict = grade.verdict
    if verdict.status != "passed":
        verdict.notes.append("not verified: the call itself does not pass, so nothing was replayed")
        return
    reason = NOT_BY_REPLAY.get(grade.problem.call)
    if reason is not None:
        verdict.notes.append(f"graded unverified: {reason}")
        return
    started = time.perf_counter()
    grade.emit({"event": "stage", "name": "replay", "state": "started"})
    try:
        records = record_cases(judge, grade, ahead)
        replayed = replay_cases(judge, grade, records, ahead)
        if replayed.failure is not None and ahead is not None and ahead.runner_used:
            # hooks that came late may have missed a launch; where they have not, the failure stands
            fresh = record_cases(judge, grade)
            if not _alike(records, fresh):
                ahead.usable = False
                replayed = replay_cases(judge, grade, fresh)
        _settle(grade, replayed)
    except Unrecordable as unrecordable:
        verdict.notes.append(f"graded unverified: {unrecordable}")
    except (RunnerGone, torch.OutOfMemoryError) as error:
        verdict.notes.append(f"graded unverified: the replay could not be made ({error})")
    except Fails as fails:
        outcome = fails.outcome
        message = f"while its launches were recorded: {outcome.message}"
        verdict.fail(outcome.status, message, outcome.cause, outcome.line, whole=outcome.whole)
    seconds = time.perf_counter() - started
    verdict.stages.append({"name": "replay", "seconds": round(seconds, 4)})
    grade.emit({"event": "stage", "name": "replay", "state": "done", "seconds": seconds})


def _alike(some: Sequence[tuple[Case, form.Record]], others: Sequence[tuple[Case, form.Record]]) -> bool:
    """Whether they do the same; the kernels' texts name the folders of the processes that they were recorded in."""
    pairs = zip(some, others, strict=True)
    return all((a.steps, a.buffers, a.outputs) == (b.steps, b.buffers, b.outputs) for (_, a), (_, b) in pairs)


# -- recording ------------------------------------------------------------------------------------------------------


def record_cases(judge: Judge, grade: Grade, ahead: Ahead | None = None) -> list[tuple[Case, form.Record]]:
    """The launches of each case, on values that the replay will not use. Raises Unrecordable and Fails.

    After them, where it is wanted, those of the call that is timed.
    """
    if ahead is not None and ahead.timed:
        try:
            seed = seed_of(grade.options.seed, grade.problem, grade.problem.cases[0], 7)
            return _recorded(judge, grade, ahead, [large_values(grade, seed)])
        except torch.OutOfMemoryError as error:
            ahead.large = error
    return _recorded(judge, grade, ahead, [])


def _recorded(
    judge: Judge, grade: Grade, ahead: Ahead | None, large: Sequence[Values]
) -> list[tuple[Case, form.Record]]:
    cases = grade.problem.cases
    drawn = [grade.values(case, 1) for case in cases]
    if ahead is not None and ahead.runner is not None:
        try:
            return _behind_the_run(grade, ahead, drawn, large)
        except (Unrecordable, Fails, RunnerGone, torch.OutOfMemoryError):
            ahead.large = None  # memory that a call keeps for later ones is no fault: a process of its own decides
    try:
        with judge.runner(grade, grade.backend, [*drawn, *large], record=True) as runner:
            records = [(case, recorded(runner, values)) for case, values in zip(cases, drawn, strict=True)]
            for values in large:
                assert ahead is not None
                try:
                    ahead.large = recorded(runner, values)
                except (Unrecordable, Fails, RunnerGone) as error:
                    ahead.large = error
            return records
    except Refused as refused:
        reply = refused.reply
        raise Fails(Outcome(str(reply.get("status")), str(refused), cause=reply.get("cause"))) from refused
    except RunnerGone as gone:
        raise Fails(Outcome(gone.status, str(gone), cause=gone.status)) from gone


def _behind_the_run(
    grade: Grade, ahead: Ahead, drawn: Sequence[Values], large: Sequence[Values]
) -> list[tuple[Case, form.Record]]:
    """Where the cases have passed, which spares a process. Raises Unrecordable, Fails, RunnerGone, OutOfMemoryError."""
    assert ahead.runner is not None
    (process, buffers), problem = ahead.runner, grade.problem
    limit = grade.options.call_limit or CALL_LIMIT[grade.backend]
    try:
        runner = CaseRunner(problem, process, buffers, limit)
        records = [(case, recorded(runner, values)) for case, values in zip(problem.cases, drawn, strict=True)]
        for values in large if buffers.shared is None else ():  # memory on the CPU came with the process
            wide = Buffers(buffers.device, [values])
            open_memory(process, wide)
            ahead.large = recorded(CaseRunner(problem, process, wide, limit), values)
        ahead.runner_used = True
        return records
    finally:
        ahead.end_runner()


def large_values(grade: Grade, seed: int) -> Values:
    """What the timed call works on, drawn on the device."""
    assert grade.problem.timing is not None
    device = "cuda" if grade.backend == "cuda" else "cpu"
    return Values(tuple(grade.problem.timing.make(Draw(seed, device))), ())


def recorded(runner: CaseRunner, values: Values) -> form.Record:
    """One call's record, checked. Raises Unrecordable, Fails and RunnerGone."""
    arguments = runner.write_inputs(values)[1]
    reply = runner.process.ask({"op": "record", "args": arguments_of(values, arguments)}, runner.limit)
    event = reply.get("event")
    if event == "refused" and reply.get("status") == "not_triton":
        raise Fails(Outcome("not_triton", _text(reply), cause="computed_by_torch"))
    if event == "refused":
        raise Unrecordable(_text(reply))
    if event == "error":
        raise Fails(_error(reply))
    try:
        parts = int(reply["parts"])
        if event != "recorded" or not 0 < parts <= 1000:
            raise form.Malformed("its length is unknown")
        record = form.parse(_fetched(runner, parts))
        form.check(record, sizes_of(values, runner.buffers.guard))
    except (KeyError, TypeError, ValueError) as error:
        text = f"the record of the launches makes no sense: {error}"
        raise Fails(Outcome("crashed", text[:400], cause="crashed")) from error
    return record


def _fetched(runner: CaseRunner, parts: int) -> str:
    """Raises Malformed when it is longer than any record, RunnerGone."""
    until, text = time.monotonic() + PARTS_LIMIT, ""
    for number in range(parts):
        reply = runner.process.ask({"op": "part", "part": number}, max(until - time.monotonic(), 0.1))
        text += str(reply["text"])
        if len(text) > form.LONGEST:
            raise form.Malformed("it is too long")
    return text


def _text(reply: dict[str, object]) -> str:
    return str(reply.get("message"))[:400]


def _error(reply: dict[str, object]) -> Outcome:
    line, cause = reply.get("line"), reply.get("cause")
    return Outcome(
        str(reply.get("status", "runtime_error")),
        _text(reply),
        cause=cause if isinstance(cause, str) else None,
        line=line if isinstance(line, int) else None,
        whole=str(reply.get("whole", ""))[:8000],
    )


# -- replaying ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Replayed:
    """What came of the replays: how many launches there were, the seed of the values, the first case that failed."""

    launches: int
    seed: int
    failure: tuple[Case, Values, Outcome] | None


def replay_cases(
    judge: Judge, grade: Grade, records: Sequence[tuple[Case, form.Record]], ahead: Ahead | None = None
) -> Replayed:
    """Judge every record on values drawn for this grade alone. Where the kernels do not matter, the verdict fails."""
    problem = grade.problem
    seed = secrets.randbits(48)
    drawn = [draw(problem, case, seed) for case, _ in records]
    device, guard = ("cuda", CUDA_GUARD) if grade.backend == "cuda" else ("cpu", CPU_GUARD)
    size = max(layout_for(record, values, guard)[0].size for (_, record), values in zip(records, drawn, strict=True))
    buffers = Buffers(device, [], least=size)
    process, launches, largest = None, 0, None
    until = time.monotonic() + REPLAY_LIMIT
    try:
        process = ahead.replayer(buffers) if ahead is not None else start_replayer(judge, grade, buffers)
        numbers = [hand_over(process, record) for _, record in records]
        if ahead is not None and isinstance(ahead.large, form.Record):
            ahead.large_number = hand_over(process, ahead.large)  # to be compiled while the cases are replayed
        replay = Replay(problem, process, buffers, grade.options.call_limit or CALL_LIMIT["cuda"])
        for number, (case, record), values in zip(numbers, records, drawn, strict=True):
            outcome = _replayed(replay, number, record, values)
            if outcome.status == "passed" and time.monotonic() > until:
                outcome = Outcome("timeout", f"the cases so far took more than {REPLAY_LIMIT:g} s", cause="timeout")
            if outcome.status != "passed":
                outcome = replace(outcome, message=f"in the replay: {outcome.message}")
                return Replayed(launches, seed, (case, values, outcome))
            launches += record.launches
            if values.size and (largest is None or values.size >= largest[2].size):
                largest = (number, record, values)
        if largest is not None:
            replay.use(*largest[:2])
            checks.must_matter(grade, replay, (records[0][0], largest[2]))
        return Replayed(launches, seed, None)
    finally:
        if ahead is not None:
            ahead.forget()
        elif process is not None:
            process.end()
        buffers.close()


def _replayed(replay: Replay, number: int, record: form.Record, values: Values) -> Outcome:
    """Two replays of one record, alike to the bit."""
    try:
        outcome = replay.use(number, record) or replay.run(values)
        if outcome.status != "passed":
            return outcome
        second = replay.run(values)
    except RunnerGone as gone:
        return Outcome(gone.status, str(gone), cause=gone.status)
    if second.status != "passed":
        return replace(second, message=f"right at first, then wrong on the same input: {second.message}")
    if not all(checks.same_bits(a, b) for a, b in zip(outcome.outputs, second.outputs, strict=True)):
        text = "two replays on the same input differ: programs race, or float atomics add in another order"
        return replace(second, status="nondeterministic", cause="differs_between_runs", message=text)
    return outcome


def _settle(grade: Grade, replayed: Replayed) -> None:
    verdict = grade.verdict
    verdict.verified = True
    if replayed.failure is None:
        verdict.notes.append(
            f"verified: {replayed.launches} recorded launches were replayed outside the learner's process, on values "
            f"drawn with the seed {replayed.seed}"
        )
        return
    case, values, outcome = replayed.failure
    verdict.first_failure(case, values, outcome)
    verdict.cases = [case_row(case, outcome) if row["name"] == case.name else row for row in verdict.cases]
    verdict.notes.append(
        f"verified: the recorded launches fail on values drawn with the seed {replayed.seed}, outside the learner's "
        "process, although the call itself passes"
    )
