"""The sheet of a human interviewer: script, questions with their answers, follow-ups and the rubric to score by."""

from __future__ import annotations

from collections.abc import Iterator

from tutor.course import text
from tutor.course.course import Course
from tutor.course.model import Bug, Exercise, Match, Open, Predict, Quiz
from tutor.drill.draw import Drill, Task
from tutor.drill.plan import SKILL_WORDS

SCALE = (
    ("1", "did not get there, also with help"),
    ("2", "got part of it with much help"),
    ("3", "got there with a hint or two, and explained the main idea"),
    ("4", "got there alone, with the odd slip mended on the way"),
    ("5", "got there alone and quickly, named costs and edge cases before being asked"),
)


def interviewer_sheet(drill: Drill, course: Course, width: int) -> str:
    return "\n\n".join(_parts(drill, course, width))


def _parts(drill: Drill, course: Course, width: int) -> Iterator[str]:
    plan = drill.plan
    yield f"{plan.title}: the interviewer's sheet"
    yield f"{plan.minutes} minutes, seed {drill.seed}, course {drill.course_version}"
    module = f" --module {drill.module}" if drill.module else ""
    yield text.wrapped(
        f"The candidate sits the same with: triton-prep drill --plan {plan.name} --seed {drill.seed}{module}", width
    )
    start = 0
    for index, phase in enumerate(plan.phases):
        yield f"== {phase.name}, minute {start} to {start + phase.minutes}"
        start += phase.minutes
        runs = phase.grading_runs
        allowed = "as many grading runs as wanted" if runs is None else f"{runs or 'no'} grading runs"
        yield text.wrapped(f"Say: {' '.join(phase.script.split())}", width)
        yield f"Allowed: {allowed}."
        for task in drill.of_phase(index):
            yield from _task(drill, task, course, width)
        if phase.followups:
            yield "Follow-ups\n" + "\n".join(text.bullet("-", line, width) for line in phase.followups)
    yield "== Score each skill from 1 to 5"
    floors = plan.hire.floors
    rows = [
        f"{words}: weight {plan.weights.get(skill, 1):g}" + (f", floor {floors[skill]:g}" if skill in floors else "")  # type: ignore[call-overload,index]
        for skill, words in SKILL_WORDS.items()
        if any(skill in task.skills for task in drill.tasks)
    ]
    yield "\n".join(text.bullet("-", row, width) for row in rows)
    yield "\n".join(text.bullet(level, words, width) for level, words in SCALE)
    yield text.wrapped(f"Hire: a weighted mean of {plan.hire.overall:g} or more, and no skill below its floor.", width)


def _task(drill: Drill, task: Task, course: Course, width: int) -> Iterator[str]:
    phase = drill.plan.phases[task.phase]
    if task.kind == "talk":
        talk = phase.talk
        assert talk is not None
        yield f"-- {talk.title}"
        yield text.wrapped(talk.question, width)
        yield text.wrapped(f"Expected: {' '.join(talk.answer.split())}", width)
        yield "\n".join(text.bullet(f"({point.points})", point.text, width) for point in talk.rubric)
        for name, words in (("Strong", talk.strong), ("Weak", talk.weak)):
            if words:
                yield text.wrapped(f"{name}: {words}", width)
        return
    item = course.item(task.item)
    if task.kind == "optimise":
        assert phase.optimise is not None
        yield f"-- Optimise {item.title} [{item.id}]"
        yield text.wrapped(
            f"The bar on a GPU: {phase.optimise.percent_of_limit:g} % of what limits it. Without one, bytes moved, "
            "spills and vector loads are counted against the course's solution: a model, not a time.",
            width,
        )
        return
    yield f"-- {item.title} [{item.id}], difficulty {item.difficulty}"
    match item:
        case Quiz() | Predict():
            yield from text.question_parts(item, width)
            yield from text.choice_whys(item, width)
        case Match():
            yield text.wrapped(item.prompt, width)
            yield "\n".join(text.bullet("-", f"{pair.left} = {pair.right}", width) for pair in item.pairs)
        case Bug():
            yield from text.bug_parts(item, width)
            yield from text.bug_answer(item, width)
            if item.hint:
                yield text.wrapped(f"A nudge: {item.hint}", width)
        case Open():
            yield text.wrapped(item.question, width)
            yield from text.open_answer(item, width)
        case Exercise():
            yield from _exercise(item, width)


def _exercise(item: Exercise, width: int) -> Iterator[str]:
    from grader import catalog
    from tutor.workspace import stub_doc

    yield text.table(stub_doc(item.exercise), width)
    hints = catalog.find(item.exercise).hints
    if hints:
        yield "Nudges, one at a time\n" + "\n".join(
            text.bullet(f"{number}.", hint, width) for number, hint in enumerate(hints, 1)
        )
    if item.after:
        yield f"Once it passes\n{text.wrapped(item.after, width)}"
    yield f"The course's solution: triton-prep solution {item.exercise} --give-up"
