"""From a finished drill to its scorecard: skills from 1 to 5, a signal that explains itself, and the trend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tutor.course.model import Bug
from tutor.drill.draw import Task
from tutor.drill.plan import SKILL_WORDS, Plan
from tutor.drill.sitting import Sitting
from tutor.drill.state import Answer, State

SCORECARD_SCHEMA = 1


class SkillScore(msgspec.Struct, frozen=True, kw_only=True):
    skill: str
    words: str
    score: float | None  # 1 to 5; None: nothing in this drill showed it
    weight: float
    tasks: int
    floor: float | None = None


class TaskResult(msgspec.Struct, frozen=True, kw_only=True):
    task: str
    phase: str
    kind: str
    item: str
    title: str
    result: str  # right, partly, wrong, not answered, not graded, not scored
    score: float | None
    seconds: float
    note: str
    flagged: bool
    hints: int
    look_up: str  # a command that shows the item and its answer
    detail: dict[str, Any] = {}


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    planned_seconds: float
    seconds: float
    away_seconds: float
    how: str  # time, done, finished, not reached
    skills: dict[str, float]  # 1 to 5
    grading_runs: int


class Earlier(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    plan: str
    started: str
    overall: float | None
    signal: str
    skills: dict[str, float]


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = SCORECARD_SCHEMA
    id: str
    plan: str
    title: str
    seed: int
    shared_seed: bool
    course_version: str
    module: str
    strict: bool
    started: str
    seconds: float
    planned_seconds: float
    away_seconds: float
    overall: float | None
    signal: str  # hire, no hire, not enough shown
    reasons: tuple[str, ...]
    skills: tuple[SkillScore, ...]
    phases: tuple[PhaseResult, ...]
    tasks: tuple[TaskResult, ...]
    late: tuple[str, ...]
    earlier: tuple[Earlier, ...]
    notes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()  # begun by then, and the only ones that it was drawn from; empty: any


def scorecard(sitting: Sitting, earlier: Iterable[Earlier] = ()) -> Scorecard:
    state = sitting.state
    plan = state.drill.plan
    skills = skill_scores(state)
    overall = _overall(skills)
    signal, reasons = hire_signal(plan, skills)
    return Scorecard(
        id=state.id,
        plan=plan.name,
        title=plan.title,
        seed=state.drill.seed,
        shared_seed=state.drill.shared,
        course_version=state.drill.course_version,
        module=state.drill.module,
        modules=state.drill.modules,
        strict=state.strict,
        started=state.started,
        seconds=state.anchor.elapsed,
        planned_seconds=60.0 * plan.minutes,
        away_seconds=state.away,
        overall=overall,
        signal=signal,
        reasons=reasons,
        skills=skills,
        phases=tuple(_phase(state, index) for index in range(len(plan.phases))),
        tasks=tuple(_task(sitting, task) for task in state.tasks),
        late=tuple(str(entry["task"]) for entry in state.late),
        earlier=tuple(earlier),
        notes=_notes(state),
    )


def skill_scores(state: State, phase: int | None = None) -> tuple[SkillScore, ...]:
    """Of the whole drill, or of one phase. A task without an answer counts as nothing right, reached or not."""
    plan = state.drill.plan
    found = []
    for skill, words in SKILL_WORDS.items():
        total = gained = 0.0
        count = 0
        for task in state.tasks:
            if phase is not None and task.phase != phase:
                continue
            share = _share(state, task, skill)
            if skill in task.skills and share is not None:
                weight = task.weight * task.skills[skill]
                total, gained, count = total + weight, gained + weight * share, count + 1
        score = round(1.0 + 4.0 * gained / total, 2) if total else None
        weight = plan.weights.get(skill, 1.0)  # type: ignore[call-overload]
        floor = plan.hire.floors.get(skill)  # type: ignore[call-overload]
        found.append(SkillScore(skill=skill, words=words, score=score, weight=weight, tasks=count, floor=floor))
    return tuple(found)


def _share(state: State, task: Task, skill: str) -> float | None:
    """0 to 1; None where the task says nothing about the skill."""
    answer = state.answers.get(task.id)
    if answer is None:
        return None if task.id in state.gone else 0.0
    if answer.ungraded or answer.score is None:
        return None
    if answer.shares:
        return answer.shares.get(skill)
    return answer.score


def _overall(skills: Iterable[SkillScore]) -> float | None:
    shown = [(skill.score, skill.weight) for skill in skills if skill.score is not None]
    if not shown:
        return None
    return round(sum(score * weight for score, weight in shown) / sum(weight for _, weight in shown), 2)


def hire_signal(plan: Plan, skills: tuple[SkillScore, ...]) -> tuple[str, tuple[str, ...]]:
    """hire, no hire or not enough shown, and every threshold that had a part in it."""
    overall = _overall(skills)
    if overall is None:
        return "not enough shown", ("Nothing was answered that could be scored.",)
    bar = plan.hire.overall
    good = overall >= bar
    relation = "reaches" if good else "is below"
    reasons = [f"The weighted mean of the skills, {overall:.1f}, {relation} the bar of {bar:.1f}."]
    for skill in skills:
        floor = plan.hire.floors.get(skill.skill)  # type: ignore[call-overload]
        if floor is None:
            continue
        if skill.score is None:
            good = False
            reasons.append(f"{skill.words} was not shown; this plan asks for at least {floor:.1f}.")
        elif skill.score < floor:
            good = False
            reasons.append(f"{skill.words}, {skill.score:.1f}, is below its floor of {floor:.1f}.")
        else:
            reasons.append(f"{skill.words}, {skill.score:.1f}, reaches its floor of {floor:.1f}.")
    unscored = tuple(skill for skill in skills if skill.skill != "communication")
    without = _overall(unscored)
    if without is not None and without != overall and (without >= bar) != (overall >= bar):
        reasons.append(f"Your own scoring of communication decides here: without it the mean is {without:.1f}.")
    return ("hire" if good else "no hire"), tuple(reasons)


def _phase(state: State, index: int) -> PhaseResult:
    phase = state.drill.plan.phases[index]
    reached = state.phases[index] if index < len(state.phases) else None
    ended = state.anchor.elapsed if reached is None or reached.ended is None else reached.ended
    skills = {skill.skill: skill.score for skill in skill_scores(state, index) if skill.score is not None}
    return PhaseResult(
        name=phase.name,
        planned_seconds=60.0 * phase.minutes,
        seconds=0.0 if reached is None else ended - reached.started,
        away_seconds=0.0 if reached is None else reached.away,
        how=reached.how if reached else "not reached",
        skills=skills,
        grading_runs=state.runs.get(phase.name, 0),
    )


def _task(sitting: Sitting, task: Task) -> TaskResult:
    state = sitting.state
    answer = state.answers.get(task.id)
    try:
        title = sitting.item(task).title
    except KeyError:  # gone from the course since
        title = task.item
    look_up = f"triton-prep show {task.item} --answer" if task.item and task.kind != "talk" else ""
    return TaskResult(
        task=task.id,
        phase=state.drill.plan.phases[task.phase].name,
        kind=task.kind,
        item=task.item,
        title=title,
        result=_result(answer),
        score=None if answer is None or answer.ungraded else answer.score,
        seconds=state.spent.get(task.id, 0.0),
        note=_note(sitting, task, answer),
        flagged=task.id in state.flags,
        hints=state.hints.get(task.id, 0),
        look_up=look_up,
        detail={key: value for key, value in (answer.detail if answer else {}).items() if key != "draft"},
    )


def _result(answer: Answer | None) -> str:
    if answer is None:
        return "not answered"
    if answer.ungraded:
        return "not graded"
    if answer.score is None:
        return "not scored"
    return "right" if answer.score >= 1.0 else "wrong" if answer.score <= 0.0 else "partly"


def _note(sitting: Sitting, task: Task, answer: Answer | None) -> str:
    if answer is None:
        return "Nothing was handed in."
    if answer.ungraded:
        return f"Not graded, and not counted: {answer.ungraded}"
    if answer.score is None:
        return "Handed in; you have not scored it, so it does not count."
    if answer.note:
        return answer.note
    chosen = answer.detail.get("chosen")
    item = sitting.item(task)
    options = getattr(item, "options", ())
    if chosen is not None and options and not isinstance(item, Bug):
        right = [index for index, option in enumerate(options) if option.correct]
        mine = _listed(options[index].text for index in chosen)
        if answer.score >= 1.0:
            return f"You chose: {mine}"
        return f"You chose: {mine} Right: {_listed(options[index].text for index in right)}"
    return ""


def _listed(texts: Iterable[str]) -> str:
    return "; ".join(text.rstrip(".") for text in texts) + "."


def _count(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


def _notes(state: State) -> tuple[str, ...]:
    notes = []
    if state.away >= 1:
        notes.append(f"For {state.away:.0f} s no program ran; the clock went on.")
    if state.late:
        notes.append(f"{_count(len(state.late), 'answer', 'answers')} came after the lock: recorded, not counted.")
    unscored = [
        task for task in state.tasks if (a := state.answers.get(task.id)) and a.score is None and not a.ungraded
    ]
    if unscored:
        notes.append(f"{_count(len(unscored), 'spoken answer', 'spoken answers')} not scored, so not counted.")
    ungraded = [task for task in state.tasks if (a := state.answers.get(task.id)) and a.ungraded]
    if ungraded:
        notes.append(f"{_count(len(ungraded), 'task', 'tasks')} not graded, so not counted.")
    if any(state.hints.values()):
        notes.append("Hints were taken: a task with one counts at most 75 %.")
    return tuple(notes)
