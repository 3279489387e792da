"""What every theme must show: text that stands out from its ground, states in words, no colour where none is wanted."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.color_triplet import ColorTriplet
from rich.style import Style
from textual.screen import ModalScreen

from benchmarks.terminal import Terminal
from tests.app.driver import Session, drive
from tests.app.sample_course import BUG, EXERCISE, ITEMS, QUIZ
from tests.web.served import without_tour
from tutor.themes import OFFERED, Offered

New = Callable[..., Session]
INACTIVE = {"Check"}  # a button that cannot be pressed yet


def luminance(colour: ColorTriplet) -> float:
    """Relative luminance, WCAG 2.2."""
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour.normalized]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(style: Style) -> float | None:
    if style.color is None or style.bgcolor is None:
        return None
    one, other = style.color.triplet, style.bgcolor.triplet
    if one is None or other is None:
        return None
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def faint(s: Session, least: float) -> Iterator[str]:
    """Texts on the screen with less contrast; what lies behind a dialog is not meant to be read."""
    if isinstance(s.app.screen, ModalScreen):
        s.app.screen.styles.background = s.app.theme_variables["background"]
        s.app.screen._refresh_layout()
    for strip in s.app.screen._compositor.render_strips():
        for segment in strip:
            words = segment.text.strip()
            if any(map(str.isalnum, words)) and words not in INACTIVE and segment.style is not None:
                found = contrast(segment.style)
                if found is not None and found < least:
                    yield f"{found:.2f} {words!r} {segment.style}"


async def every_screen(s: Session, look: Callable[[str], None]) -> None:
    look("home")
    for item in ITEMS:
        await s.open(item.id)
        look(item.id)
        if item in (QUIZ, BUG):
            await s.keys("2" if item is QUIZ else "enter")
            look(f"{item.id} answered wrongly")
    file = s.desk.workspace.file("vector_add")
    file.write_text('# fake: wrong_answer\n# cause: x\nx = "a" + 1  # c\ndef f(a):\n    return None, 3.0\n')
    await s.open(EXERCISE.id)
    await s.keys("g")
    await s.until_shown("n=1001")
    look("a failed grade")
    for action in ("help", "settings", "keys", "glossary", "drill", "stats", "command_palette"):
        await s.app.run_action(action)
        await s.pilot.pause(0.2)
        look(action)
        await s.keys("escape")
    for severity in ("information", "warning", "error"):
        s.app.notify(f"The {severity}", title="Title", severity=severity)  # type: ignore[arg-type]
    await s.until_shown("The error")
    look("toasts")


@pytest.mark.parametrize("theme", [one for one in OFFERED if one.contrast], ids=lambda one: one.name)
def test_text_stands_out_in_every_theme(session: New, theme: Offered) -> None:
    found: list[str] = []

    async def story() -> None:
        async with session(size=(120, 36)) as s:
            s.app.theme = theme.name
            await s.pilot.pause()
            await every_screen(s, lambda where: found.extend(f"{where}: {one}" for one in faint(s, theme.contrast)))

    drive(story)
    assert found == []


def test_the_cursor_does_not_blink_when_motion_is_reduced(session: New) -> None:
    async def story() -> None:
        async with session() as s:
            await s.keys("comma")
            s.app.screen.query_one("#editor").focus()
            await s.pilot.pause()
            assert s.app.focused.cursor_blink  # type: ignore[union-attr]
            s.app.screen.query_one("#switches").focus()
            await s.keys("enter")
            s.app.screen.query_one("#editor").focus()
            await s.pilot.pause()
            assert not s.app.focused.cursor_blink  # type: ignore[union-attr]
            assert s.app.animation_level == "none"

    drive(story)


COLOUR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]")  # 39 and 49 are the terminal's own


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_no_color_is_taken_at_its_word(environment: dict[str, str], work: Path) -> None:
    without_tour(work)
    command = [sys.executable, "-m", "tutor"]
    plain = {**environment, "TERM": "xterm-256color"}
    with Terminal(command, {**plain, "NO_COLOR": ""}) as usual:
        usual.until_seen(b"Quit")
        assert COLOUR.search(usual.seen)
    with Terminal(command, {**plain, "NO_COLOR": "1"}) as terminal:
        terminal.until_seen(b"Quit")
        terminal.send(b"\r")
        terminal.until_seen(b"page")
        terminal.send(b"nn")
        terminal.until_seen(b"Launches")
        terminal.send(b"2")
        terminal.until_seen(b"Not right")
        assert not COLOUR.search(terminal.seen)
        assert b"\x1b[1;4" in terminal.seen  # the cursor's row is underlined


def test_settings_name_the_themes_in_words(session: New) -> None:
    async def story() -> None:
        async with session(size=(100, 50)) as s:
            await s.keys("comma")
            for one in OFFERED:
                assert one.words in s.text()
            listed = s.app.screen.query_one("#themes")
            listed.highlighted = 1  # type: ignore[attr-defined]
            await s.keys("enter")
            assert s.app.theme == "prep-light" == s.desk.progress.setting("theme")

    drive(story)
