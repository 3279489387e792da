"""After the clock: mends and kernels are graded on inputs drawn with another seed, spoken answers are scored by rubric.

The work is cut into jobs, so that the app and the plain command run them with their own grader and hear of each.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tutor.answers import mark_bug_line, mark_open, mended_source, same_mend
from tutor.course.model import Bug, Open
from tutor.drill.draw import Task
from tutor.drill.plan import Optimise
from tutor.drill.sitting import GRADED, SELF_SCORED, Sitting
from tutor.grading import Failed, Grader, GradeRequest, VerdictReady

HINT_CAP = 0.75  # a task solved with a hint counts at most this
VISIBLE_ONLY = 0.5  # of kernel coding: it passed on the inputs of the drill, not on others


@dataclass(frozen=True)
class Job:
    task: Task
    slug: str
    source: str
    seed: int
    timed: bool = False


def deciding_seed(drill_seed: int, task_id: str) -> int:
    """Of the inputs that decide: the same for all who sit the drill, and never 0, the seed of the runs before."""
    return int.from_bytes(hashlib.sha256(f"{drill_seed}/{task_id}".encode()).digest()[:4], "big") % 1_000_000 + 1


def to_score(sitting: Sitting) -> tuple[Task, ...]:
    """Spoken answers that still wait for the candidate's own scoring."""
    return tuple(task for task in _spoken(sitting) if sitting.state.answers[task.id].score is None)


def place_of_spoken(sitting: Sitting, task: Task) -> tuple[int, int]:
    """Which of the spoken answers this is, from 1, and how many there are."""
    spoken = _spoken(sitting)
    return spoken.index(task) + 1, len(spoken)


def _spoken(sitting: Sitting) -> tuple[Task, ...]:
    tasks, answers = sitting.state.tasks, sitting.state.answers
    return tuple(task for task in tasks if task.kind in SELF_SCORED and task.id in answers)


def score_spoken(sitting: Sitting, task: Task, claimed: Collection[int]) -> float:
    """`claimed`: 0-based rubric points the answer made. Returns the share of the points."""
    item = sitting.item(task)
    assert isinstance(item, Open)
    mark = mark_open(item, sorted(claimed))
    missed = [point.text for index, point in enumerate(item.rubric) if index not in set(claimed)]
    note = mark.message + (f" Not said: {'; '.join(point.rstrip('.') for point in missed)}." if missed else "")
    detail = {**sitting.state.answers[task.id].detail, **mark.detail}
    sitting.record(
        task.id,
        "scored",
        {"score": _capped(sitting, task, mark.score), "correct": mark.correct, "detail": detail, "note": note},
    )
    return mark.score


def jobs(sitting: Sitting) -> tuple[Job, ...]:
    """What is still to be graded. A job that ended without a verdict is among them again."""
    found = []
    for task in sitting.state.tasks:
        answer = sitting.state.answers.get(task.id)
        if task.kind not in GRADED or answer is None or answer.score is not None:
            continue
        seed = deciding_seed(sitting.state.drill.seed, task.id)
        if task.kind == "bug":
            bug = sitting.item(task)
            assert isinstance(bug, Bug)
            edits = {int(line): text for line, text in (answer.detail.get("edits") or {}).items()}
            if edits:
                found.append(Job(task, bug.exercise, mended_source(bug, edits), seed))
            else:
                _mark_bug(sitting, task, bug, edits, None)
        else:
            source = sitting.state.sources[task.id]
            found.append(Job(task, sitting.kernels.slug(task), source, seed, task.kind == "optimise"))
    return tuple(found)


async def judge(sitting: Sitting, job: Job, grader: Grader) -> None:
    """Grades one job and records what came of it. A grader that fails leaves the task ungraded, with the reason."""
    with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
        file = Path(folder) / f"{job.slug}.py"
        file.write_text(job.source, encoding="utf-8")
        mine = await _verdict(grader, job, file)
        if job.task.kind == "bug":
            bug = sitting.item(job.task)
            assert isinstance(bug, Bug)
            edits = {int(line): text for line, text in sitting.state.answers[job.task.id].detail["edits"].items()}
            _mark_bug(sitting, job.task, bug, edits, mine)
        elif isinstance(mine, Failed) or mine["status"] == "infrastructure_error":
            reason = mine.message if isinstance(mine, Failed) else "the grader could not do its job"
            sitting.record(job.task.id, "ungraded", {"ungraded": reason.splitlines()[0]})
        elif job.task.kind == "exercise":
            _mark_kernel(sitting, job.task, mine)
        else:
            solution = None
            if mine["status"] == "passed" and not mine.get("timing"):
                solution = await _verdict(grader, job, _solution(job.slug))
            _mark_optimised(sitting, job.task, mine, solution if isinstance(solution, dict) else None)


async def _verdict(grader: Grader, job: Job, file: Path) -> dict[str, Any] | Failed:
    request = GradeRequest(job.slug, file, seed=job.seed, keep_going=True, time=None if job.timed else False)
    events: AsyncIterator[Any] = grader.grade(request)
    last: dict[str, Any] | Failed = Failed("", "infrastructure", "The grader gave no answer.")
    async for event in events:
        if isinstance(event, VerdictReady):
            last = event.verdict
        elif isinstance(event, Failed):
            last = event
    return last


def _solution(slug: str) -> Path:
    from grader import catalog

    return catalog.find(slug).solution


def _mark_bug(
    sitting: Sitting, task: Task, bug: Bug, edits: dict[int, str], mine: dict[str, Any] | Failed | None
) -> None:
    line = int(sitting.state.answers[task.id].detail.get("line") or 0)
    found = mark_bug_line(bug, line).correct
    where = f"Line {line} is where it goes wrong." if found else f"Line {line} is not it, {_lines(bug)} is."
    unable = isinstance(mine, Failed) or (mine is not None and mine["status"] == "infrastructure_error")
    unproven = mine is not None and not unable and bool(bug.needs_gpu) and mine["backend"] != "cuda"  # type: ignore[index]
    if not edits:
        mended, how = False, "No mend was written."
    elif unable or unproven:
        mended = same_mend(bug, edits)
        how = "The mend could not be run here; it " + (
            "says what the author's says." if mended else "differs from the author's."
        )
    else:
        assert isinstance(mine, dict)
        mended = mine["status"] == "passed"
        how = (
            "The mend passes every case." if mended else f"The mend does not pass: {mine['status'].replace('_', ' ')}."
        )
    if (unable or unproven) and edits and not mended:
        how += " Counted by the line alone."
        score = 1.0 if found else 0.0
    else:
        score = 1.0 if mended else 0.5 if found else 0.0
    share = _capped(sitting, task, score)
    shares = {"problem_solving": share, "edge_cases": _capped(sitting, task, 1.0 if mended else 0.0)}
    if unable or unproven:
        shares.pop("edge_cases")
    sitting.record(
        task.id,
        "graded",
        {"score": share, "correct": mended, "note": f"{where} {how}", "shares": _wanted(task, shares)},
    )


def _lines(bug: Bug) -> str:
    return f"line {' or '.join(map(str, bug.faulty))}"


def _mark_kernel(sitting: Sitting, task: Task, verdict: dict[str, Any]) -> None:
    cases = [case for case in verdict.get("cases") or [] if case.get("status") != "skipped"]
    good = sum(case.get("status") == "passed" for case in cases)
    passed = verdict["status"] == "passed"
    seen = sitting.state.checks.get(task.id, {}).get("status") == "passed"
    part = good / len(cases) if cases else 0.0
    coding = 1.0 if passed else max(VISIBLE_ONLY if seen else 0.0, 0.5 * part)
    if verdict["status"] == "not_started":
        note = "The stub was handed in as it was."
    else:
        note = f"{good} of {len(cases)} cases passed on other inputs" + (
            "." if passed else f": {verdict['status'].replace('_', ' ')}."
        )
        if cause := (verdict.get("diagnosis") or {}).get("cause"):
            note += f" {'Beside the pass' if passed else 'Cause'}: {str(cause).replace('_', ' ')}."
    shares = {
        "kernel_coding": _capped(sitting, task, coding),
        "edge_cases": _capped(sitting, task, 1.0 if passed else part),
    }
    detail = {"status": verdict["status"], "backend": verdict["backend"], "cases": len(cases), "passed_cases": good}
    detail["seed"], detail["see"] = verdict["seed"], (verdict.get("diagnosis") or {}).get("see")
    score = _capped(sitting, task, 0.5 * coding + 0.5 * (1.0 if passed else part))
    sitting.record(
        task.id,
        "graded",
        {"score": score, "correct": passed, "note": note, "shares": _wanted(task, shares), "detail": detail},
    )


def _mark_optimised(sitting: Sitting, task: Task, mine: dict[str, Any], solution: dict[str, Any] | None) -> None:
    bar = sitting.state.drill.plan.phases[task.phase].optimise
    assert bar is not None
    detail: dict[str, Any] = {"status": mine["status"], "backend": mine["backend"], "bar_percent": bar.percent_of_limit}
    timing = mine.get("timing")
    if mine["status"] != "passed":
        score, note = 0.0, f"A kernel that gives a wrong answer is not fast: {mine['status'].replace('_', ' ')}."
    elif timing and timing.get("percent_of_limit") is not None:
        reached = float(timing["percent_of_limit"])
        score = min(1.0, reached / bar.percent_of_limit)
        detail |= {"measured": True, "percent_of_limit": reached, "median_us": timing.get("median_us")}
        detail |= {"solution_us": timing.get("solution_us"), "limit": timing.get("limit")}
        limit, bar_words = timing.get("limit"), f"the bar is {bar.percent_of_limit:.0f} %"
        note = f"Measured on {mine['device']}: {reached:.0f} % of the {limit} limit; {bar_words}."
    else:
        facts = model_facts(bar, mine, solution)
        detail |= {"measured": False, "model": [{"fact": fact, "held": held} for fact, held in facts]}
        if not facts:
            sitting.record(task.id, "ungraded", {"ungraded": "no GPU to measure on, and nothing to count instead"})
            return
        score = sum(held for _, held in facts) / len(facts)
        said = "; ".join(f"{'met' if held else 'not met'}: {fact}" for fact, held in facts)
        note = f"The time needs a GPU. A model instead, counted without one: {said}."
    share = _capped(sitting, task, score)
    sitting.record(task.id, "graded", {"score": share, "correct": score >= 1.0, "note": note, "detail": detail})


def model_facts(bar: Optimise, mine: dict[str, Any], solution: dict[str, Any] | None) -> list[tuple[str, bool]]:
    """What can be counted without a GPU, each against the course's own solution on the same inputs: fact, met."""
    other = solution if solution and solution["status"] == "passed" else {}
    facts = []
    moved, theirs = ((verdict.get("traffic") or {}).get("ratio") for verdict in (mine, other))
    if moved is not None:
        allowed = bar.traffic_slack * (theirs or 1.0)
        facts.append((f"moves {moved:.2f} x the least bytes (allowed {allowed:.2f} x)", moved <= allowed))
    rows, their_rows = mine.get("compile") or [], other.get("compile") or []
    if rows:
        spilled, theirs = (sum(row.get("spill_bytes") or 0 for row in some) for some in (rows, their_rows))
        facts.append((f"spills {spilled} bytes of registers (allowed {theirs})", spilled <= theirs))
    for name, words in (("vector_loads", "loads vectors"), ("tensor_core_ops", "uses tensor cores")):
        if rows and any(row.get(name) for row in their_rows):
            facts.append((f"{words}, as the course's solution does", any(row.get(name) for row in rows)))
    return facts


def _wanted(task: Task, shares: dict[str, float]) -> dict[str, float]:
    return {skill: share for skill, share in shares.items() if skill in task.skills}


def _capped(sitting: Sitting, task: Task, share: float) -> float:
    return min(share, HINT_CAP) if sitting.state.hints.get(task.id) else share


def as_shown(verdict: dict[str, Any], *, strict: bool) -> dict[str, Any]:
    """The verdict of a run during the drill: what failed, and no item that gives the answer. A diagnosis is a hint."""
    diagnosis = verdict.get("diagnosis")
    return {**verdict, "diagnosis": {**diagnosis, "see": None} if diagnosis and not strict else None}
