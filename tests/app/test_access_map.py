"""The access map by keys: what a kernel touches, program by program, loop by loop, and where it went wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from grader.access_map.model import AccessMap
from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE
from tutor.access.cells import Choice, grid, touches
from tutor.access.drawing import lines, report
from tutor.course.loader import load
from tutor.screens.access_map import AccessMapScreen
from tutor.widgets.access_grid import AccessGrid
from tutor.widgets.desk import Desk
from tutor.widgets.drill_panes import DrillExercisePane

New = Callable[..., Session]
DATA = Path(__file__).resolve().parents[1] / "data"


def stored(name: str) -> AccessMap:
    return msgspec.json.decode((DATA / f"access_map_{name}.json").read_bytes(), type=AccessMap)


async def opened(s: Session, name: str) -> AccessGrid:
    await s.open(EXERCISE.id)
    s.desk.workspace.file(EXERCISE.exercise).write_text(f"# map: {name}\n", encoding="utf-8")
    await s.keys("m")
    await s.until(lambda: isinstance(s.app.screen, AccessMapScreen) and s.app.screen.shown is not None, 60)
    await s.until(lambda: s.app.screen.query_one(AccessGrid).drawn is not None, 60)
    return s.app.screen.query_one(AccessGrid)


def test_programs_iterations_accesses_and_tensors_are_stepped_through(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 66)) as s:
            await opened(s, "matmul")
            await s.until_shown("c_ptr, the result: float16 50 × 40")
            assert " 0 " + "0" * 32 + "1" * 8 in s.text() and "32 " + "2" * 32 + "3" * 8 in s.text()
            assert "Loads 25,200 bytes, stores 4,000: 1.76 × the least" in s.text()
            await s.keys("tab")
            await s.until_shown("a_ptr, argument a: float16 50 × 70")
            assert "×" * 70 in s.text() and "up to 2 × by 2 programs" in s.text()
            await s.keys("right", "full_stop", "full_stop")
            await s.until_shown("program 0, iteration 1")
            assert " 0 " + "·" * 32 + "L" * 32 + "·" * 6 in s.text()
            await s.keys("comma", "down")
            await s.until_shown("a = tl.load(a_ptrs, mask=")
            assert "program 0: 1/1 load, line 32 of matmul_kernel" in s.text()
            await s.keys("a")
            await s.until_shown("all programs: every access")
            await s.keys("escape")
            assert not isinstance(s.app.screen, AccessMapScreen)

    drive(story)


def test_lanes_out_of_range_stand_beside_the_tensor_and_in_words(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            await opened(s, "overrun")
            await s.until_shown("past the end !!!!")
            assert "! out of bounds: line 9: load at element 1025 of x_ptr" in s.text()
            await s.keys("right", "right")
            await s.until_shown("Program 1: loads 1 element, 1,023 lanes at no element (!) (line 9).")

    drive(story)


def test_a_picked_cell_names_its_element_its_address_and_who_touches_it(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 70)) as s:
            widget = await opened(s, "matmul")
            assert widget.drawn is not None and widget.drawn.across * widget.drawn.down == 1
            await s.keys("l", "l", *("j",) * 33)
            await s.until_shown("[33, 1]: offset 1321 elements, 2642 bytes")
            assert "store, line 41: program 2" in s.text()
            await s.keys("escape")
            assert "offset 1321" not in s.text() and isinstance(s.app.screen, AccessMapScreen)
            row = next(i for i, line in enumerate(s.text().split("\n")) if line.startswith("  0 000"))
            await s.pilot.click(offset=(4 + 35, row))
            await s.until_shown("[0, 35]: offset 35 elements, 70 bytes")
            assert "program 1" in s.text()

    drive(story)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (110, 30), (140, 40)])
def test_every_size_shows_the_grid_and_what_is_wrong(session: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            await opened(s, "overrun")
            await s.until_shown("past the end !!")
            assert "x_ptr" in s.text() and "! out of bounds" in s.text() and "Esc Back" in s.text()
            await s.keys("right", "right")
            await s.until_shown("Program 1")
            await s.keys("tab", "pagedown")
            await s.until_shown("y_ptr")

    drive(story)


def test_another_case_can_be_chosen_and_a_missing_map_says_why(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            await opened(s, "overrun")
            await s.keys("c")
            await s.until_shown("Run which case?")
            await s.keys("up", "enter")
            await s.until_shown("case n=1024 float32")
            s.desk.workspace.file(EXERCISE.exercise).write_text("# nothing yet\n", encoding="utf-8")
            await s.keys("r")
            await s.until_shown("write the kernel[grid](x)")
            await s.keys("right", "l", "c", "y", "escape")
            assert not isinstance(s.app.screen, AccessMapScreen)

    drive(story)


def test_a_lessons_picture_opens_as_a_live_map_where_there_is_one(new_desk: Callable[[], Desk]) -> None:
    async def story() -> None:
        async with Session(replace(new_desk(), course=load())) as s:
            await s.open("m02.lesson.mask")
            assert "m Map" in s.text()
            await s.keys("m")
            await s.until_shown("the kernel of this page")
            assert "Map vector_add   case n=1000" in s.text()
            await s.keys("escape", "right")
            await s.until_shown("page 2 of 3")
            await s.until(lambda: "m Map" not in s.text(), 60)
            await s.keys("m")
            assert not isinstance(s.app.screen, AccessMapScreen)

    drive(story)


def test_what_a_cell_stands_for_never_hides_a_gap_or_an_overlap() -> None:
    shown = stored("overrun")
    store = shown.sites[2]
    first, second = store.programs
    cut = msgspec.structs.replace(first, visits=(msgspec.structs.replace(first.visits[0], at=((0, 1, 1000),)),))
    moved = msgspec.structs.replace(second, visits=(msgspec.structs.replace(second.visits[0], at=((990, 1, 8),)),))
    rest = msgspec.structs.replace(second, visits=(msgspec.structs.replace(second.visits[0], at=((1000, 1, 25),)),))
    for programs, signs in (((cut,), "~·"), ((first, moved), "×·"), ((cut, rest), "/1")):
        changed = msgspec.structs.replace(store, programs=programs)
        other = msgspec.structs.replace(shown, sites=(*shown.sites[:2], changed))
        drawn = "".join(lines(grid(touches(other, Choice(tensor=2)), 40, 4)))
        assert all(sign in drawn for sign in signs), drawn


def test_the_whole_map_is_told_as_text_within_the_width() -> None:
    for name in ("matmul", "overrun"):
        for width in (60, 80):
            text = report(stored(name), width, program=1)
            assert max(map(len, text.split("\n"))) <= width, text
            assert "Program 1: " in text


def test_a_drill_offers_no_map() -> None:
    """It would be a grading run that is not counted."""
    pane = DrillExercisePane.__new__(DrillExercisePane)
    assert pane.check_action("map", ()) is False
