"""The drill as a candidate sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG_LINE
from tutor.course.model import RubricPoint
from tutor.drill.opening import Wanted
from tutor.drill.plan import Hire, Phase, Pick, Plan, Talk
from tutor.screens.drill import DrillScreen
from tutor.screens.drill_report import DrillReportScreen
from tutor.screens.drill_setup import DrillSetupScreen
from tutor.widgets.desk import Desk

PLAN = Plan(
    id="drills.plan.sample",
    name="sample",
    title="Sample of a[i]",
    about="Everything once.",
    hire=Hire(overall=2.0),
    phases=(
        Phase(
            name="questions",
            minutes=5,
            script="Say kernel[grid](x).",
            picks=(Pick(kinds=("bug",)), Pick(kinds=("quiz",), count=2)),
        ),
        Phase(
            name="kernel",
            minutes=5,
            script="Write it.",
            picks=(Pick(kinds=("exercise",)),),
            grading_runs=1,
            talk=Talk(
                title="Talk of m[i]",
                question="Which x[i]?",
                answer="All a[i].",
                rubric=(RubricPoint(text="named x[i]"), RubricPoint(text="named y[j]")),
            ),
        ),
    ),
)


async def begin(s: Session, strict: bool = True, plan: Plan = PLAN) -> DrillScreen:
    s.app._start_drill(Wanted(plan, 1, strict=strict))
    await s.until(lambda: isinstance(s.app.screen, DrillScreen))
    await s.pilot.pause()
    screen = s.app.screen
    assert isinstance(screen, DrillScreen)
    return screen


async def answer(s: Session, screen: DrillScreen) -> None:
    """The task on the screen, rightly."""
    assert screen.asked is not None
    task, item = screen.asked, screen.sitting.item(screen.asked)
    if screen.asked.kind == "bug":
        await s.keys(*["down"] * (BUG_LINE - 1), "enter")
        await s.until(lambda: s.app.focused is not None and s.app.focused.id == "mend")
        s.app.focused.value = "    tl.store(out_ptr + offs, x + y, mask=mask)"  # type: ignore[union-attr]
        await s.keys("f6")
    elif screen.asked.kind == "quiz":
        right = [number for number, option in enumerate(item.options, 1) if option.correct]  # type: ignore[union-attr]
        if len(right) > 1:
            await s.keys(*[str(number) for number in right], "enter")
        else:
            await s.keys(str(right[0]))
    await s.until(lambda: task.id in screen.sitting.state.answers)
    await s.pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_a_whole_drill(session: Callable[..., Session], size: tuple[int, int], tmp_path: Path) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            screen = await begin(s)
            assert "kernel[grid](x)" in s.text()
            assert "05:00" in s.text() and "10:00" in s.text()
            assert "n Begin" in s.text() and "F8" not in s.text()
            await s.keys("n")
            for _ in range(3):
                await answer(s, screen)
            assert len(screen.sitting.state.answers) == 3
            assert "Right" not in s.text() and "why" not in s.text()
            assert "n End the phase" in s.text()
            await s.keys("n")
            await s.until(lambda: screen.sitting.state.phase == 1)
            await s.keys("n")
            await s.until_shown("Which x[i]?")
            await s.type(
                "All of x[i], and then a long sentence that no line holds: every word of it is seen again, to its *end*"
            )
            await s.keys("f6")
            await s.until(lambda: screen.asked is not None and screen.asked.kind == "exercise")
            screen.sitting.file(screen.asked).write_text("# mine\n")  # type: ignore[arg-type]
            await s.keys("g")
            await s.until_shown("decide at the end" if size[0] == 80 else "passed")
            await s.keys("n")
            await s.until_shown("End the phase")
            await s.keys("y")
            await s.until_shown("Your answer")
            await s.until(lambda: s.app.focused is not None and s.app.focused.id == "rubric")
            assert "Score your answer 1 of 1" in s.text()
            if size[0] == 80:
                assert "to its *end*" in s.text()
            await s.keys("space")
            ticked = s.app.focused
            await screen._tick()  # the seconds that go by while the rubric is read
            assert s.app.focused is ticked and "[x]" in s.text()
            await s.keys("enter")
            await s.until(lambda: isinstance(s.app.screen, DrillReportScreen))
            assert "hire" in s.text()
            report = s.app.screen.report  # type: ignore[attr-defined]
            card = json.loads((report.folder / "scorecard.json").read_text())
            assert {task["task"]: task["score"] for task in card["tasks"]} == {
                "questions.1": 1.0, "questions.2": 1.0, "questions.3": 1.0, "kernel.1": 1.0, "kernel.2": 0.5,
            }  # fmt: skip
            assert s.desk.progress.state("m01.exercise.vector-add").passed
            await s.keys("escape")
            assert "triton-prep" in s.text()

    drive(story)


def test_strict_gives_no_help(session: Callable[..., Session]) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            await s.keys("n")
            shown = s.text().split("\n")[-1]
            assert "Hint" not in shown and "Solution" not in shown and "Pause" not in shown
            await s.keys("h", "s", "ctrl+t", "r")
            assert s.app.screen is screen
            assert not screen.sitting.state.paused
            await s.open("m01.bug.mask")  # as the palette does
            s.app.action_look_up("m01.bug.mask")
            assert s.app.screen is screen

    drive(story)


def test_the_other_way_has_hints_a_pause_and_the_whys(session: Callable[..., Session]) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s, strict=False)
            await s.keys("n", "h")
            await s.until_shown("no mask?")
            await s.keys("escape", "ctrl+t")
            await s.until_shown("paused")
            await s.keys("ctrl+t", "n")
            assert screen.asked is not None and screen.asked.kind == "quiz"
            await answer(s, screen)
            await s.until_shown("Right.")
            assert screen.sitting.state.answers[screen.asked.id].score == 1.0
            await s.keys("r")
            assert "Right." in s.text()

    drive(story)


def test_flag_list_and_leave(session: Callable[..., Session]) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            await s.keys("n", "f8", "f2")
            await s.until_shown("open, flagged")
            await s.keys("down", "enter")
            assert screen.asked is not None and screen.asked.id == "questions.2"
            await s.keys("escape")
            await s.until_shown("The clock goes on")
            await s.keys("y")
            await s.until(lambda: s.app.screen is not screen and not isinstance(s.app.screen, DrillScreen))
            assert screen.sitting.state.flags == ["questions.1"]

    drive(story)


def test_answers_lock_when_the_time_is_up(session: Callable[..., Session]) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            await s.keys("n")
            screen.sitting.state.anchor.elapsed += 299.5
            await s.until_shown("'questions' is over")
            await s.until_shown("Phase 2 of 2")
            assert screen.sitting.state.phases[0].how == "time"
            assert not screen.sitting.state.answers

    drive(story)


def test_a_drill_is_offered_again_after_a_crash(session: Callable[..., Session], new_desk: Callable[..., Desk]) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await begin(s)
            await s.keys("n", "n")
            assert screen.asked is not None and screen.asked.kind == "quiz"
            await answer(s, screen)
            drill_id, left = screen.sitting.state.id, screen.asked.id
        async with Session(new_desk()) as s:
            await s.until_shown("is not finished")
            await s.keys("y")
            await s.until(lambda: isinstance(s.app.screen, DrillScreen))
            back = s.app.screen
            assert isinstance(back, DrillScreen)
            assert back.sitting.state.id == drill_id and len(back.sitting.state.answers) == 1
            await s.until(lambda: back.asked is not None and back.asked.id == left)

    drive(story)


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_the_setup_says_from_which_modules_it_draws_and_offers_those_begun(
    session: Callable[..., Session], size: tuple[int, int]
) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            wanted: list[Wanted | str | None] = []

            def says(words: str) -> bool:
                return words in " ".join(s.text().split())

            await s.keys("d")
            await s.until(lambda: says("from any module, begun or not (b switches)"))
            await s.keys("b")
            assert says("[x] No module is begun yet.")
            s.desk.progress.record_page("m01.lesson.grid", 0)
            await s.keys("b", "b")
            assert says("[x] only from m01 (b switches)")
            await s.keys("tab", "7")
            assert says("[ ] a seed draws from any module")
            await s.keys("backspace", "tab", "m", "0", "2")
            assert says("[ ] only from m02")
            await s.keys(*["backspace"] * 3)
            s.app.screen.dismiss = wanted.append  # type: ignore[assignment,method-assign]
            await s.keys("enter")
            assert isinstance(wanted[0], Wanted) and wanted[0].begun_only
            s.app._start_drill(Wanted(PLAN, begun_only=True))
            await s.until(lambda: isinstance(s.app.screen, DrillScreen))
            assert s.app.screen.sitting.state.drill.modules == ("m01",)  # type: ignore[attr-defined]

    drive(story)


def test_the_setup_shows_the_plans_and_takes_a_seed(session: Callable[..., Session]) -> None:
    async def story() -> None:
        async with session(size=(40, 12)) as s:
            await s.keys("d")
            await s.until_shown("Bug blitz")
            assert "Strict" in s.text()
            await s.keys("s", "tab")
            await s.type("7")
            screen = s.app.screen
            assert isinstance(screen, DrillSetupScreen)
            wanted: list[object] = []
            screen.dismiss = wanted.append  # type: ignore[method-assign,assignment]
            await s.keys("enter")
            assert [(w.plan.name, w.seed, w.strict) for w in wanted] == [("bug-blitz", 7, False)]  # type: ignore[attr-defined]

    drive(story)
