"""One browser tab: an app process of its own, which ends with the tab, and everything below it as well."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from textual_serve.app_service import AppService

from grader.process_tree import descendants
from tutor.web.environment import inherited

PARTING_SECONDS = 5.0
DRIVER = {
    "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver",
    "TEXTUAL_COLOR_SYSTEM": "truecolor",
    "TERM_PROGRAM": "textual",
}


class BrowserSession(AppService):
    """textual-serve's own starts a shell with the whole environment, and waits for the app without a limit."""

    def command_line(self) -> list[str]:
        return [sys.executable, "-m", "tutor.web.app", self.command]  # the command is the workspace's folder

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *self.command_line(),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env={**inherited(os.environ), **DRIVER, "COLUMNS": str(width), "ROWS": str(height)},
            cwd=Path(__file__).resolve().parents[2],
            start_new_session=True,
        )
        self._stdin = self._process.stdin
        return self._process

    async def stop(self) -> None:
        """Asks the app to leave, so that it can put things away; whatever is then left is killed."""
        process = self._process
        if process is None:
            return
        below = descendants(process.pid) if process.returncode is None else []
        with contextlib.suppress(TimeoutError, ConnectionError):
            await asyncio.wait_for(super().stop(), PARTING_SECONDS)
        with contextlib.suppress(TimeoutError, ConnectionError, RuntimeError):
            await asyncio.wait_for(process.communicate(), PARTING_SECONDS)
        if process.returncode is None:
            below = [process.pid, *below, *descendants(process.pid)]
        for pid in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        await process.wait()
