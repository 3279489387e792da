"""Which questions a drill asks: drawn from a plan with a seed, and weighted by what the learner is weak in.

Every item gets a number u in (0, 1) from (plan, seed, phase, item) alone; the items with the greatest u ** (1 / weight)
are taken (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006). So the same seed gives the same
drill on every machine, and one item more in the course changes at most the draws that it takes part in.
"""

from __future__ import annotations

import hashlib
import random
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from tutor.course.course import Course, UnknownItem, kind_of
from tutor.course.model import Item
from tutor.drill.plan import KIND_SKILLS, Pick, Plan, Skill, fitting

WEAK_FACTOR = 4.0  # a concept of which nothing was right weighs this many times one that is mastered
UNSEEN_MASTERY = 0.5
FRESH_SEEDS = 1_000_000


class CannotDraw(ValueError):
    """The course has nothing for a part of the plan; the text says which."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do. `item` is an item of the course; for talk and optimise, the exercise meant, or empty."""

    id: str  # kernel.1: the phase and a number
    phase: int
    kind: str  # quiz, bug, match, predict, open, exercise, talk, optimise
    item: str
    skills: dict[str, float]
    weight: float = 1.0  # within its skills: the item's difficulty


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    plan: Plan
    seed: int
    shared: bool  # the seed was given, so history had no part in it: anyone who gives it gets this drill
    course_version: str
    module: str = ""
    modules: tuple[str, ...] = ()  # those it was drawn from; empty: all, or `module`
    tasks: tuple[Task, ...] = ()

    def of_phase(self, index: int) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.phase == index)


@dataclass(frozen=True)
class History:
    """What the learner did before. An empty one weighs everything alike."""

    mastery: Mapping[str, float] = field(default_factory=dict)  # concept -> 0 to 1
    last: Collection[str] = ()  # the items of the drill before: not asked again

    def weight(self, item: Item) -> float:
        if not self.mastery:
            return 1.0
        known = self.mastery.get(item.concept, UNSEEN_MASTERY)
        return float(1.0 + (WEAK_FACTOR - 1.0) * (1.0 - known))


def fresh_seed() -> int:
    return secrets.randbelow(FRESH_SEEDS)


def course_version(course: Course) -> str:
    """Ten hexadecimal digits that two people compare: the same means the same items to draw from."""
    facts = [(item.id, kind_of(item), item.difficulty, item.concept) for item in course.items()]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:10]


def draw(
    plan: Plan,
    course: Course,
    seed: int,
    history: History | None = None,
    *,
    module: str = "",
    modules: tuple[str, ...] = (),
    shared: bool = False,
) -> Drill:
    """Deterministic for (plan, seed, course, history, module, modules). With `shared`, history is left out altogether.

    `module` draws all from that one, `modules` from these only. Raises CannotDraw and UnknownItem (a module that is not
    there).
    """
    history = History() if shared or history is None else history
    version = course_version(course)
    if modules:
        course = Course(tuple(course.module(one) for one in modules))
    if module:
        course.module(module)
    elif plan.one_module:
        module = _drawn_module(plan, course, seed, history)
    tasks: list[Task] = []
    taken: set[str] = set()
    for index, phase in enumerate(plan.phases):
        for number, pick in enumerate(phase.picks):
            where = module or (_exercise_module(plan, tasks, pick.beside) if pick.beside else "")
            pool = fitting(pick, course.module(where).items if where else course.items())
            if not pool:
                place = where or ", ".join(modules) or "the course"
                raise CannotDraw(f"{plan.name}: nothing in {place} fits phase {phase.name!r}.")
            label = f"{plan.name}/{seed}/{phase.name}/{number}"
            for item in _sample(pick, pool, label, history, taken):
                taken.add(item.id)
                tasks.append(_task(phase.name, index, tasks, kind_of(item), item.id, pick.skills, item.difficulty))
        if phase.optimise:
            of = _exercise_of(plan, tasks, phase.optimise.of)
            tasks.append(_task(phase.name, index, tasks, "optimise", of, {}, 2))
    for index, phase in enumerate(plan.phases):  # a talk may be about an exercise of a later phase
        if phase.talk:
            about = _exercise_of(plan, tasks, phase.talk.about) if phase.talk.about else ""
            tasks.append(_task(phase.name, index, tasks, "talk", about, phase.talk.skills, 2))
    tasks.sort(key=lambda task: (task.phase, task.kind != "talk"))
    return Drill(
        plan=plan,
        seed=seed,
        shared=shared,
        course_version=version,
        module=module,
        modules=modules,
        tasks=tuple(tasks),
    )


def _task(
    phase: str, index: int, before: list[Task], kind: str, item: str, skills: Mapping[Skill, float], difficulty: int
) -> Task:
    number = sum(task.phase == index for task in before) + 1
    given = {str(skill): weight for skill, weight in skills.items()} or KIND_SKILLS[kind]
    return Task(id=f"{phase}.{number}", phase=index, kind=kind, item=item, skills=given, weight=float(difficulty))


def _sample(pick: Pick, pool: Iterable[Item], label: str, history: History, taken: set[str]) -> list[Item]:
    def lot(item: Item) -> float:
        return float(random.Random(f"{label}/{item.id}").random() ** (1.0 / history.weight(item)))

    best = sorted(pool, key=lot, reverse=True)
    # what was asked a moment ago comes only where there is nothing else
    best.sort(key=lambda item: (item.id in taken, item.id in history.last))
    chosen = [item for item in best[: pick.count] if item.id not in taken]
    order = random.Random(f"{label}/order")
    order.shuffle(chosen)
    return chosen


def _drawn_module(plan: Plan, course: Course, seed: int, history: History) -> str:
    def mean_weight(items: tuple[Item, ...]) -> float:
        return sum(map(history.weight, items)) / len(items)

    fit = [m for m in course.modules if all(fitting(pick, m.items) for phase in plan.phases for pick in phase.picks)]
    if not fit:
        raise CannotDraw(f"{plan.name}: no module to draw from has all that this plan asks for.")
    # weak modules as far above the others as weak concepts are
    return max(
        fit, key=lambda m: random.Random(f"{plan.name}/{seed}/{m.id}").random() ** (1.0 / mean_weight(m.items))
    ).id


def _exercise_of(plan: Plan, tasks: list[Task], phase: str) -> str:
    index = [other.name for other in plan.phases].index(phase)
    found = [task.item for task in tasks if task.phase == index and task.kind == "exercise"]
    if not found:
        raise CannotDraw(f"{plan.name}: phase {phase!r} drew no exercise.")
    return found[0]


def _exercise_module(plan: Plan, tasks: list[Task], phase: str) -> str:
    return _exercise_of(plan, tasks, phase).split(".")[0]


def gone_tasks(drill: Drill, course: Course) -> tuple[str, ...]:
    """The ids of tasks whose item the course no longer holds."""

    def gone(task: Task) -> bool:
        try:
            return bool(task.item) and course.item(task.item) is None
        except UnknownItem:
            return True

    return tuple(task.id for task in drill.tasks if gone(task))
