"""The judge's side of verified timing: the replay of one large call, on a clock that the learner's code cannot reach.

Beside it, from another process, PyTorch and the reference solution. Every timed round works on inputs shifted by
another amount and into poisoned memory; the last round's result is judged, and how many there are is left to chance.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from grader import guards, timing
from grader.case_runner import CPU_GUARD, CUDA_GUARD, Buffers, Outcome
from grader.expectation import Values, seed_of
from grader.failures import Refused, RunnerGone
from grader.grade import CALL_LIMIT, Grade
from grader.measure import LIMIT, keep
from grader.verified import record as form
from grader.verified.processes import Ahead, start_replayer
from grader.verified.replay import Replay, hand_over, layout_for
from grader.verified.replayer import moved_on
from grader.verified.verify import Fails, Unrecordable, large_values, recorded

if TYPE_CHECKING:
    from grader.judge import Judge

WARM_UP = 3  # rounds; their times only say how many rounds fit the budget


class NoTiming(Exception):
    """The replay cannot be timed: the text says why."""


def measure(judge: Judge, grade: Grade, ahead: Ahead | None = None) -> None:
    """Fill the verdict's `timing` from a replay, or say in its notes why there is none."""
    verdict = grade.verdict
    assert grade.problem.timing is not None
    started, waited = time.perf_counter(), judge.turns.waited
    grade.emit({"event": "stage", "name": "timing", "state": "started"})
    try:
        reply: dict[str, Any] = {}
        beside = lambda: reply.update(_beside(judge, grade, ahead))
        with judge.turns.sharing(grade.cancelled):
            record = _large_record(judge, grade, ahead)
        samples = timed_replay(judge, grade, record, ahead, beside)
        reply["samples"]["median_us"] = timing.summary(samples)
        keep(verdict, reply)
        verdict.notes += [str(note) for note in reply.get("notes", [])]
        verdict.notes.append("timed in the replay; PyTorch and the reference solution in a run of their own after it")
        if grade.options.time is not True:
            verdict.notes.append("torch.compile was not timed: --time does")
    except Fails as fails:
        outcome = fails.outcome
        verdict.fail(outcome.status, f"while timing {grade.problem.timing.name}: {outcome.message}", outcome.cause)
    except (NoTiming, Unrecordable, Refused, RunnerGone, torch.OutOfMemoryError) as error:
        verdict.notes.append(f"no verified timing: {error}")
    seconds = time.perf_counter() - started - (judge.turns.waited - waited)
    verdict.stages.append({"name": "timing", "seconds": round(seconds, 4)})
    grade.emit({"event": "stage", "name": "timing", "state": "done", "seconds": seconds})


def _large_record(judge: Judge, grade: Grade, ahead: Ahead | None) -> form.Record:
    """Of the call that is timed: it was made behind the cases'. Raises RunnerGone, Refused, Unrecordable and Fails."""
    large = ahead.large if ahead is not None else None
    if isinstance(large, Exception):
        raise large
    return large or record_large(judge, grade)


def record_large(judge: Judge, grade: Grade) -> form.Record:
    """The launches of the call that is timed. Raises Refused, RunnerGone, Unrecordable and Fails."""
    values = large_values(grade, seed_of(grade.options.seed, grade.problem, grade.problem.cases[0], 7))
    with judge.runner(grade, grade.backend, [values], record=True) as runner:
        return recorded(runner, values)


def timed_replay(
    judge: Judge,
    grade: Grade,
    record: form.Record,
    ahead: Ahead | None = None,
    beside: Callable[[], None] = lambda: None,
) -> list[float]:
    """Microseconds of each round. Raises NoTiming, RunnerGone, and Fails when the last round's result is wrong.

    `beside` is called while the GPU is this grade's alone.
    """
    device, guard = ("cuda", CUDA_GUARD) if grade.backend == "cuda" else ("cpu", CPU_GUARD)
    process = None
    with judge.turns.sharing(grade.cancelled):
        values = large_values(grade, secrets.randbits(48))
        buffers = Buffers(device, [], least=layout_for(record, values, guard)[0].size)
    try:
        with judge.turns.sharing(grade.cancelled):
            process = ahead.replayer(buffers) if ahead is not None else start_replayer(judge, grade, buffers)
            replay = Replay(grade.problem, process, buffers, CALL_LIMIT["cuda"])
            known = ahead.large_number if ahead is not None else None
            failed = replay.use(hand_over(process, record) if known is None else known, record)
        if failed is not None:
            raise NoTiming(failed.message)
        with judge.turns.alone(grade.cancelled):
            one_round = max(min(_rounds(replay, values, WARM_UP)[0]) / 1e6, 1e-4)  # the flush takes about that long
            count = int(min(timing.ROUNDS[1], max(timing.ROUNDS[0], timing.BUDGET / one_round)))
            count += secrets.randbelow(count)
            samples, last = _rounds(replay, values, count)
            beside()
        with judge.turns.sharing(grade.cancelled):
            _check_last(grade, replay, values, last)
        return samples
    finally:
        if process is not None:
            process.end()
        buffers.close()
        if device == "cuda":
            torch.cuda.empty_cache()  # gigabytes, which the next grade's processes may need


def _rounds(replay: Replay, values: Values, count: int) -> tuple[list[float], list[int]]:
    """The samples, and by how much the last round's inputs were shifted. Raises NoTiming and RunnerGone."""
    _, arguments, regions = replay.prepare(values)
    tensors = [region for region in arguments if region is not None]
    inputs = [(number, _shifts(region, count)) for number, region in enumerate(tensors) if region.span]
    message = {
        "op": "time",
        "places": [region.described() for region in regions],
        "inputs": inputs,
        "fresh": list(range(len(tensors), len(regions))),
        "rounds": count,
    }
    reply = replay.process.ask(message, LIMIT)
    if reply.get("event") != "timed" or len(reply.get("samples", ())) != count:
        raise NoTiming(str(reply.get("message")))
    last = [0] * len(tensors)
    for number, shifts in inputs:
        last[number] = shifts[-1] if shifts else 0
    return [float(sample) for sample in reply["samples"]], last


def _shifts(region: guards.Region, count: int) -> list[int]:
    """One for each round; none where elements do not lie side by side, and guard bytes would move in between."""
    elements = 1
    for n in region.shape:
        elements *= n
    return [1 + secrets.randbelow(elements - 1) for _ in range(count)] if elements == region.span > 1 else []


def _check_last(grade: Grade, replay: Replay, values: Values, shifts: list[int]) -> None:
    """Raises Fails."""
    problem = grade.problem
    args: list[Any] = []
    left = list(shifts)
    for value in values.args:
        if not isinstance(value, torch.Tensor):
            args.append(value)
            continue
        shift = left.pop(0)
        args.append(rolled(value, shift) if shift else value.clone())
    if guards.breached(replay.buffers.arena, replay.places(values)[0]) is not None:
        raise Fails(Outcome("out_of_bounds", "a store ran past a tensor's end", cause="out_of_range_store"))
    wanted = problem.truth_when_timed(*args)
    wanted = tuple(wanted) if isinstance(wanted, (tuple, list)) else (wanted,)
    got = replay.output_views(Values(values.args, wanted))  # type: ignore[arg-type]
    shapes = [(tuple(t.shape), t.dtype) for t in got]
    if shapes != [(tuple(t.shape), t.dtype) for t in wanted]:
        raise Fails(Outcome("wrong_shape", "the result of the timed call has another shape or dtype"))
    wrong = timing.differs(got, wanted)
    if wrong:
        raise Fails(Outcome("wrong_answer", wrong, cause="wrong_when_timed"))


def rolled(value: torch.Tensor, shift: int) -> torch.Tensor:
    """`value` with its elements moved on by `shift` in memory order; its strides are kept. No gaps between elements."""
    flat = torch.empty(value.numel(), dtype=value.dtype, device=value.device)
    moved_on(flat, value.as_strided((value.numel(),), (1,)), shift)
    return flat.as_strided(value.shape, value.stride())


def _beside(judge: Judge, grade: Grade, ahead: Ahead | None = None) -> dict[str, Any]:
    """PyTorch, the reference solution and the limits, in a trusted process without the record. Raises NoTiming.

    Others must leave the GPU alone meanwhile.
    """
    process = ahead.baselines() if ahead is not None else judge.baselines.prepared(judge, grade)
    reply = process.ask({"op": "baselines"}, LIMIT)
    judge.baselines.release()
    if reply.get("event") != "baselines":
        raise NoTiming(str(reply.get("message")))
    return reply
