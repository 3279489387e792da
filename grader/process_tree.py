"""Processes below a process, and ending all of them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Collection

END_LIMIT = 20.0  # seconds for a tree that keeps forking


def descendants(root: int, spared: Collection[int] = ()) -> list[int]:
    """Everything below `root`, nearest first, zombies included; nothing of the trees that are spared."""
    below = _by_parent()
    found = [root]
    for pid in found:  # grows while it is read
        found += [child for child in below.get(pid, ()) if child not in spared]
    return found[1:]


def children(pid: int) -> list[int]:
    """The processes that this one started, or adopted, and has not reaped."""
    return _by_parent().get(pid, [])


def _by_parent() -> dict[int, list[int]]:
    below: dict[int, list[int]] = defaultdict(list)
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():  # other systems have none
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                # the name before the last parenthesis may hold anything
                fields = file.read().rpartition(b")")[2].split()
                below[int(fields[1])].append(int(name))
    return below


def end_all(victims: Callable[[], list[int]]) -> None:
    """Kill what `victims` lists until it lists nothing: new processes may appear while the old ones are killed."""
    until = time.monotonic() + END_LIMIT
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    first = False
    while (found := victims()) and time.monotonic() < until:
        if len(found) > 8 and not first:
            first = True  # root may go before a crowd that forks as fast as it is killed; others have a process limit
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, 0, -20)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.001)
    if first:
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, usual)
