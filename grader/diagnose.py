"""Why it is wrong: the problem's mistake models first, then general signs. When nothing fits, say so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from grader import signs
from grader.case_runner import Outcome
from grader.causes import GENERAL, LINES, OF_STATE, Diagnosis, general
from grader.compiled_otherwise import stale_name
from grader.mistake_models import best_mistake
from grader.problem import Case, Problem
from grader.source import assigned_in_branch, assignment_in_loop, line_of_pattern, unmasked_access
from grader.verdict import Failure, case_row

if TYPE_CHECKING:
    from grader.grade import Grade

UNTOLD = ("unknown", "nothing_written", "unwritten_region", "last_tile_only")  # a larger case may say more
UNSTARTED = ("import_error", "compile_error", "infrastructure_error")  # what no look beside the run can explain better
BY_CHANCE = ("wrong_answer", "not_written", "nondeterministic")  # what undefined lanes and races look like on a GPU


def finish(grade: Grade) -> None:
    """Settle the status from all that was seen, and explain it."""
    verdict = grade.verdict
    source = grade.submission.source.decode("utf-8", "replace")
    refused = verdict.refused
    if refused is not None and verdict.status not in UNSTARTED:
        case, outcome = refused
        if outcome.status == "compile_error":
            verdict.first_failure(case, grade.values(case), outcome)
            verdict.notes.append(
                f"refused when compiled for {grade.options.target}, case {case.name!r}; the interpreter accepts it"
            )
    _seen_beside(grade)
    if verdict.failure is not None:
        compiled = stale_name(verdict, source) if verdict.backend == "cuda" else None
        found = explain(grade.problem, verdict.failure, verdict.tried, source, verdict.undefined_filler, compiled)
        if compiled is not None and compiled.cause != found.cause:
            verdict.notes.append(f"line {compiled.line}: {compiled.message}")
        least = verdict.smallest or verdict.failure
        comparison = least.outcome.comparison
        index = comparison.first_bad_index if comparison is not None else None
        verdict.diagnosis = {
            "cause": found.cause,
            "message": found.message,
            "line": found.line,
            "concept": found.concept,
            "see": found.see,
            "case": least.case.name,
            "index": list(index) if index is not None else least.outcome.index,
            "program": list(least.outcome.program_id) if least.outcome.program_id is not None else None,
        }
        if verdict.failure.outcome.whole:
            verdict.diagnosis["whole"] = verdict.failure.outcome.whole
        for failure in {verdict.failure.case.name: verdict.failure, least.case.name: least}.values():
            _settle_case_row(grade, failure)
    elif verdict.diagnosis is not None:
        cause = verdict.diagnosis["cause"] or ""
        if cause in GENERAL:
            verdict.diagnosis["concept"], verdict.diagnosis["see"] = GENERAL[cause]
        if verdict.diagnosis["line"] is None:
            verdict.diagnosis["line"] = line_of_pattern(source, LINES.get(cause))
    elif verdict.status == "passed":
        stale = stale_name(verdict, source)
        if stale is not None:
            verdict.remark = grade.problem.cases[0], stale
        if verdict.remark is not None:
            case, remark = verdict.remark
            line = remark.line or line_of_pattern(source, LINES.get(remark.cause))
            verdict.diagnosis = {**asdict(remark), "line": line, "case": case.name}


def _seen_beside(grade: Grade) -> None:
    """What the interpreter saw beside a GPU run: it knows each access, where a GPU may be right or wrong by chance."""
    verdict = grade.verdict
    beyond, filler, unordered = verdict.out_of_bounds, verdict.filler_failure, verdict.unordered
    if beyond is not None and verdict.status not in UNSTARTED and _not_later(grade, beyond[0]):
        verdict.first_failure(*beyond)
        verdict.tried, verdict.smallest = verdict.tried_beside, verdict.smallest_beside
        verdict.notes.append("found by the interpreter's exact bounds check")
    elif filler is not None and (_passes(grade) or (verdict.status in BY_CHANCE and _not_later(grade, filler[0]))):
        if verdict.failure is None or verdict.status == "nondeterministic":
            verdict.first_failure(*filler)
        verdict.undefined_filler = True
        verdict.notes.append(
            "found by the interpreter, which fills masked-off lanes of a load without `other` with NaN"
        )
    elif unordered is not None and (
        _passes(grade) or (verdict.status in BY_CHANCE and unordered[2].status == "nondeterministic")
    ):
        if verdict.failure is not None:
            told = verdict.failure
            verdict.notes.append(f"on the GPU, case {told.case.name!r}: {told.outcome.message}")
        verdict.first_failure(*unordered)
        verdict.notes.append("found by the interpreter, which knows what each program touches")


def _passes(grade: Grade) -> bool:
    """Whether nothing is wrong but, at most, that the interpreter does not get the GPU's answer from the kernels."""
    verdict = grade.verdict
    cause = (verdict.diagnosis or {}).get("cause")
    return verdict.status == "passed" or (verdict.failure is None and cause == "kernels_alone_are_wrong")


def _not_later(grade: Grade, case: Case) -> bool:
    """Whether no case before this one has failed already."""
    failure = grade.verdict.failure
    cases = grade.problem.cases
    return failure is None or cases.index(case) <= cases.index(failure.case)


def _settle_case_row(grade: Grade, failure: Failure) -> None:
    """A failure seen beside the run (offline compile, bounds, a smaller case) belongs to its case too."""
    for position, row in enumerate(grade.verdict.cases):
        if row["name"] == failure.case.name:
            grade.verdict.cases[position] = case_row(failure.case, failure.outcome)


def explain(
    problem: Problem,
    failure: Failure,
    tried: Sequence[Failure],
    source: str,
    filler: bool,
    compiled: Diagnosis | None = None,
) -> Diagnosis:
    """`tried` are the other cases that were run; `filler`: whether undefined lanes reach the result; `compiled`: what
    the compiler makes of the source and the interpreter does not."""
    outcome = failure.outcome
    if outcome.status == "out_of_bounds":
        return _beyond(problem, failure, tried, source)
    if outcome.status not in ("wrong_answer", "not_written") or outcome.comparison is None:
        return _raised(outcome, source)
    if outcome.cause == "wrong_configuration":  # shown by running it: no model can say more
        return general(outcome.cause, outcome.message or outcome.status)
    if filler:
        line = line_of_pattern(source, r"tl\.load\((?=.*mask)(?!.*other)")
        line = line or line_of_pattern(source, r"tl\.load\((?!.*other)")
        return general(
            "load_without_other",
            "Lanes switched off by a load's mask reach the result: without `other` their value is undefined. "
            "Give `other` the neutral element of what follows (0 for a sum, -inf for a maximum).",
            line,
        )
    kept = outcome.cause in OF_STATE
    named = _by_mistake(problem, failure, () if kept else tried, source)
    shown = kept and outcome.cause != "wrong_on_second_call"  # the same call was right by itself
    if named is not None and (not shown or named.concept == "autotuning"):
        return named
    if shown:
        return general(outcome.cause or outcome.status, outcome.message or outcome.status)
    if kept:
        return general(
            "wrong_on_second_call",
            f"{outcome.message}. Does the launcher keep state between calls, or is an output added to and never reset?",
        )
    return compiled or _by_signs(failure, tried)


def _by_mistake(problem: Problem, failure: Failure, tried: Sequence[Failure], source: str) -> Diagnosis | None:
    mistake = best_mistake(problem, failure, tried)
    if mistake is None:
        return None
    line = line_of_pattern(source, mistake.line)
    return Diagnosis(mistake.cause, mistake.message, mistake.concept, mistake.see, line)


def _by_signs(failure: Failure, tried: Sequence[Failure]) -> Diagnosis:
    """The signs of this failure; where they say nothing, those of another one."""
    wrong = [failure, *(other for other in tried if other.outcome.comparison and other.outcome.status != "passed")]
    strided = all(signs.has_strided_input(other.values) for other in wrong)
    first = signs.by_signs(failure.values, failure.outcome, strided)
    if first.cause not in UNTOLD:
        return first
    for other in wrong[1:]:
        found = signs.by_signs(other.values, other.outcome, strided)
        if found.cause not in UNTOLD:
            return replace(found, message=f"Case {other.case.name!r}: {found.message}")
    return first


def _raised(outcome: Outcome, source: str) -> Diagnosis:
    """A failure that says itself what it is."""
    cause, line = outcome.cause or outcome.status, outcome.line
    message = outcome.message or outcome.status
    if cause == "undefined_name":
        name = re.search(r"(\w+) is not defined", message)
        if name is not None and assigned_in_branch(source, name[1]):
            cause = "defined_in_one_branch"
    elif cause == "loop_changes_type":
        name = re.match(r"(\w+) is ", message)
        if name is not None and line is not None:
            line = assignment_in_loop(source, name[1], line) or line
    if line is None:
        line = line_of_pattern(source, LINES.get(cause))
    return general(cause, message, line)


def _beyond(problem: Problem, failure: Failure, tried: Sequence[Failure], source: str) -> Diagnosis:
    outcome = failure.outcome
    cause, line = outcome.cause or "out_of_range_store", outcome.line
    message = outcome.message or ""
    if line is None:  # seen in a guard band: the source tells which access has no mask
        bare = unmasked_access(source)
        if bare is not None:
            cause, line = f"missing_{bare[0]}_mask", bare[1]
    if outcome.program_id is not None:
        message += f", by program {tuple(outcome.program_id)}"
    if cause.startswith("missing"):
        return general(
            cause, f"{message}. This access has no mask: the last program's tile reaches past the end.", line
        )
    named = _by_mistake(problem, failure, tried, source)  # cases that stay inside show what is read
    if named is not None:
        return replace(named, message=f"{named.message} ({message})", line=named.line or line)
    found = signs.beyond(problem, failure.values, outcome)
    if found is not None:
        return general(found[0], f"{found[1]} ({message})", line_of_pattern(source, LINES.get(found[0])) or line)
    return general(
        cause,
        f"{message}. The mask lets a lane through that lies outside; compare it with the shape the offsets run over.",
        line,
    )
