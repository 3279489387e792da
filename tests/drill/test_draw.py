from __future__ import annotations

from pathlib import Path

import pytest

from tests.drill.conftest import BLITZ, COURSE, ROUND
from tutor.course.loader import load
from tutor.drill.draw import UNSEEN_MASTERY, WEAK_FACTOR, CannotDraw, History, course_version, draw
from tutor.drill.opening import Wanted, drawn
from tutor.drill.plan import Phase, Pick, Plan, load_plans, pool_errors
from tutor.progress import Progress
from tutor.standing import modules_begun
from tutor.workspace import Workspace

ITEMS = {item.id: item for item in COURSE.items()}


def names(seed: int, history: History | None = None, plan: Plan = BLITZ, **options: object) -> list[str]:
    return [task.item for task in draw(plan, COURSE, seed, history, **options).tasks]  # type: ignore[arg-type]


def test_the_same_seed_gives_the_same_drill() -> None:
    assert draw(ROUND, COURSE, 7, shared=True) == draw(ROUND, COURSE, 7, shared=True)


def test_two_seeds_differ() -> None:
    assert len({tuple(names(seed)) for seed in range(20)}) == 20


def test_a_shared_seed_takes_no_history() -> None:
    weak = History({"concept0": 0.0, "concept1": 1.0}, frozenset(names(7)))
    assert names(7, weak, shared=True) == names(7, shared=True)
    assert names(7, weak) != names(7)


def test_a_seed_is_the_same_on_every_machine_and_in_every_version() -> None:
    """What `random.Random(str)` gives is fixed; a change here would break drills that people have agreed upon."""
    assert names(1) == ["m02.bug.i2", "m01.bug.i2", "m01.quiz.i1", "m01.quiz.i3"]


def test_fifty_drills_never_ask_a_question_twice_in_a_row() -> None:
    last: tuple[str, ...] = ()
    for seed in range(50):
        drawn = names(seed, History({"concept0": 0.0}, frozenset(last)))
        assert len(set(drawn)) == len(drawn)
        assert not set(drawn) & set(last)
        last = tuple(drawn)


def test_weak_topics_come_more_often() -> None:
    """One of four concepts weak, the others mastered: its share is that of weight 4 against 1, 1, 1."""
    history = History({"concept0": 0.0, "concept1": 1.0, "concept2": 1.0, "concept3": 1.0})
    plan = Plan(
        id="drills.plan.one", name="one", title="One", about="One.",
        phases=(Phase(name="one", minutes=1, script="One.", picks=(Pick(kinds=("quiz",)),)),),
    )  # fmt: skip
    drawn = [ITEMS[names(seed, history, plan)[0]].concept for seed in range(3000)]
    items = [item.concept for item in COURSE.items() if ".quiz." in item.id]
    weak, strong = items.count("concept0"), len(items) - items.count("concept0")
    expected = WEAK_FACTOR * weak / (WEAK_FACTOR * weak + strong)
    assert drawn.count("concept0") / 3000 == pytest.approx(expected, abs=0.03)
    even = [ITEMS[names(seed, None, plan)[0]].concept for seed in range(3000)]
    assert even.count("concept0") / 3000 == pytest.approx(weak / (weak + strong), abs=0.03)


def test_a_concept_never_seen_lies_between_weak_and_strong() -> None:
    history = History({"concept0": 0.0, "concept1": 1.0})
    weights = [history.weight(ITEMS[f"m01.quiz.i{index}"]) for index in (3, 0, 1)]  # concepts 0, 1, 2
    assert weights == [WEAK_FACTOR, 1.0, 1 + (WEAK_FACTOR - 1) * (1 - UNSEEN_MASTERY)]


def test_beside_draws_from_the_module_of_the_exercise() -> None:
    for seed in range(10):
        tasks = draw(ROUND, COURSE, seed).tasks
        assert {task.item[:3] for task in tasks if task.phase == 2} == {"m01"}


def test_optimise_and_talk_are_about_the_exercise_that_was_drawn() -> None:
    tasks = {task.kind: task for task in draw(ROUND, COURSE, 3).tasks}
    assert tasks["optimise"].item == tasks["exercise"].item == tasks["talk"].item == "m01.exercise.add"


def test_a_module_that_lacks_what_the_plan_wants_is_said() -> None:
    with pytest.raises(CannotDraw, match="nothing in m02 fits phase 'kernel'"):
        draw(ROUND, COURSE, 1, module="m02")


def test_only_the_modules_begun_are_drawn_from_and_a_drill_begins_none(tmp_path: Path) -> None:
    progress, workspace = Progress.open(None), Workspace.open(tmp_path / "work")
    wanted = Wanted(BLITZ, begun_only=True)
    progress.record_answer("m01.quiz.i0", "quiz", correct=True, score=1.0, detail={"drill": "d"})
    with pytest.raises(CannotDraw, match="No module is begun yet"):
        drawn(wanted, COURSE, progress, workspace)
    progress.record_page("m02.match.i0", 0)
    for _ in range(10):
        drill = drawn(wanted, COURSE, progress, workspace)
        assert drill.modules == ("m02",) and {task.item[:3] for task in drill.tasks} == {"m02"}
        assert drill.course_version == course_version(COURSE)
    with pytest.raises(CannotDraw, match="nothing in m02 fits phase 'kernel'"):
        drawn(Wanted(ROUND, begun_only=True), COURSE, progress, workspace)
    for free in (Wanted(BLITZ, seed=1, begun_only=True), Wanted(BLITZ, module="m01", begun_only=True)):
        assert drawn(free, COURSE, progress, workspace).modules == ()
    progress.record_answer("m01.quiz.i0", "quiz", correct=True, score=1.0)
    assert modules_begun(COURSE, progress) == ("m01", "m02")


def test_the_built_in_plans_fit_the_built_in_course() -> None:
    plans, course = load_plans(), load()
    assert {plan.name: plan.minutes for plan in plans} == {
        "bug-blitz": 10, "module-sprint": 15, "phone-screen": 25, "coding-round": 45, "onsite": 60,
    }  # fmt: skip
    assert pool_errors(plans, course) == ()
    for plan in plans:
        for module in ("", *(module.id for module in course.modules)) if plan.one_module else ("",):
            for seed in range(3):
                wanted = sum(pick.count for phase in plan.phases for pick in phase.picks)
                wanted += sum(bool(phase.talk) + bool(phase.optimise) for phase in plan.phases)
                assert len(draw(plan, course, seed, module=module).tasks) == wanted


def test_what_was_answered_wrongly_weighs_in_the_next_drill(tmp_path: Path) -> None:
    progress, workspace = Progress.open(None), Workspace.open(tmp_path / "work")
    for item in COURSE.items():
        if ".quiz." in item.id:
            wrong = item.concept == "concept0"
            progress.record_answer(item.id, "quiz", correct=not wrong, score=0.0 if wrong else 1.0)

    def drawn_concepts(answered: Progress) -> list[str]:
        drills = [drawn(Wanted(BLITZ), COURSE, answered, workspace) for _ in range(150)]
        return [ITEMS[task.item].concept for drill in drills for task in drill.tasks]

    weak, even = drawn_concepts(progress).count("concept0"), drawn_concepts(Progress.open(None)).count("concept0")
    assert weak > 1.4 * even  # of 600: about 310 against 138, each with a deviation of 12
