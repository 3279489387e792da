"""In the judge: the access map of a submission, on a case that is small and shows something."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch

from grader import stub_check
from grader.access_map.model import AccessMap, Recorded, sound
from grader.access_map.sending import MOST_PARTS
from grader.case_runner import CaseRunner, Outcome
from grader.expectation import Values, work_of
from grader.failures import BadSubmission, Refused, RunnerGone, Unavailable
from grader.grade import Grade, Options, Submission
from grader.judge import Judge
from grader.problem import Case, Problem
from grader.verdict import Verdict

SMALL = 4608  # elements of a tensor: 4096 and a last tile
LARGEST = 1 << 16  # elements of a tensor in a case that the learner names
ENOUGH = 600  # accesses looked at: then the best so far is taken
FEW_PROGRAMS = 24  # that can be told apart at a glance
TRIES = 12  # cases looked at when none is named
NOT_JUDGED = ("wrong_answer", "wrong_shape", "wrong_dtype", "not_written", "input_mutated")  # of a lesson's kernel
SECONDS = 20.0  # to put the map into words


def answer(
    judge: Judge,
    submission: Submission,
    request: dict[str, Any],
    emit: Callable[[dict[str, Any]], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    """`case`: a case's name, or enough of it; without it one is chosen. With `demo` the kernel is a lesson's: its code
    is left out, its result is not judged, and it need not do the exercise's work.

    Raises BadSubmission where there is no map, Unavailable, Cancelled.
    """
    if "interpreter" not in judge.warm:
        raise Unavailable("an access map needs Triton's interpreter: `triton-prep doctor` says more")
    if stub_check.untouched(submission.source, submission.exercise.stub.read_bytes()):
        raise BadSubmission("the stub is as it was given: write the kernel, then look at its map")
    problem = judge.problem(submission.exercise)
    options = Options(backend="interpreter", seed=int(request.get("seed") or 0))
    verdict = Verdict(problem.slug, problem.title, submission.file, "", options.seed, "interpreter", "", {})
    grade = Grade(submission, problem, options, "interpreter", emit, cancelled, verdict, judge.drawings)
    drawn = {case.name: grade.values(case) for case in problem.cases if not case.needs_gpu}
    wanted = str(request.get("case") or "")
    tried = [_named(problem, drawn, wanted)] if wanted else _candidates(problem, drawn)
    try:
        with judge.runner(grade, "interpreter", [drawn[case.name] for case in tried]) as runner:
            case, outcome = _most_telling(runner, tried, drawn, emit)
            found = _fetched(runner)
    except Refused as refused:
        line = refused.reply.get("line")
        raise BadSubmission(f"{_where(submission, line)}: {refused.reply.get('message')}") from refused
    except RunnerGone as gone:
        raise BadSubmission(f"{submission.file}: {gone}") from gone
    return _told(submission, problem, case, drawn, outcome, found, bool(request.get("demo")))


def _where(submission: Submission, line: Any) -> str:
    return f"{submission.file}:{line}" if line else submission.file


def _named(problem: Problem, drawn: dict[str, Values], wanted: str) -> Case:
    """By its whole name or an unambiguous part of it."""
    cases = [case for case in problem.cases if case.name in drawn]
    found = [case for case in cases if case.name == wanted] or [case for case in cases if wanted in case.name]
    if len(found) != 1:
        what = "names several cases" if found else "is no case here"
        raise BadSubmission(f"{wanted!r} {what}; the cases: {', '.join(repr(case.name) for case in cases)}")
    if _largest(drawn[found[0].name]) > LARGEST:
        raise BadSubmission(f"{found[0].name!r} has more than {LARGEST:,} elements in a tensor: choose a smaller case")
    return found[0]


def _candidates(problem: Problem, drawn: dict[str, Values]) -> list[Case]:
    """Small cases that are not empty, the largest of them first; failing those, the smallest case."""
    cases = [case for case in problem.cases if case.name in drawn and drawn[case.name].size > 0]
    cases.sort(key=lambda case: _largest(drawn[case.name]))  # stable: of equal ones the first in the problem
    small = [case for case in cases if _largest(drawn[case.name]) <= SMALL]
    chosen = small[::-1][:TRIES] or cases[:1]
    if not chosen:
        raise BadSubmission("no case of this exercise can be run here: they need a GPU")
    return chosen


def _largest(values: Values) -> int:
    """Elements of memory of the largest tensor, an expanded axis counted once."""
    tensors = [a for a in values.args if isinstance(a, torch.Tensor)] + [e.native for e in values.expected]
    return max((_held(tensor) for tensor in tensors), default=0)


def _held(tensor: torch.Tensor) -> int:
    count = 1
    for n, stride in zip(tensor.shape, tensor.stride(), strict=True):
        count *= min(n, 1) if stride == 0 else n
    return count


def _most_telling(
    runner: CaseRunner, tried: Sequence[Case], drawn: dict[str, Values], emit: Callable[[dict[str, Any]], None]
) -> tuple[Case, Outcome]:
    """Run the cases; the runner then holds the map of the one that shows most."""
    seen = 0
    best, best_points, last, outcome = tried[0], -1.0, tried[0], Outcome("crashed")
    for number, case in enumerate(tried):
        emit({"event": "progress", "done": number, "total": len(tried), "words": f"case {case.name}"})
        last, outcome = case, runner.run(drawn[case.name], trace="map")
        if len(tried) == 1:
            return case, outcome
        summary = runner.process.ask({"op": "access map", "part": None}, SECONDS)
        points = _points(summary) + 4 * (outcome.status != "passed") + _plain(drawn[case.name])
        if points > best_points:
            best, best_points = case, points
        visits = summary.get("visits")
        seen += visits if isinstance(visits, int) else 0
        if seen > ENOUGH:
            break
    if last is not best:
        outcome = runner.run(drawn[best.name], trace="map")
    return best, outcome


def _points(summary: dict[str, Any]) -> float:
    """An overrun tells most, more than an answer that is only wrong; then several programs, along several axes if
    possible, then masked-off lanes, then how many programs, if not too many."""
    programs = summary.get("programs")
    count = programs if isinstance(programs, int) else 1
    few = 1 + min(count, 8) / 8 if 1 < count <= FEW_PROGRAMS else 0.0
    several = 3 * (count > 1) + bool(summary.get("plane"))
    return 8 * bool(summary.get("bad")) + several + 2 * bool(summary.get("masked")) + few


def _plain(values: Values) -> bool:
    """Whether there are no views to think about: the place of an element is then its place in the tensor."""
    return all(a.is_contiguous() for a in values.args if isinstance(a, torch.Tensor))


def _fetched(runner: CaseRunner) -> Recorded:
    """The runner's account of its last call. It comes from a process that runs the learner's code."""
    texts: list[str] = []
    parts = 1
    while len(texts) < parts:
        reply = runner.process.ask({"op": "access map", "part": len(texts)}, SECONDS)
        told, text = reply.get("parts"), reply.get("text")
        if not isinstance(told, int) or not isinstance(text, str) or not 0 <= told <= MOST_PARTS:
            raise BadSubmission("the call touches more than a map can show: choose a smaller case")
        parts = told
        texts.append(text)
    try:
        found = msgspec.convert(json.loads("".join(texts)), Recorded)
    except (ValueError, msgspec.ValidationError) as error:
        raise BadSubmission("the process answered nonsense") from error
    if not sound(found):
        raise BadSubmission("the process answered nonsense")
    return found


def _told(
    submission: Submission,
    problem: Problem,
    case: Case,
    drawn: dict[str, Values],
    outcome: Outcome,
    found: Recorded,
    demo: bool,
) -> dict[str, Any]:
    lines = [] if demo else submission.source.decode().splitlines()

    def source(line: int) -> str:
        return lines[line - 1].strip() if 0 < line <= len(lines) else ""

    status, message, line = outcome.status, outcome.message or "", outcome.line
    if demo and status in NOT_JUDGED:
        status, message, line = "passed", "", None
    if found.full:
        status, message = "passed", "The call touches more than a map holds; it was ended there."
    elif found.bad is not None:
        bad = found.bad
        message = f"{bad.kind} at element {bad.index} of {bad.tensor}, whose memory ends at element {bad.end - 1}"
        status, line = "out_of_bounds", bad.line or None
    values = drawn[case.name]
    told = AccessMap(
        exercise=problem.slug,
        file=submission.file,
        case=case.name,
        cases=tuple(name for name, each in drawn.items() if _largest(each) <= LARGEST),
        parameters=problem.parameters,
        status=status,
        message=message,
        line=line,
        minimum_bytes=0 if demo else work_of(problem, values.args).bytes,
        launches=found.launches,
        tensors=found.tensors,
        sites=tuple(msgspec.structs.replace(site, source=source(site.line)) for site in found.sites),
        loaded_bytes=found.loaded_bytes,
        stored_bytes=found.stored_bytes,
        bad=found.bad,
        full=found.full,
    )
    data: dict[str, Any] = msgspec.to_builtins(told)
    return data
