"""Ways through the app, what is kept between starts, sizes, themes, and text that markup would eat."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, COURSE, EXERCISE, ITEMS, LESSON, MATCH, OPEN, QUIZ, SEVERAL, WALK
from tutor.widgets.desk import Desk

New = Callable[..., Session]


def test_home_names_the_next_thing_and_enter_opens_it(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            assert "Start here: The launch kernel[grid](x)" in s.text()
            await s.keys("enter")
            assert "First a[i]" in s.text()
            await s.keys("escape")
            assert "Continue: The launch kernel[grid](x)" in s.text()

    drive(story)


def test_the_next_start_resumes_item_and_page(new_desk: Callable[[], Desk]) -> None:
    async def first() -> None:
        async with Session(new_desk()) as s:
            await s.open(LESSON.id)
            await s.keys("space")

    async def second() -> None:
        async with Session(new_desk()) as s:
            await s.keys("c")
            assert "Then a[i+1]" in s.text()

    drive(first)
    drive(second)


def test_two_apps_at_once_both_keep_their_answers(new_desk: Callable[[], Desk]) -> None:
    async def story() -> None:
        async with Session(new_desk()) as one, Session(new_desk()) as two:
            await one.open(QUIZ.id)
            await two.open(SEVERAL.id)
            await one.keys("1")
            await two.keys("space", "j", "j", "space", "enter")
            assert two.desk.progress.state(QUIZ.id).passed
            assert one.desk.progress.state(SEVERAL.id).passed

    drive(story)


def test_the_outline_and_the_palette_jump_to_items(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.keys("1")
            assert "What interviewers probe" in s.text() and "Gotchas" in s.text()
            await s.click_text("Words of w[i]")
            assert "Match each with kernel[grid](x)." in s.text()
            await s.keys("f2")
            assert "Explain mask[i]" in s.text()
            await s.click_text("Explain mask[i]")
            assert OPEN.question in s.text()
            await s.keys("ctrl+p")
            await s.type("vector")
            await s.until_shown("Add x[i] and y[i]")
            await s.keys("down", "enter")
            await s.until_shown("F4 Code")

    drive(story)


def test_n_and_p_go_through_the_whole_course(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.keys("1", "home", "enter")
            seen = []
            for _ in range(25):
                seen.append(s.text().split("\n")[0])
                if s.app.screen.focused is not None and s.app.screen.focused.id == "draft":
                    await s.keys("escape")
                await s.keys("n")
            shown = "\n".join(seen)
            for item in ITEMS:
                assert item.title in shown
            assert "2 Second s[i]" in shown
            for _ in range(3):
                await s.keys("p")
            assert "1 Programs p[i]" in s.text()

    drive(story)


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (110, 30), (140, 40)])
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.id)
def test_every_kind_shows_its_answerable_part_at_every_size(session: New, size: tuple[int, int], item) -> None:  # type: ignore[no-untyped-def]
    expected = {
        LESSON.id: "kernel[grid](x)",
        QUIZ.id: "1 It launches",
        SEVERAL.id: "[ ] 1 x[i]",
        BUG.id: "import torch",
        MATCH.id: "1   grid[0]",
        WALK.id: "▶3",
        "m01.predict.copy": "half of p[0]",
        OPEN.id: "Your answer",
        EXERCISE.id: "F5 Result",
    }

    async def story() -> None:
        async with session(size=size) as s:
            await s.open(item.id)
            assert expected[item.id] in s.text()

    drive(story)


def test_a_low_terminal_has_room_for_the_mend(session: New) -> None:
    async def story() -> None:
        async with session(size=(40, 12)) as s:
            await s.open(BUG.id)
            await s.keys(*["j"] * 12, "enter")
            await s.pilot.pause(0.1)
            assert s.text().count("tl.store(out_ptr + offs") == 2  # the line in the code, and in the input

    drive(story)


def test_wide_terminals_show_task_code_and_result_together(session: New) -> None:
    async def story() -> None:
        async with session(size=(140, 40)) as s:
            await s.open(EXERCISE.id)
            assert "Called as" in s.text() and "@triton.jit" in s.text() and "Not graded yet" in s.text()

    drive(story)


@pytest.mark.parametrize("theme", ["textual-light", "textual-dark", "ansi-dark"])
def test_themes_change_and_are_kept(session: New, theme: str) -> None:
    async def story() -> None:
        async with session() as s:
            if theme not in s.app.available_themes:
                pytest.skip(f"this textual has no {theme}")
            await s.keys("comma")
            assert "Theme" in s.text()
            dialog = s.app.screen
            themes = dialog.query_one("#themes")
            themes.highlighted = dialog.themes.index(theme)  # type: ignore[attr-defined]
            await s.keys("enter", "escape")
            assert s.app.theme == theme and s.desk.progress.setting("theme") == theme
            for item in ITEMS:
                await s.open(item.id)
                assert s.text().strip()

    drive(story)


def test_brackets_survive_in_titles_outline_help_stats_and_notices(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 40), notices=("Kept as progress[1].bad",)) as s:
            await s.until_shown("Kept as progress[1].bad")
            await s.keys("1")
            for item in ITEMS:
                assert item.title in s.text()
            assert "What kernel[grid](x) starts." in s.text()
            await s.open(QUIZ.id)
            await s.keys("2", "escape", "escape", "t")
            assert "What is kernel[grid]?" in s.text() and "Programs p[i]" in s.text()

    drive(story)


def test_brackets_survive_in_lesson_prose_lists_code_and_tables(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 40)) as s:
            await s.open(LESSON.id)
            for text in ("kernel[grid](x), an element acc[i][j].", "item b[j]", "c[k] = x", "acc[i][j]  "):
                assert text in s.text()
            assert s.text().count("kernel[grid](x)") == 3  # title, prose, table cell

    drive(story)


def test_help_lists_the_keys_of_the_screen_below(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 50)) as s:
            await s.open(EXERCISE.id)
            await s.keys("question_mark")
            unwrapped = "".join(line.strip(" │") for line in s.text().splitlines())
            assert "Keys here" in s.text() and "Grade" in s.text() and str(s.desk.workspace.folder) in unwrapped
            await s.keys("escape")
            assert "F4 Code" in s.text()

    drive(story)


def test_a_lost_grader_at_the_start_is_said_on_home(session: New) -> None:
    async def story() -> None:
        s = session()
        s.desk.grader.command = [sys.executable, "-c", "raise SystemExit('no torch[0] here')"]
        s.app.warm_grader = True
        async with s:
            await s.until_shown("No grader")

    drive(story)


def test_the_app_imports_neither_torch_nor_triton() -> None:
    code = (
        "import sys, pkgutil, importlib, tutor.app, tutor.screens, tutor.widgets\n"
        "for package in (tutor.screens, tutor.widgets):\n"
        "    for found in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(found.name)\n"
        "raise SystemExit(bool({'torch', 'triton'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_the_course_used_here_holds_every_kind() -> None:
    assert {type(item).__name__ for item in COURSE.items()} >= {
        "Lesson", "Quiz", "Bug", "Match", "Walkthrough", "Predict", "Open", "Exercise",
    }  # fmt: skip
