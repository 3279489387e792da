"""What is asked for when a drill is opened, and the drill that comes of it: for the app and the plain command alike."""

from __future__ import annotations

from dataclasses import dataclass

from tutor.course.course import Course
from tutor.drill.draw import CannotDraw, Drill, History, draw, fresh_seed
from tutor.drill.plan import Plan
from tutor.drill.sitting import Sitting
from tutor.drill.store import states
from tutor.mastery import concepts
from tutor.progress import Progress
from tutor.standing import modules_begun
from tutor.workspace import Workspace

HOW_DRAWN = {
    True: "The seed was given: whoever gives it on the same course gets the same questions.",
    False: "Drawn for you: weak topics weigh up to 4 times as much, and nothing comes from your last drill. "
    "Give a seed for a drill that others can sit too.",
}


@dataclass(frozen=True)
class Wanted:
    plan: Plan
    seed: int | None = None  # None: a fresh one, weighted by history
    module: str = ""
    strict: bool | None = None  # None: as the plan says
    begun_only: bool = False  # from the modules that the learner has begun; not with a seed or a module


def drawn(wanted: Wanted, course: Course, progress: Progress, workspace: Workspace) -> Drill:
    """Raises CannotDraw and UnknownItem."""
    only = modules_for(wanted, course, progress)
    if wanted.seed is not None:
        return draw(wanted.plan, course, wanted.seed, module=wanted.module, shared=True)
    before = states(workspace.folder)
    last = tuple(task.item for task in before[-1].tasks if task.item) if before else ()
    known = {concept.name: concept.of_answered for concept in concepts(course, progress) if concept.answered}
    return draw(wanted.plan, course, fresh_seed(), History(known, frozenset(last)), module=wanted.module, modules=only)


def modules_for(wanted: Wanted, course: Course, progress: Progress) -> tuple[str, ...]:
    """Those that it may be drawn from; empty: any. Raises CannotDraw where the modules begun do not hold enough."""
    if not wanted.begun_only or wanted.seed is not None or wanted.module:
        return ()
    begun = modules_begun(course, progress)
    if not begun:
        raise CannotDraw("No module is begun yet.")
    draw(wanted.plan, course, 0, modules=begun)
    return begun


def strictness(wanted: Wanted) -> bool:
    return wanted.plan.strict if wanted.strict is None else wanted.strict


def record_results(sitting: Sitting, progress: Progress) -> None:
    """Tells the progress what the drill showed: once, when its books are closed."""
    for task in sitting.state.tasks:
        answer = sitting.state.answers.get(task.id)
        if answer is None or answer.score is None or answer.ungraded or task.kind in ("talk", "optimise"):
            continue
        progress.record_answer(
            sitting.course.item(task.item).id,
            task.kind,
            correct=bool(answer.correct),
            score=answer.score,
            seconds=answer.seconds,
            detail={**{k: v for k, v in answer.detail.items() if k != "draft"}, "drill": sitting.state.id},
        )
