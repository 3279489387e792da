"""The result in pictures: cases, times, roofline and sizes, by keys alone, against a stand-in grader."""

from __future__ import annotations

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE
from tests.app.test_exercise import New, write
from tests.fake_timing import measured
from tutor.figures import bar_rows, measured_bars, measured_roofline, modelled_roofline
from tutor.screens.result_plots import ResultPlotsScreen
from tutor.widgets.timing_text import left_words

SIZES = [(80, 24), (40, 12), (140, 40)]


async def pictures(s: Session, text: str = "# right\n") -> ResultPlotsScreen:
    await s.open(EXERCISE.id)
    write(s, text)
    await s.keys("b")
    screen = s.app.screen
    assert isinstance(screen, ResultPlotsScreen)
    return screen


def test_the_cases_stand_in_a_grid_in_words_and_one_is_explained(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            write(s, "# fake: wrong_answer\n# cause: missing_store_mask\n")
            await s.keys("g")
            await s.until_shown("wrong answer")
            await s.keys("b")
            await s.until_shown("▶✗ FAIL n=1001")
            assert "✓ pass n=1000" in s.text() and "– not run n=4099" in s.text()
            assert "n=1001: wrong answer" in s.text() and "index 1000" in s.text()
            await s.keys("right")
            await s.until_shown("n=4099: not run")
            await s.keys("left", "left")
            await s.until_shown("n=1000: passed")
            await s.click_text("FAIL n=1001")
            await s.until_shown("n=1001: wrong answer")
            await s.keys("escape")
            assert not isinstance(s.app.screen, ResultPlotsScreen)

    drive(story)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_without_a_gpu_the_times_and_the_roofline_are_the_models_and_say_so(
    session: New, size: tuple[int, int]
) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            screen = await pictures(s, "# takes: 2\n")
            await s.until(lambda: len(screen.models) == 2)
            await s.keys("2")
            await s.until_shown("Model, not measured")
            assert "yours" in s.text() and "300.0 µs" in s.text()
            await s.keys("3")
            await s.until_shown("model, not measured")
            if size[1] > 12:
                await s.until_shown("Y yours")
                plot = s.text().split("4 Sizes", 1)[1].split("FLOP per byte")[0]
                assert "Y" in plot and "S" in plot and "▀" in plot

    drive(story)


def test_a_measured_result_is_never_shown_beside_a_modelled_one(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            timings = [measured("n=1000", 0, factor) for factor in (1.0, 1.5, 2.0)]
            for timing in reversed(timings):
                s.desk.progress.record_answer(
                    EXERCISE.id, "exercise", correct=True, score=1.0, seconds=1.0, detail={"timing": timing}
                )
            screen = await pictures(s)
            assert not screen.models
            assert "Measured, n=1000: fast" in s.text() and "2.00 times" not in s.text()
            assert "0.50 times as fast" in s.text() and "in the L2 cache" in s.text()
            assert "No different, within the spread: the reference solution." in s.text()
            await s.keys("tab")
            await s.until_shown("2 earlier attempts")
            assert "measured: 4000 GB/s" in s.text() and "model" not in s.text()

    drive(story)


def test_a_file_that_cannot_be_modelled_says_why(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await pictures(s, "# no estimate\n")
            await s.until_shown("No estimate of your file: it reads [its] values.")

    drive(story)


def test_a_sweep_shows_how_far_it_is_can_be_cancelled_and_ends_in_bars(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            screen = await pictures(s, "# slow\n")
            await s.until(lambda: len(screen.models) == 2)
            await s.keys("S")
            await s.until_shown("1 of 3: n=1000000. About")
            assert "s left" in s.text() and "33%" in s.text()
            await s.keys("f7")
            await s.until_shown("Cancelled. S starts again.")
            write(s, "# right\n")
            await s.keys("S")
            await s.until_shown("Sizes on Some GPU, model, not measured")
            assert "n=[big]: 100 % of the limit, memory" in s.text()

    drive(story)


def test_the_figures_of_bars_and_rooflines() -> None:
    rows = bar_rows(measured_bars(measured("n", 0, 2.0)), 40)
    assert [(name, len(bar)) for name, bar, _ in rows] == [
        ("yours", 40), ("eager PyTorch", 40), ("reference solution", 20), ("the hardware's limit", 18),
    ]  # fmt: skip
    assert rows[2][2].startswith("100.0 µs  2.00 times as fast")
    shown = measured_roofline(measured("n", 0, 2.0), [measured("n", 0, 4.0)])
    assert shown is not None and [point.sign for point in shown.points] == ["e", "S", "Y"]
    earlier, solution, mine = shown.points
    assert (earlier.gflops, solution.gflops, mine.gflops) == (150.0, 600.0, 300.0)
    assert shown.height(mine.intensity) == pytest.approx(4000 * 0.6 / 3.6)  # no peak was measured: only the slope
    assert measured_roofline({**measured("n", 0, 1.0), "tflop_per_s": 0.0}) is None
    assert modelled_roofline({"reason": "none"}, None) is None


def test_the_time_left_is_said_once_a_step_is_done() -> None:
    assert left_words(10.0, 0, 4) == "" and left_words(10.0, 4, 4) == ""
    assert left_words(10.0, 1, 4) == "About 30 s left."
    assert left_words(600.0, 1, 4) == "About 30 min left."
