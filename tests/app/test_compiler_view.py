"""The compiler view: source and stages linked both ways, marks, targets, compile errors, two versions compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from grader.catalog import find
from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE
from tutor.compiler.comparison import diff
from tutor.screens.choice import ChoiceScreen
from tutor.screens.compiler import CompilerScreen
from tutor.screens.compiler_compare import CompareScreen
from tutor.widgets.linked_lines import LinkedLines, Row

New = Callable[..., Session]
KERNEL = """\
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n):
    x = tl.load(x_ptr)
    y = tl.load(y_ptr)

    tl.store(out_ptr, x + y)
"""


def write(s: Session, text: str) -> None:
    s.desk.workspace.file(EXERCISE.exercise).write_text(text, encoding="utf-8")


async def opened(s: Session, text: str = KERNEL) -> CompilerScreen:
    await s.open(EXERCISE.id)
    write(s, text)
    await s.keys("v")
    await s.until_shown("registers")
    await s.pilot.pause()
    assert isinstance(s.app.screen, CompilerScreen)
    return s.app.screen


def rows(s: Session, sign: str) -> list[str]:
    """What is on the screen on lines whose sign this is, on either side."""
    halves = [half for line in s.text().split("\n") for half in line.split("▏")]
    return [half[3:].strip() for half in halves if half[1:2] == sign or half[:1] == sign]


def test_moving_on_one_side_shows_what_belongs_to_it_on_the_other(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            screen = await opened(s)
            assert "26 registers · no spills" in s.text() and "called with n=1024, the size that is timed" in s.text()
            assert screen.source.cursor == 2 and screen.lines.linked == {1, 2}  # at the first load
            await s.keys("down")
            assert screen.lines.linked == {3, 4} and "Your line 4: 2 lines of TTIR. 1 × load of a tensor" in s.text()
            await s.keys("down")
            assert not screen.lines.linked and "no line of TTIR comes from it" in s.text()
            await s.keys("up", "up", "up", "up")
            assert "not part of this kernel" in s.text()
            await s.keys("tab", "end")
            assert screen.source.linked == {5} and "From your line 6." in s.text()
            await s.keys("up")
            assert "TTIR 6: Store of a tensor, masked. From your line 6." in s.text()
            assert "%6 = tt.store %p[6]" in s.text()  # brackets as they are
            shown = [line for line in s.text().split("\n") if "tl.store" in line]
            assert shown[0].startswith("=*6")

    drive(story)


def test_narrow_one_side_at_a_time_keeps_the_link(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            screen = await opened(s)
            assert "tt.load" in s.text() and "def add_kernel" not in s.text()
            await s.keys("n")
            assert "TTIR 4: Load of a tensor, masked. From your line 4." in s.text()
            await s.keys("tab")
            assert "def add_kernel" in s.text() and "tt.load" not in s.text()
            assert "shown: your file" in s.text() and screen.source.cursor == 3
            await s.keys("down", "down", "2")
            assert "ld.global" not in s.text() and "store.global" in s.text()
            assert screen.lines.cursor == 5 and "PTX 6: Vector store, 128 bit, predicated." in s.text()

    drive(story)


def test_marked_lines_follow_one_another_and_begin_again(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            screen = await opened(s)
            seen = []
            for _ in range(4):
                await s.keys("n")
                seen.append(screen.lines.cursor)
            assert seen == [3, 5, 1, 3]
            await s.keys("N")
            assert screen.lines.cursor == 1

    drive(story)


def test_machine_code_is_asked_for_when_it_is_wanted(
    session: New, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("FAKE_GRADER_LOG", str(log))

    def asked() -> list[object]:
        requests = [json.loads(line.split(" ", 1)[1]) for line in log.read_text().splitlines()]
        return [request.get("sass") for request in requests if request["op"] == "stages"]

    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await opened(s)
            assert asked() == [None]
            await s.keys("3")
            await s.until_shown("load.E.128")
            await s.keys("left", "right")
            await s.until_shown("load.E.128")
            assert asked() == [None, 0]

    drive(story)


def test_another_target_is_compiled_for_and_remembered(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            screen = await opened(s)
            await s.keys("2", "t")
            assert "sm_89" in s.text() and "It need not be here" in s.text()
            await s.keys("end", "enter")
            await s.until_shown("buffer_load_dwordx4")
            await s.until_shown("2 AMDGCN")
            assert "PTX" not in s.text().split("\n")[1]
            assert s.desk.progress.setting("compiler target") == "gfx942"
            await s.keys("escape", "v")
            await s.until_shown("for gfx942")
            assert s.app.screen is not screen

    drive(story)


def test_the_sizes_of_the_largest_case_are_one_key_away(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await opened(s)
            await s.keys("s")
            await s.until_shown("called as in case n=1024")

    drive(story)


def test_a_kernel_is_chosen_by_its_configuration(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            screen = await opened(s, KERNEL + "# two\n")
            assert "kernel 1/2: BLOCK=1024" in s.text()
            await s.keys("k", "down", "enter")
            assert screen.number == 1 and "kernel 2/2: BLOCK=2048" in s.text()

    drive(story)


def test_what_does_not_compile_shows_the_reason_and_the_line_until_it_is_mended(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.open(EXERCISE.id)
            write(s, KERNEL.replace("y = ", "y = x[i] # fake: compile_error "))
            await s.keys("v")
            await s.until_shown("Line 4: NameError('x[i]')")
            assert rows(s, ">") and "fake" in rows(s, ">")[0]
            await s.keys("n", "c", "tab", "4")  # nothing to show is no crash
            write(s, KERNEL)
            await s.until_shown("26 registers")
            assert "NameError" not in s.text()

    drive(story)


@pytest.mark.parametrize("size", [(80, 24), (40, 12)])
def test_what_ended_the_call_after_its_kernels_stands_in_the_view_until_it_is_mended(
    session: New, size: tuple[int, int]
) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            await s.open(EXERCISE.id)
            write(s, KERNEL + "raise # fake: stops\n")
            await s.keys("v")
            await s.until_shown("tt.load")
            words = "Stopped after compiling 1 kernel: line 7: RuntimeError: x[i] is short"
            assert words in " ".join(s.text().split())
            assert not any("Stopped" in one.text for one in s.app.said)
            await s.keys("2", "down", "tab")
            assert words in " ".join(s.text().split())
            await s.keys("c")
            await s.until(lambda: isinstance(s.app.screen, ChoiceScreen))
            await s.keys(*["down"] * 4, "enter")
            await s.until_shown("* differs")
            assert "yours for sm_90: Stopped" in " ".join(s.text().split())
            await s.keys("escape")
            write(s, KERNEL)
            await s.until(lambda: "Stopped" not in s.text())
            assert "tl.load" in s.text()

    drive(story)


def test_the_figures_and_the_stage_of_two_versions_side_by_side(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await opened(s, KERNEL + "# fat\n")
            await s.keys("c")
            await s.until_shown("Not now: the course's solution (after a pass")
            await s.keys("escape")
            s.desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0)
            await s.keys("c")
            await s.until_shown("the course's solution")
            assert "Not now: the course's solution" not in s.text()
            await s.keys("enter")
            await s.until_shown("* differs")
            (figures,) = [line for line in s.text().split("\n") if "registers a thread" in line]
            assert "* registers a thread" in figures and figures.split("▏")[0].split()[-1] == "40"
            assert figures.split("▏")[1].split()[-1] == "26"
            await s.keys("escape")
            assert isinstance(s.app.screen, CompilerScreen)

    drive(story)


def test_narrow_two_versions_are_one_column(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            await opened(s)
            await s.keys("c")
            await s.until_shown("num_warps=8")
            await s.keys("down", "down", "down", "down", "enter")
            await s.until_shown("* differs")
            assert isinstance(s.app.screen, CompareScreen)
            assert any("warps" in line and "4 → 8" in line for line in s.text().split("\n"))
            await s.keys("n")
            assert any(line.startswith(">*") and "4 → 8" in line for line in s.text().split("\n"))
            await s.keys("3")
            await s.until_shown("SASS")

    drive(story)


def test_in_a_drill_neither_solution_nor_backup_is_offered(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            s.desk.progress.record_answer(EXERCISE.id, "exercise", correct=True, score=1.0)
            await s.open(EXERCISE.id)
            file = s.desk.workspace.folder / "drill.py"
            file.write_text(KERNEL)
            await s.app.push_screen(CompilerScreen(EXERCISE.exercise, file, in_drill=True))
            await s.until_shown("26 registers")
            await s.keys("c")
            assert "the stub" in s.text() and "solution" not in s.text() and "backup" not in s.text()

    drive(story)


def test_ten_thousand_lines_are_drawn_a_screenful_at_a_time(session: New, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        async with session(size=(80, 24)) as s:
            screen = await opened(s, KERNEL + "# long\n")
            await s.keys("2")
            drawn: list[int] = []
            draw = screen.lines._row
            monkeypatch.setattr(screen.lines, "_row", lambda number: drawn.append(number) or draw(number))
            await s.keys("end")
            assert screen.lines.cursor > 10_000 and "%r9999" in s.text()
            assert 0 < len(set(drawn)) <= 24
            await s.keys("pageup", "home")
            assert "module {" in s.text()

    drive(story)


@pytest.mark.parametrize("size", [(40, 12), (60, 15), (200, 60)])
def test_every_size_shows_lines_keys_and_help(session: New, size: tuple[int, int]) -> None:
    async def story() -> None:
        async with session(size=size) as s:
            await opened_small(s)
            assert "tt.load" in s.text()
            await s.keys("question_mark")
            assert "Stages" in s.text()
            await s.keys("escape", "t", "escape", "c", "escape", "escape")

    async def opened_small(s: Session) -> None:
        await s.open(EXERCISE.id)
        write(s, KERNEL)
        await s.keys("v")
        await s.until_shown("tt.load")

    drive(story)


def test_which_register_holds_a_value_is_no_difference() -> None:
    left = ["    add.s32 %r12, %r3, 4;", "    ld.global.b32 %r1, [%rd2];", "$L__BB0_2:"]
    right = ["    add.s32 %r7, %r9, 4;", "    ld.global.v4.b32 %r1, [%rd2];", "$L__BB0_4:"]
    assert [pair.sort for pair in diff(left, right)] == ["same", "changed", "same"]
    assert [pair.sort for pair in diff(left, left[:1])] == ["same", "less", "less"]


def test_the_course_has_a_solution_to_compare_with() -> None:
    assert find(EXERCISE.exercise).solution.is_file()


def test_lines_open_where_the_cursor_was_put(session: New) -> None:
    """The other side is not on the screen while that happens."""

    async def story() -> None:
        async with session() as s:
            lines = LinkedLines()
            await s.app.screen.mount(lines)
            lines.styles.height = 6
            lines.show_rows([Row(str(number), f"line {number}") for number in range(60)])
            lines.put_cursor(40)
            await s.pilot.pause()
            await s.pilot.pause()
            assert "line 40" in s.text()

    drive(story)
