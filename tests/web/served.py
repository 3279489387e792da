"""`triton-prep serve` in a process of its own, and what its clients need to look at it."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from grader.process_tree import descendants
from tutor.progress import Progress
from tutor.workspace import Workspace

LIMIT = 60.0


@dataclass(frozen=True)
class Served:
    process: subprocess.Popen[str]
    link: str

    @property
    def address(self) -> str:
        return self.link.partition("?")[0]

    @property
    def token(self) -> str:
        return self.link.partition("token=")[2]

    def below(self) -> list[int]:
        """The processes of the tabs: the app, and its grader."""
        return [pid for pid in descendants(self.process.pid) if alive(pid)]


def without_tour(workspace: Path) -> None:
    """As at every start but the first."""
    progress = Progress.open(Workspace.open(workspace, create=False).progress_file)
    progress.set_setting("tour", "offered")
    progress.close()


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"not within {LIMIT:.0f} s: {what}")
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def serving(environment: dict[str, str], *options: str) -> Iterator[Served]:
    command = [sys.executable, "-m", "tutor", "serve", "--port", str(free_port()), *options]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    left: list[int] = []
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], LIMIT)
        found = re.search(r"Open (\S+)", process.stdout.readline()) if ready else None
        if found is None:
            raise AssertionError("the server printed no link")
        served = Served(process, found[1])
        wait_for(lambda: listens(urlsplit(served.link).port or 0), "the server listens")
        yield served
        left = descendants(process.pid)
        process.terminate()
        process.wait(LIMIT)
    finally:
        # what an app that failed wrote on stderr comes out here
        for pid in (process.pid, *left):
            if alive(pid) and pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        process.wait(LIMIT)
        print(process.stdout.read())
