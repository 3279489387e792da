"""The glossary in the app: what the page uses stands first, typing finds, Enter goes to the item and Esc comes back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.app.driver import Session, drive
from tests.app.sample_course import EXERCISE, LESSON, QUIZ
from tutor.course import glossary
from tutor.screens.glossary import GlossaryScreen
from tutor.screens.home import HomeScreen
from tutor.screens.item import ItemScreen

New = Callable[..., Session]
LONG = "A long meaning of a[i], " * 12

GLOSSARY = f"""\
terms:
  - {{term: grid, text: "How many programs kernel[grid](x) starts.", item: {LESSON.id}}}
  - {{term: element, text: "One value x[i] of a tensor.", item: {QUIZ.id}, also: [acc]}}
  - {{term: split-K, text: "Several programs share one tile c[k].", item: {EXERCISE.id}}}
  - {{term: zebra, text: "{LONG}", item: {EXERCISE.id}}}
"""


@pytest.fixture(autouse=True)
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "glossary.yaml"
    file.write_text(GLOSSARY, encoding="utf-8")
    monkeypatch.setattr(glossary, "glossary_file", lambda: file)


def test_the_words_of_the_page_stand_first_and_enter_goes_to_their_item(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(LESSON.id)
            await s.keys("G")
            assert isinstance(s.app.screen, GlossaryScreen)
            shown = s.text()
            assert "On this page (2)" in shown and "All terms (4)" in shown
            assert shown.index("element") < shown.index("All terms") < shown.index("zebra")
            assert "One value x[i] of a tensor." in shown and "element (also acc)" in shown
            await s.keys("enter")
            assert isinstance(s.app.screen, ItemScreen) and s.app.screen.item == QUIZ
            await s.keys("escape")
            assert "First a[i]" in s.text()
            assert s.desk.progress.resume() == LESSON.id

    drive(story)


def test_typing_finds_a_word_in_any_spelling_and_says_when_there_is_none(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.keys("G")
            assert "On this page" not in s.text()
            await s.type("SPLIT k")
            assert "Several programs share one tile c[k]." in s.text() and "zebra" not in s.text()
            await s.type("q")
            assert "No term has" in s.text()
            await s.keys("enter")  # nothing to go to
            assert isinstance(s.app.screen, GlossaryScreen)
            await s.keys("backspace", "backspace", "backspace", "down", "escape")
            assert isinstance(s.app.screen, HomeScreen)

    drive(story)


def test_on_a_low_screen_page_keys_go_through_a_long_meaning_and_then_on(session: New) -> None:
    async def story() -> None:
        async with session(size=(40, 12)) as s:
            await s.keys("G")
            await s.type("z")
            meaning = s.app.screen.query_one("#meaning")
            await s.until(lambda: meaning.max_scroll_y > 0)
            before = meaning.scroll_offset.y
            await s.keys("pagedown")
            assert meaning.scroll_offset.y > before
            await s.until_shown("zebra")

    drive(story)


def test_a_click_reads_and_a_second_one_goes_there(session: New) -> None:
    async def story() -> None:
        async with session(size=(80, 40)) as s:
            await s.open(LESSON.id)
            await s.keys("G")
            await s.click_text("  zebra")
            assert "A long meaning of a[i]" in s.text()
            await s.click_text("  zebra")
            await s.until(lambda: isinstance(s.app.screen, ItemScreen) and s.app.screen.item == EXERCISE)

    drive(story)


def test_help_and_palette_name_it_and_a_strict_drill_closes_it(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 40)) as s:
            await s.keys("question_mark")
            assert "the glossary: what a word means" in s.text()
            await s.keys("escape", "ctrl+p")
            await s.type("glossary")
            await s.until_shown("Glossary: what a word means (G)")
            await s.keys("escape")
            s.app.screen.closed_book = True  # type: ignore[attr-defined]
            await s.keys("G")
            assert not isinstance(s.app.screen, GlossaryScreen)

    drive(story)
