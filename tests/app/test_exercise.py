"""The exercise view: grading, watching, cancelling, a lost grader, resetting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE
from tutor.grading import CaseDone
from tutor.widgets.result import ResultView

New = Callable[..., Session]


def learner_file(s: Session) -> Path:
    return s.desk.workspace.file(EXERCISE.exercise)


def write(s: Session, text: str) -> None:
    learner_file(s).write_text(text, encoding="utf-8")


def test_a_graded_file_shows_cases_and_verdict_and_is_recorded(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# fake: out_of_bounds\n# cause: missing_store_mask\n")
            await s.keys("g")
            await s.until_shown("out of bounds")
            assert "n=1001" in s.text()
            assert not s.desk.progress.state(EXERCISE.id).passed
            write(s, "# right\n")
            await s.keys("f6")
            await s.until(lambda: s.desk.progress.state(EXERCISE.id).passed)
            assert "passed" in s.text()

    drive(story)


def test_a_remark_beside_a_pass_is_shown_beside_it(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# right\n# cause: wrong_device_current\n")
            await s.keys("g")
            await s.until_shown("A remark beside the pass: wrong device current")
            assert "passed" in s.text() and "Why" not in s.text()
            assert s.desk.progress.state(EXERCISE.id).passed

    drive(story)


def test_what_is_asked_next_is_shown_once_the_exercise_has_passed(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("f8")
            assert "how many bytes" not in s.text() and "F8" not in s.text()
            write(s, "# right\n")
            await s.keys("g")
            await s.until_shown("F8 says what")
            await s.keys("f8")
            await s.until_shown("how many bytes does out[i] = x[i] + y[i] move?")

    drive(story)


def test_the_cases_after_a_failure_run_on_demand(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            assert "All cases" not in s.text()
            write(s, "# fake: wrong_answer\n")
            await s.keys("g")
            await s.until_shown("1 of 2 passed, 1 not run")
            await s.until_shown("All cases")
            await s.keys("a")
            await s.until_shown("✓ pass  n=4099")
            assert "All cases" not in s.text()

    drive(story)


def test_the_code_view_follows_the_file(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("f4")
            write(s, "kernel[grid](x)[0]\n")
            await s.until_shown("kernel[grid](x)[0]")
            learner_file(s).write_bytes(b"\xff\xfe")
            await s.until_shown("cannot be read")

    drive(story)


def test_watching_grades_on_every_save(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("w")
            assert "a save grades" in s.text()
            write(s, "# fake: wrong_answer\n")
            await s.until_shown("wrong answer")
            write(s, "# right and longer\n")
            await s.until(lambda: s.desk.progress.state(EXERCISE.id).passed)
            await s.keys("w")
            attempts = len(s.desk.progress.attempts(EXERCISE.id))
            write(s, "# right and longer still\n")
            await s.pilot.pause(0.6)
            assert len(s.desk.progress.attempts(EXERCISE.id)) == attempts

    drive(story)


def test_a_grade_in_progress_is_cancelled_by_f7_and_by_escape(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            for key in ("f7", "escape"):
                write(s, f"# slow {key}\n")
                await s.keys("g")
                await s.until_shown("import 0.01 s")
                await s.keys(key)
                assert "Cancelled." in s.text()
            assert s.desk.progress.attempts(EXERCISE.id) == ()
            write(s, "# right\n")
            await s.keys("g")
            await s.until(lambda: s.desk.progress.state(EXERCISE.id).passed)

    drive(story)


def test_a_lost_grader_is_told_and_started_again(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# die\n")
            await s.keys("g")
            await s.until_shown("last words")
            assert "g starts it again" in s.text()
            write(s, "# right\n")
            await s.keys("g")
            await s.until(lambda: s.desk.progress.state(EXERCISE.id).passed)

    drive(story)


def test_reset_asks_and_says_where_the_backup_is(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# mine\n")
            await s.keys("x", "n")
            assert learner_file(s).read_text() == "# mine\n"
            await s.keys("x", "y")
            assert "# mine" not in learner_file(s).read_text()
            backups = list((s.desk.workspace.folder / ".triton-prep" / "backups").glob("*.py"))
            assert [backup.read_text() for backup in backups] == ["# mine\n"]
            await s.keys("f5")
            assert backups[0].name in s.text().replace("\n ", "")

    drive(story)


def test_the_solution_comes_after_a_pass_without_a_question(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("s")
            assert "Give up" in s.text()
            await s.keys("escape")
            s.desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0)
            await s.keys("s")
            assert "Solution of vector_add" in s.text() and "mask" in s.text()
            assert not s.desk.progress.state(EXERCISE.id).gave_up

    drive(story)


def test_a_pass_offers_the_next_item_and_the_solution(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# right\n")
            await s.keys("g")
            await s.until_shown("n goes on")
            assert "s shows the course's own solution" in s.text().replace("\n", " ")
            assert s.text().split("\n")[-1].strip().startswith("n Next")

    drive(story)


def test_a_result_says_when_the_file_has_changed_since(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.open(EXERCISE.id)
            write(s, "# fake: wrong_answer\n")
            await s.keys("g")
            await s.until_shown("wrong answer")
            assert "changed since" not in s.text()
            write(s, "# mended, perhaps\n")
            await s.until_shown("The file has changed since: g grades it again.")
            assert "wrong answer" in s.text()
            await s.keys("g")
            await s.until_shown("n goes on")
            assert "changed since" not in s.text()

    drive(story)


def test_a_case_that_is_skipped_is_not_marked_as_wrong(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("f5")
            result = s.app.screen.query_one(ResultView)
            for index, status in enumerate(("passed", "skipped", "wrong_answer")):
                result.add_case(CaseDone("g1", index, 3, {"name": status, "status": status}))
            await s.until_shown("✗ 3/3 wrong_answer: wrong answer")
            assert "✓ 1/3" in s.text() and "– 2/3 skipped" in s.text()

    drive(story)
