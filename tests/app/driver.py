"""Drives the app as a learner would, and reads the screen as text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from textual.pilot import Pilot

from tutor.screens.terminal import TritonPrepApp
from tutor.widgets.desk import Desk


class Session:
    """`async with session(size=(80, 24)) as s:` then `await s.keys(...)`, `s.text()`."""

    def __init__(self, desk: Desk, size: tuple[int, int] = (80, 24), notices: tuple[str, ...] = ()) -> None:
        self.desk = desk
        self.app = TritonPrepApp(desk, notices, warm_grader=False)
        self._size = size
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Session:
        self.pilot: Pilot[Any] = await self._stack.enter_async_context(
            self.app.run_test(size=self._size, notifications=True)
        )
        await self.pilot.pause()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        await self._stack.__aexit__(*exception)
        await self.desk.grader.close()

    def text(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def open(self, item_id: str) -> None:
        await self.app.action_open_item(item_id)
        await self.pilot.pause()

    async def keys(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        await self.keys(*("space" if letter == " " else letter for letter in text))

    async def click_text(self, text: str) -> None:
        """Clicks the first place where `text` is shown."""
        for row, line in enumerate(self.text().split("\n")):
            if text in line:
                await self.pilot.click(offset=(line.index(text) + 1, row))
                await self.pilot.pause()
                return
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text()}")

    async def until(self, condition: Callable[[], bool], seconds: float = 90.0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            await self.pilot.pause(0.02)
            if condition():
                return
        raise AssertionError(f"not within {seconds} s; the screen:\n{self.text()}")

    async def until_shown(self, text: str) -> None:
        await self.until(lambda: text in self.text())


def drive(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]
