"""A sample of `python -m benchmarks.fuzz_keys`: random keys and resizes from every screen break nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fuzz_keys import STARTS, fuzz, starts_of
from tests.app.driver import Session, drive
from tests.app.sample_course import COURSE
from tutor.screens.confirm import ConfirmScreen
from tutor.screens.home import HomeScreen
from tutor.screens.outline import OutlineScreen


def test_random_keys_and_resizes_break_nothing(tmp_path: Path) -> None:
    tally = fuzz(300, 7, COURSE, tmp_path)
    assert tally.events >= 300
    assert len(tally.screens) >= 5


def test_it_starts_from_every_screen_and_every_kind_of_item() -> None:
    assert len(starts_of(COURSE)) == len(STARTS) + 8


def test_a_failure_says_how_to_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: HomeScreen) -> None:
        raise ZeroDivisionError("as planned")

    monkeypatch.setattr(HomeScreen, "refresh_standing", broken)
    with pytest.raises(AssertionError, match=r"as planned\nseed 3, round 0, from home, keys:"):
        fuzz(200, 3, COURSE, tmp_path, only_round=0)


def test_keys_typed_ahead_close_a_dialog_once(session) -> None:  # type: ignore[no-untyped-def]
    async def story() -> None:
        s: Session
        async with session() as s:
            await s.app.push_screen(OutlineScreen(COURSE.modules[0]))
            await s.app.push_screen(ConfirmScreen("Sure?"))
            await s.pilot.pause()
            dialog = s.app.screen

            def leave() -> None:
                dialog.dismiss(False)

            for _ in range(3):
                dialog.call_next(leave)  # in the dialog's queue, where keys wait too
            await s.until(lambda: s.app.screen is not dialog)
            await s.pilot.pause()
            await s.app.run_action("dismiss", dialog)  # what the palette had been asked to do to it
            await s.pilot.pause()
            assert isinstance(s.app.screen, OutlineScreen)

    drive(story)


def test_keys_typed_ahead_of_the_end_open_nothing(session) -> None:  # type: ignore[no-untyped-def]
    async def story() -> None:
        s: Session
        async with session() as s:
            for key in ("q", "1", "comma"):
                s.app.simulate_key(key)
            await s.until(lambda: s.app.return_value == 0)
            await s.pilot.pause()
            assert isinstance(s.app.screen, HomeScreen)

    drive(story)
