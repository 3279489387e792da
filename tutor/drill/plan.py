"""Drill plans as values: what modules/drills.yaml may say. modules/drills.schema.json is generated from these types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from tutor.course.course import Course, kind_of
from tutor.course.loader import CourseError, CourseErrors, modules_folder
from tutor.course.model import Base, Item, ItemId, Markdown, RubricPoint
from tutor.course.typed_yaml import json_schema, load_typed

Skill = Literal["problem_solving", "kernel_coding", "edge_cases", "performance", "communication"]
Kind = Literal["quiz", "bug", "match", "predict", "open", "exercise"]
Weight = Annotated[float, Meta(gt=0, le=10)]
Level = Annotated[float, Meta(ge=1, le=5)]

SKILL_WORDS: dict[str, str] = {
    "problem_solving": "Problem solving",
    "kernel_coding": "Kernel coding",
    "edge_cases": "Correctness on edge cases",
    "performance": "Performance reasoning",
    "communication": "Communication (self-scored)",
}
# what a task of each kind is evidence of, unless its plan says otherwise
KIND_SKILLS: dict[str, dict[str, float]] = {
    "quiz": {"problem_solving": 1.0},
    "match": {"problem_solving": 1.0},
    "predict": {"performance": 1.0},
    "bug": {"problem_solving": 1.0, "edge_cases": 1.0},
    "open": {"communication": 1.0},
    "talk": {"communication": 1.0},
    "exercise": {"kernel_coding": 1.0, "edge_cases": 1.0},
    "optimise": {"performance": 1.0},
}


class Pick(Base, frozen=True, kw_only=True):
    """`count` items drawn from those that fit."""

    kinds: Annotated[tuple[Kind, ...], Meta(min_length=1)]
    count: Annotated[int, Meta(ge=1, le=20)] = 1
    difficulty: Annotated[tuple[int, ...], Meta(min_length=2, max_length=2)] = (1, 3)  # from, to
    modules: tuple[str, ...] = ()  # module ids; empty: all
    concepts: tuple[str, ...] = ()
    beside: str = ""  # a phase with an exercise: drawn from that exercise's module
    skills: dict[Skill, Weight] = {}


class Talk(Base, frozen=True, kw_only=True):
    """A conversation that is no item of the course, scored by the candidate against a rubric once the clock is off."""

    title: str
    question: Markdown
    answer: Markdown
    rubric: Annotated[tuple[RubricPoint, ...], Meta(min_length=2)]
    about: str = ""  # the phase whose exercise it is about
    strong: str = ""
    weak: str = ""
    skills: dict[Skill, Weight] = {}


class Optimise(Base, frozen=True, kw_only=True):
    """Make the kernel of an earlier phase faster."""

    of: str  # that phase's name
    percent_of_limit: Annotated[float, Meta(gt=0, le=100)]  # the bar on a GPU
    traffic_slack: Annotated[float, Meta(ge=1, le=4)] = 1.05  # without one: bytes moved against the course's solution


class Phase(Base, frozen=True, kw_only=True):
    name: Annotated[str, Meta(pattern=r"^[a-z][a-z-]*$")]
    minutes: Annotated[int, Meta(ge=1, le=120)]
    script: Markdown  # what the interviewer says
    picks: tuple[Pick, ...] = ()
    talk: Talk | None = None
    optimise: Optimise | None = None
    grading_runs: Annotated[int, Meta(ge=0, le=50)] | None = 0  # 0: none until the end; null: as many as wanted
    followups: tuple[str, ...] = ()


class Hire(Base, frozen=True, kw_only=True):
    overall: Level = 3.5
    floors: dict[Skill, Level] = {}  # no skill that was shown may lie below its floor


class Plan(Base, frozen=True, kw_only=True):
    id: ItemId
    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")]
    title: str
    about: Annotated[str, Meta(max_length=200)]
    phases: Annotated[tuple[Phase, ...], Meta(min_length=1)]
    strict: bool = True
    one_module: bool = False  # everything from one module, chosen by --module or drawn
    weights: dict[Skill, Weight] = {}  # in the overall score; a skill that is not named counts 1
    hire: Hire = Hire()

    @property
    def minutes(self) -> int:
        return sum(phase.minutes for phase in self.phases)


class Plans(Base, frozen=True, kw_only=True):
    plans: Annotated[tuple[Plan, ...], Meta(min_length=1)]


def plans_file() -> Path:
    return modules_folder() / "drills.yaml"


def load_plans(file: Path | None = None) -> tuple[Plan, ...]:
    """Raises CourseErrors, which name file, line and what to write."""
    file = file or plans_file()
    if not file.is_file():
        raise CourseErrors((CourseError(str(file), 1, "", "there are no drill plans here", "write drills.yaml"),))
    plans = load_typed(file, Plans, "plans", "id").plans
    errors = _rule_errors(file, plans)
    if errors:
        raise CourseErrors(errors)
    return plans


def find_plan(plans: tuple[Plan, ...], name: str) -> Plan | None:
    return next((plan for plan in plans if name in (plan.name, plan.id)), None)


def fitting(pick: Pick, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The items that `pick` may draw, of those that the caller allows."""
    low, high = pick.difficulty
    return tuple(
        item
        for item in items
        if kind_of(item) in pick.kinds
        and low <= item.difficulty <= high
        and (not pick.modules or item.id.split(".")[0] in pick.modules)
        and (not pick.concepts or item.concept in pick.concepts)
    )


def pool_errors(plans: tuple[Plan, ...], course: Course, file: Path | None = None) -> tuple[CourseError, ...]:
    """Picks that the course cannot fill twice in a row without asking a question again."""
    from tutor.course.lines import Positions

    file = file or plans_file()
    positions = Positions(file)
    errors = []
    for number, plan in enumerate(plans):
        for row, phase in enumerate(plan.phases):
            for column, pick in enumerate(phase.picks):
                places = [m.id for m in course.modules] if plan.one_module or pick.beside else [""]
                for place in places:
                    items = course.module(place).items if place else course.items()
                    found = len(fitting(pick, items))
                    if found < 2 * pick.count:
                        path = ("plans", number, "phases", row, "picks", column)
                        where = f" in {place}" if place else ""
                        message = f"{pick.count} of {found} items{where}: two drills in a row would repeat one"
                        errors.append(CourseError(str(file), positions.line(path), plan.id, message, "widen the pick"))
    return tuple(errors)


def schema_text() -> str:
    return json_schema(Plans, "Drill plans")


def schema_file() -> Path:
    return modules_folder() / "drills.schema.json"


def _rule_errors(file: Path, plans: tuple[Plan, ...]) -> tuple[CourseError, ...]:
    from tutor.course.lines import Positions

    positions = Positions(file)
    errors: list[CourseError] = []

    def say(path: tuple[str | int, ...], plan: Plan, message: str, advice: str) -> None:
        errors.append(CourseError(str(file), positions.line(path), plan.id, message, advice))

    for number, plan in enumerate(plans):
        if plan.name in [other.name for other in plans[:number]]:
            say(("plans", number, "name"), plan, f"a plan before is called {plan.name!r} too", "rename one")
        with_exercise: list[str] = []
        for row, phase in enumerate(plan.phases):
            path = ("plans", number, "phases", row)
            if not (phase.picks or phase.talk or phase.optimise):
                say(path, plan, f"nothing to do in {phase.name!r}", "add picks, talk or optimise")
            if phase.name in [other.name for other in plan.phases[:row]]:
                say((*path, "name"), plan, f"a phase before is called {phase.name!r} too", "rename one")
            if any(pick.difficulty[0] > pick.difficulty[1] for pick in phase.picks):
                say((*path, "picks"), plan, "difficulty runs from high to low", "write [from, to]")
            exercises = [other.name for other in plan.phases if any("exercise" in p.kinds for p in other.picks)]
            needed = [pick.beside for pick in phase.picks if pick.beside]
            needed += [phase.optimise.of] if phase.optimise else []
            for name in needed:
                if name not in with_exercise:
                    say(path, plan, f"no phase before this one is {name!r} and draws an exercise", "name one")
            if phase.talk and phase.talk.about and phase.talk.about not in exercises:
                say((*path, "talk"), plan, f"no phase {phase.talk.about!r} draws an exercise", "name one that does")
            if phase.name in exercises:
                with_exercise.append(phase.name)
    return tuple(errors)


if __name__ == "__main__":
    schema_file().write_text(schema_text(), encoding="utf-8")
