"""What the grades and the rubric make of an answer, with a grader that says what it is told."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest

from tests.app.sample_course import BUG_LINE, MENDED_LINE
from tests.drill.conftest import BLITZ, ROUND, HandClock
from tutor.drill import judging
from tutor.drill.plan import Hire, Optimise
from tutor.drill.report import markdown, page, write_report
from tutor.drill.scorecard import Scorecard, hire_signal, skill_scores
from tutor.drill.sitting import Sitting
from tutor.grading import Failed, GradeRequest, VerdictReady

Begin = Callable[..., Sitting]
PASSED = {
    "status": "passed",
    "backend": "interpreter",
    "device": "CPU interpreter",
    "seed": 5,
    "cases": [{"status": "passed"}] * 4,
}


class ToldGrader:
    """Gives the verdicts in turn; keeps what was asked."""

    def __init__(self, *verdicts: dict[str, Any] | str) -> None:
        self.verdicts, self.asked, self.sources = list(verdicts), [], []  # type: ignore[var-annotated]

    async def grade(self, request: GradeRequest) -> AsyncIterator[Any]:
        self.asked.append(request)
        self.sources.append(request.file.read_text())
        verdict = self.verdicts.pop(0)
        yield Failed("x", "infrastructure", verdict) if isinstance(verdict, str) else VerdictReady("x", verdict)


def judge(sitting: Sitting, grader: ToldGrader) -> None:
    async def run() -> None:
        for job in judging.jobs(sitting):
            await judging.judge(sitting, job, grader)  # type: ignore[arg-type]

    asyncio.run(run())


def kernel(begin: Begin, clock: HandClock, *verdicts: dict[str, Any] | str) -> tuple[Sitting, ToldGrader]:
    """A round in which only the kernel file was touched, ended, and judged."""
    sitting = begin()
    clock.go(301)
    sitting.tick()
    clock.go(2500)
    sitting.tick()
    grader = ToldGrader(*verdicts)
    judge(sitting, grader)
    return sitting, grader


@pytest.mark.parametrize(
    ("line", "edits", "status", "score"),
    [
        (BUG_LINE, {str(BUG_LINE): MENDED_LINE}, "passed", 1.0),
        (1, {str(BUG_LINE): MENDED_LINE}, "passed", 1.0),
        (BUG_LINE, {str(BUG_LINE): "    pass"}, "wrong_answer", 0.5),
        (1, {"1": "    pass"}, "wrong_answer", 0.0),
        (BUG_LINE, {}, "never asked", 0.5),
    ],
)
def test_a_bug_is_half_the_line_and_half_the_mend(
    begin: Begin, line: int, edits: dict[str, str], status: str, score: float
) -> None:
    sitting = begin(BLITZ)
    task = sitting.tasks()[0]
    sitting.hand_in(task, {"line": line, "edits": edits})
    sitting.finish()
    grader = ToldGrader({**PASSED, "status": status})
    judge(sitting, grader)
    assert sitting.state.answers[task.id].score == score
    assert [MENDED_LINE in source for source in grader.sources] == ([MENDED_LINE in edits.values()] if edits else [])


def test_a_mend_that_cannot_be_run_counts_by_its_words(begin: Begin) -> None:
    sitting = begin(BLITZ)
    first, second = sitting.tasks()[:2]
    sitting.hand_in(first, {"line": BUG_LINE, "edits": {str(BUG_LINE): MENDED_LINE + "  # so"}})
    sitting.hand_in(second, {"line": BUG_LINE, "edits": {str(BUG_LINE): "    pass"}})
    sitting.finish()
    judge(sitting, ToldGrader("no torch", "no torch"))
    assert [sitting.state.answers[task.id].score for task in (first, second)] == [1.0, 1.0]
    assert "could not be run" in sitting.state.answers[second.id].note
    assert "line alone" in sitting.state.answers[second.id].note


def test_the_deciding_inputs_have_a_seed_of_their_own(begin: Begin, clock: HandClock) -> None:
    sitting, grader = kernel(begin, clock, PASSED, PASSED, PASSED)
    seeds = [request.seed for request in grader.asked]
    assert 0 not in seeds
    assert seeds[0] == judging.deciding_seed(1, "kernel.1") != judging.deciding_seed(2, "kernel.1")
    assert all(request.keep_going for request in grader.asked)


def test_a_kernel_wrong_in_some_cases_shows_on_edge_cases(begin: Begin, clock: HandClock) -> None:
    cases = [{"status": "passed"}] * 3 + [{"status": "wrong_answer"}, {"status": "skipped"}]
    wrong = {**PASSED, "status": "wrong_answer", "cases": cases, "diagnosis": {"cause": "missing_mask", "see": None}}
    sitting, _ = kernel(begin, clock, wrong, wrong)
    answer = sitting.state.answers["kernel.1"]
    assert answer.shares == {"kernel_coding": 0.375, "edge_cases": 0.75}
    assert answer.note == "3 of 4 cases passed on other inputs: wrong answer. Cause: missing mask."
    assert sitting.state.answers["optimise.1"].score == 0.0


def test_what_is_remarked_beside_a_pass_is_called_no_cause(begin: Begin, clock: HandClock) -> None:
    good = {**PASSED, "diagnosis": {"cause": "wrong_device_current", "see": "m02.lesson.launch"}}
    sitting, _ = kernel(begin, clock, good, good, good)
    answer = sitting.state.answers["kernel.1"]
    assert answer.correct and answer.shares["kernel_coding"] == 1.0
    assert answer.note == "4 of 4 cases passed on other inputs. Beside the pass: wrong device current."


def test_a_grader_that_fails_counts_against_nobody(begin: Begin, clock: HandClock) -> None:
    sitting, _ = kernel(begin, clock, "the grader is gone", "the grader is gone")
    assert sitting.state.answers["kernel.1"].ungraded == "the grader is gone"
    scores = {skill.skill: skill.score for skill in skill_scores(sitting.state)}
    assert scores["kernel_coding"] is None
    assert len(judging.jobs(sitting)) == 2  # to be tried again after a resume


def test_a_measured_kernel_is_held_against_the_bar(begin: Begin, clock: HandClock) -> None:
    timing = {"percent_of_limit": 60.0, "limit": "memory", "median_us": 10.0, "solution_us": 8.0}
    sitting, _ = kernel(begin, clock, PASSED, {**PASSED, "backend": "cuda", "device": "H200", "timing": timing})
    answer = sitting.state.answers["optimise.1"]
    assert answer.score == pytest.approx(60 / 75)
    assert answer.note == "Measured on H200: 60 % of the memory limit; the bar is 75 %."


def test_without_a_gpu_a_model_is_counted_and_called_one(begin: Begin, clock: HandClock) -> None:
    row = {"spill_bytes": 0, "vector_loads": 2, "tensor_core_ops": 0}
    mine = {**PASSED, "traffic": {"ratio": 2.0}, "compile": [row]}
    solution = {**PASSED, "traffic": {"ratio": 1.0}, "compile": [row]}
    sitting, grader = kernel(begin, clock, PASSED, mine, solution)
    answer = sitting.state.answers["optimise.1"]
    assert answer.score == pytest.approx(2 / 3)
    assert answer.note.startswith("The time needs a GPU. A model instead")
    assert "not met: moves 2.00 x the least bytes (allowed 1.05 x)" in answer.note
    assert "solutions" in str(grader.asked[-1].file)


@pytest.mark.parametrize(
    ("change", "met"),
    [({"spill_bytes": 8}, [True, False, True]), ({"vector_loads": 0}, [True, True, False]), ({}, [True, True, True])],
)
def test_each_counted_fact_can_fail(change: dict[str, int], met: list[bool]) -> None:
    row = {"spill_bytes": 0, "vector_loads": 2, "tensor_core_ops": 0}
    solution = {"status": "passed", "traffic": {"ratio": 1.0}, "compile": [row]}
    facts = judging.model_facts(
        Optimise(of="kernel", percent_of_limit=75), {**solution, "compile": [{**row, **change}]}, solution
    )
    assert [held for _, held in facts] == met


def test_a_hint_caps_a_task(begin: Begin) -> None:
    sitting = begin(BLITZ, strict=False)
    task = sitting.tasks()[0]
    sitting.hint(task, 1)
    sitting.hand_in(task, {"line": BUG_LINE, "edits": {str(BUG_LINE): MENDED_LINE}})
    sitting.finish()
    judge(sitting, ToldGrader(PASSED))
    assert sitting.state.answers[task.id].score == judging.HINT_CAP


def test_a_strict_run_shows_no_diagnosis() -> None:
    verdict = {
        "status": "wrong_answer",
        "diagnosis": {"cause": "x", "message": "load with -inf", "see": "m01.bug.mask"},
    }
    assert judging.as_shown(verdict, strict=True)["diagnosis"] is None
    assert judging.as_shown(verdict, strict=False)["diagnosis"] == {
        "cause": "x",
        "message": "load with -inf",
        "see": None,
    }


# the scorecard


def finished(begin: Begin, clock: HandClock) -> Sitting:
    """Everything at 10 minutes each: quiz right, talk half, kernel right, and the rest left alone."""
    sitting = begin()
    sitting.hand_in(sitting.tasks()[0], {"draft": "sizes of a[i] <b>"})
    sitting.next_phase()
    clock.go(600)
    sitting.next_phase()
    opened, quiz, other = sitting.tasks()
    sitting.hand_in(quiz, {"chosen": [0]}, 1.0)
    sitting.hand_in(other, {"chosen": [1]}, 0.0)
    sitting.flag(opened)
    sitting.finish()
    judging.score_spoken(sitting, sitting.state.task("clarify.1"), [0])
    judge(sitting, ToldGrader(PASSED))
    return sitting


def test_the_scorecard_counts_as_the_plan_weighs(begin: Begin, clock: HandClock) -> None:
    sitting = finished(begin, clock)
    scores = {skill.skill: skill.score for skill in skill_scores(sitting.state)}
    # talk 2 of 3 points (weight 2), open question left (weight 2); one quiz of two; the optimise phase was not reached
    assert scores == {
        "problem_solving": 3.0, "kernel_coding": 5.0, "edge_cases": 5.0, "performance": 1.0, "communication": 2.33,
    }  # fmt: skip
    card = write_report(sitting).card
    assert card.overall == round((3.0 + 3 * 5.0 + 2 * 5.0 + 1.0 + 2.33) / 8, 2)
    assert card.signal == "hire"
    assert [phase.how for phase in card.phases] == ["done", "done", "finished", "not reached"]
    assert [(phase.seconds, phase.planned_seconds) for phase in card.phases[:2]] == [(0, 300), (600, 1320)]


def test_the_signal_names_every_threshold(begin: Begin, clock: HandClock) -> None:
    skills = skill_scores(finished(begin, clock).state)
    strict = msgspec.structs.replace(ROUND, hire=Hire(overall=3.0, floors={"performance": 2.5, "edge_cases": 4.0}))
    signal, reasons = hire_signal(strict, skills)
    assert signal == "no hire"
    assert reasons == (
        "The weighted mean of the skills, 3.9, reaches the bar of 3.0.",
        "Correctness on edge cases, 5.0, reaches its floor of 4.0.",
        "Performance reasoning, 1.0, is below its floor of 2.5.",
    )


def test_a_self_score_that_decides_is_said(begin: Begin, clock: HandClock) -> None:
    skills = skill_scores(finished(begin, clock).state)
    _, reasons = hire_signal(msgspec.structs.replace(ROUND, hire=Hire(overall=4.0)), skills)
    assert "Your own scoring of communication decides here: without it the mean is 4.1." in reasons


def test_the_three_files_say_the_same(begin: Begin, clock: HandClock) -> None:
    sitting = finished(begin, clock)
    report = write_report(sitting)
    assert [file.name for file in report.files] == ["scorecard.md", "scorecard.json", "scorecard.html"]
    text, data, page = (file.read_text() for file in report.files)
    assert json.loads(data)["schema"] == 1
    assert msgspec.json.decode(data, type=Scorecard) == report.card
    assert text.startswith("# Round: hire, 3.9 of 5")
    for task in report.card.tasks:
        assert f"`{task.item}`" in text and f'id="{task.task}"' in page
    assert "triton-prep show m01.open" in text and "(flagged)" in text
    assert text.count("00:10") == 0 and "10:00" in text


def test_a_page_that_cannot_be_made_costs_neither_the_score_nor_the_other_files(
    begin: Begin, clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pygal", None)
    monkeypatch.setitem(sys.modules, "pygal.style", None)
    sitting = finished(begin, clock)
    report = write_report(sitting)
    assert [file.name for file in report.files] == ["scorecard.md", "scorecard.json"]
    assert report.left_out == "scorecard.html needs the package pygal, which cannot be imported."
    assert sitting.state.stage == "finished" and all(file.exists() for file in report.files)


def test_the_page_needs_nothing_else(begin: Begin, clock: HandClock) -> None:
    shown = page(write_report(finished(begin, clock)).card)
    assert shown.count("<svg") == 3
    for outside in ("<script", "<link", "<img", "@import", "url(http", "src=", 'href="http'):
        assert outside not in shown
    for text in ("Skills, 1 to 5", "Time by phase", "earlier mocks"):
        assert text in shown


def test_brackets_and_angles_of_the_course_stay(begin: Begin, clock: HandClock) -> None:
    sitting = finished(begin, clock)
    card = write_report(sitting).card
    assert "kernel\\[grid\\]" in markdown(card)
    assert "kernel[grid]" in markdown(card, for_terminal=True) and "kernel[grid]" in page(card)


def test_the_trend_compares_with_the_last_of_the_same_plan(begin: Begin, clock: HandClock) -> None:
    write_report(finished(begin, clock))
    clock.go(86400)
    second = begin()
    second.finish()
    report = write_report(second)
    assert [entry.overall for entry in report.card.earlier] == [3.92]
    assert "The last round had 3.9; this one is 2.9 below it." in markdown(report.card)
    assert second.state.stage == "finished"
