"""What a learner is told of a mark, in every form of feedback the same: the shown run in full, the rest by its kind.

Nothing of a hidden run or a hidden case is told but whether it held, how it failed and which concept that is about:
no name, no value, no seed, nothing that the file printed there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tutor.homework.assignment import Exercise
from tutor.homework.marking import Mark, MarkedAttempt, Result
from tutor.verdict_text import Line, TitleOf, case_line, remark_lines, status_words, untitled, verdict_lines

NOT_GRADED = "The grader could not do its job here. Your instructor knows, and there are no points lost."
OWN_WORDS = {"missing": "nothing was handed in", "unreadable": "the file cannot be graded", "refused": "not read"}
CUT_OFF = ("timeout", "crashed", "import_error")  # they end what runs beside the cases, at a moment of chance
NOT_JUDGED = ("skipped", "not_run")


@dataclass(frozen=True)
class Told:
    exercise: str
    points: float | None
    most: float
    status: str
    words: str
    lines: tuple[Line, ...]
    cases: tuple[ToldCase, ...]
    times: tuple[tuple[str, float], ...] = ()  # name, microseconds; the learner's first
    remark: tuple[Line, ...] = ()  # beside a pass; these are among `lines` as well


@dataclass(frozen=True)
class ToldCase:
    name: str
    status: str  # passed, failed, skipped
    kind: str  # of the failure
    message: str
    seconds: float | None = None


def tell(mark: Mark, asked: Exercise, title_of: TitleOf = untitled) -> Told:
    """`title_of`: of the items that a diagnosis names."""
    words = OWN_WORDS.get(mark.status) or status_words(mark.status)
    if mark.points is None:
        lines: tuple[Line, ...] = (Line(NOT_GRADED),)
        return Told(mark.exercise, None, mark.most, mark.status, words, lines, ())
    if mark.shown is None:
        return Told(mark.exercise, mark.points, mark.most, mark.status, words, (Line(mark.message),), ())
    verdict = _masked(mark.shown, asked, mark.file)
    found = verdict_lines(verdict, width=10_000, title_of=title_of)[1:]  # the heading is said by whoever shows this
    if mark.hidden is not None:
        found.append(Line(f"Hidden cases: {hidden_words(mark.hidden)}", "head"))
    if mark.shown.get("timing"):  # the times stand apart
        found = [line for line in found if not line.text.startswith("Not timed:")]
    found += _speed_lines(mark)
    cases = [_case(row, verdict) for row in verdict.get("cases") or ()]
    if mark.hidden is not None:
        held = mark.hidden.get("status") == "passed"
        kind = "" if held else str(mark.hidden.get("status"))
        cases.append(ToldCase("hidden cases", "passed" if held else "failed", kind, hidden_words(mark.hidden)))
    return Told(
        mark.exercise, mark.points, mark.most, mark.status, words, tuple(found), tuple(cases), _times(mark.shown),
        tuple(remark_lines(verdict)) if mark.passed else (),
    )  # fmt: skip


def hidden_words(verdict: Mapping[str, Any]) -> str:
    """The kind of failure and the concept, and no more."""
    concept = (verdict.get("diagnosis") or {}).get("concept")
    words = status_words(str(verdict.get("status")))
    return words if verdict.get("status") == "passed" or not concept else f"{words} (about: {concept})"


def heading(result: Result, title: str) -> list[str]:
    """The score, when it was handed in, and what lateness and other attempts have to do with it."""
    counted = result.counted
    points = "not known yet" if counted.points is None else f"{counted.points:g}"
    lines = [f"{points} of {counted.most:g} points", f"Handed in {counted.attempt.submitted.isoformat()}"]
    if counted.late_seconds > 0:
        lines.append(f"Late by {late_words(counted.late_seconds)}: {100 * counted.kept:.4g} % of the points are kept")
    if counted.attempt.name:
        lines.append(f"{counted.attempt.name} counts")
    lines += [f"{other.attempt.name}: {_points(other)}" for other in result.others]
    lines += [f"{name} is beyond the number of attempts and was not graded" for name in result.surplus]
    lines += [f"Note: {note}" for note in counted.attempt.notes[:20]]
    return [title, *lines]


def late_words(seconds: float) -> str:
    days, rest = divmod(int(seconds), 86_400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    return f"{days} d {hours} h {minutes} min" if days else f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _points(one: MarkedAttempt) -> str:
    return "not known yet" if one.points is None else f"{one.points:g} of {one.most:g} points"


def _masked(verdict: Mapping[str, Any], asked: Exercise, name: str) -> dict[str, Any]:
    """Without times, without the place where the file was kept, and without what belongs to hidden cases."""
    path = str(verdict.get("file") or "")
    shown = {key: _renamed(value, path, name) for key, value in verdict.items() if key not in ("stages", "timing")}
    if verdict.get("status") in CUT_OFF:
        shown |= {"compile": None, "notes": []}
    hidden = set(asked.hidden_cases)
    if not hidden:
        return shown
    failed = next((row for row in shown.get("cases") or () if row.get("status") not in ("passed", *NOT_JUDGED)), None)
    count = 0
    rows = []
    for row in shown.get("cases") or ():
        if row.get("name") in hidden:
            count += 1
            row = {"name": f"hidden case {count}", "status": row.get("status"), "message": None}
        rows.append(row)
    diagnosis = shown.get("diagnosis")
    about = failed.get("name") if failed else None
    if diagnosis and verdict.get("status") == "passed":
        about = diagnosis.get("case")  # what is remarked beside a pass was tried in this case
    if diagnosis and (about is None or about in hidden):
        concept = diagnosis.get("concept")
        message = f"This is about: {concept}." if concept else "It fails in a hidden case."
        diagnosis = {"cause": None, "message": message, "line": None, "concept": concept, "see": diagnosis.get("see")}
    return {**shown, "cases": rows, "diagnosis": diagnosis, "output": None, "traffic": None, "notes": []}


def _renamed(value: Any, path: str, name: str) -> Any:
    if isinstance(value, str):
        return value.replace(path, name) if path else value
    if isinstance(value, Mapping):
        return {key: _renamed(one, path, name) for key, one in value.items()}
    return [_renamed(one, path, name) for one in value] if isinstance(value, list | tuple) else value


def _case(row: Mapping[str, Any], verdict: Mapping[str, Any]) -> ToldCase:
    status = str(row.get("status"))
    name = str(row.get("name"))
    if status == "passed":
        return ToldCase(name, "passed", "", "", row.get("seconds"))
    if status in NOT_JUDGED:
        why = "an earlier case failed" if status == "not_run" else str(row.get("message") or "")
        return ToldCase(name, "skipped", status, why)
    return ToldCase(name, "failed", status, str(row.get("message") or case_line(row)), row.get("seconds"))


def _speed_lines(mark: Mark) -> list[Line]:
    if not mark.most_speed or mark.shown is None or mark.shown.get("status") != "passed":
        return []
    if mark.speed_points is None:
        return [Line("Speed: not measured, or too noisily to rank")]
    return [Line(f"Speed: {mark.speed_points:g} of {mark.most_speed:g} points")]


def _times(verdict: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    timing = verdict.get("timing") or {}
    rows = [("yours", "median_us"), ("reference solution", "solution_us"), ("eager PyTorch", "eager_us")]
    rows.append(("torch.compile", "compiled_us"))
    return tuple((name, float(timing[key])) for name, key in rows if timing.get(key)) if timing.get("median_us") else ()
