"""The engine on a clock that is wound by hand, and a course of its own that needs no files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.sample_course import BUG, EXERCISE, MATCH, OPEN, PREDICT, QUIZ
from tutor.course.course import Course
from tutor.course.model import Item, Module, RubricPoint
from tutor.drill.draw import Drill, draw
from tutor.drill.plan import Hire, Optimise, Phase, Pick, Plan, Talk
from tutor.drill.sitting import Sitting


class HandClock:
    """Time goes on when it is told to; `shut_down` is a restart of the machine."""

    def __init__(self) -> None:
        self.monotonic, self.epoch, self.boots = 100.0, 1_800_000_000.0, 0

    def now(self) -> float:
        return self.monotonic

    def wall(self) -> float:
        return self.epoch

    def boot(self) -> str:
        return f"boot-{self.boots}"

    def go(self, seconds: float) -> None:
        self.monotonic += seconds
        self.epoch += seconds

    def shut_down(self, seconds: float) -> None:
        self.boots += 1
        self.monotonic, self.epoch = 5.0, self.epoch + seconds


def module(number: int) -> Module:
    """Forty items: ten quizzes, eight bugs, and so on, of four concepts."""
    name = f"m{number:02}"
    items: list[Item] = []
    for kind, item, count in (
        ("quiz", QUIZ, 10), ("bug", BUG, 8), ("match", MATCH, 4), ("predict", PREDICT, 4), ("open", OPEN, 6),
    ):  # fmt: skip
        for index in range(count):
            concept = f"concept{(index + number) % 4}"
            items.append(_copy(item, f"{name}.{kind}.i{index}", concept))
    if number == 1:
        items.append(_copy(EXERCISE, f"{name}.exercise.add", "concept0"))
    return Module(id=name, title=name, blurb=name, probes=name, items=tuple(items))


def _copy(item: Item, name: str, concept: str) -> Item:
    import msgspec

    return msgspec.structs.replace(item, id=name, concept=concept, difficulty=2)


COURSE = Course((module(1), module(2)))
TALK = Talk(
    title="Clarify", question="What do you ask?", answer="Sizes.", about="kernel",
    rubric=(RubricPoint(text="sizes", points=2), RubricPoint(text="dtypes", points=1)),
)  # fmt: skip
ROUND = Plan(
    id="drills.plan.round",
    name="round",
    title="Round",
    about="45 minutes.",
    weights={"kernel_coding": 3, "edge_cases": 2},
    hire=Hire(overall=3.5, floors={"kernel_coding": 3}),
    phases=(
        Phase(name="clarify", minutes=5, script="Ask.", talk=TALK),
        Phase(name="kernel", minutes=22, script="Write.", picks=(Pick(kinds=("exercise",)),), grading_runs=3),
        Phase(
            name="follow-ups",
            minutes=6,
            script="Say.",
            picks=(Pick(kinds=("open",), beside="kernel"), Pick(kinds=("quiz",), count=2, beside="kernel")),
        ),
        Phase(
            name="optimise",
            minutes=12,
            script="Faster.",
            grading_runs=2,
            optimise=Optimise(of="kernel", percent_of_limit=75),
        ),
    ),
)
BLITZ = Plan(
    id="drills.plan.blitz",
    name="blitz",
    title="Blitz",
    about="10 minutes.",
    strict=False,
    phases=(
        Phase(
            name="bugs",
            minutes=10,
            script="Find.",
            picks=(Pick(kinds=("bug",), count=2), Pick(kinds=("quiz",), count=2)),
        ),
    ),
)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def begin(tmp_path: Path, clock: HandClock) -> Callable[..., Sitting]:
    def make(plan: Plan = ROUND, *, seed: int = 1, strict: bool = True, drill: Drill | None = None) -> Sitting:
        drill = drill or draw(plan, COURSE, seed, shared=True)
        return Sitting.begin(drill, tmp_path / "work", clock, COURSE, strict=strict)

    return make
