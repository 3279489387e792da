"""The footer: the keys that matter at every width, and a click does what the key does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, EXERCISE, OPEN, QUIZ
from tutor.widgets.keys import Key, fitting

New = Callable[..., Session]


def footer(s: Session) -> str:
    return s.text().split("\n")[-1]


def test_a_narrow_footer_keeps_grading_the_way_back_and_the_palette(session: New) -> None:
    async def story() -> None:
        async with session(size=(40, 12)) as s:
            await s.open(EXERCISE.id)
            for words in ("e Edit", "g Grade", "Esc Back", "^p More"):
                assert words in footer(s)
            assert "Reset" not in footer(s)

    drive(story)


def test_keys_that_do_not_fit_are_left_out_whole_and_the_order_stays() -> None:
    keys = [Key("x", "x", "Reset", "reset"), Key("g", "g", "Grade", "grade"), Key("escape", "Esc", "Back", "back")]
    assert fitting(keys, 80) == keys
    assert [key.name for key in fitting(keys, 18)] == ["grade", "back"]
    assert [key.name for key in fitting(keys, 1)] == ["back"]
    assert [key.name for key in fitting(keys, 18, "reset")] == ["reset", "back"]


def test_once_answered_the_way_on_comes_first(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(QUIZ.id)
            assert footer(s).split()[1] != "Next"
            await s.keys("1")
            assert footer(s).strip().startswith("n Next")

    drive(story)


def test_while_typing_the_way_on_is_a_key_that_types_nothing(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(OPEN.id)
            assert "^n Next" in footer(s)
            await s.keys("n")
            assert OPEN.title in s.text() and s.app.focused.text == "n"  # type: ignore[union-attr]
            await s.keys("f1")
            listed = " ".join(s.text().split())
            assert "^n Next" in listed and "G the glossary" not in listed and "Tab next" not in listed
            await s.keys("escape", "ctrl+p")
            await s.until_shown("Next (^n)")
            await s.keys("escape", "escape")
            assert "  n Next" in footer(s)
            await s.keys("ctrl+n")
            assert OPEN.title not in s.text()

    drive(story)


def test_help_says_of_a_key_only_what_it_does_here(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(EXERCISE.id)
            await s.keys("b", "f1")
            assert "Tab        View" in s.text() and "Tab        next" not in s.text()

    drive(story)


def test_a_click_on_a_key_does_what_the_key_does(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(QUIZ.id)
            await s.click_text("Esc Back")
            assert "Continue:" in s.text()
            await s.open(OPEN.id)
            await s.click_text("F6 Model answer")
            assert "A model answer" in s.text()

    drive(story)


def test_escape_leads_home_from_every_place_in_a_bug_item(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.open(BUG.id)
            await s.keys(*["j"] * 12, "enter", "escape", "escape")
            assert "Continue:" in s.text()

    drive(story)


def test_home_comes_up_without_the_markdown_parser() -> None:
    code = "import sys, tutor.screens.home, tutor.screens.terminal; raise SystemExit('markdown_it' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
