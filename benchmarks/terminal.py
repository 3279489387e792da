"""An app in a pseudo-terminal: what it writes is counted, and what it asks of a terminal is answered."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from grader.process_tree import descendants

QUIET = 0.6  # seconds without a byte: the screen is drawn
ANSWERS = {b"\x1b[?2026$p": b"\x1b[?2026;2$y", b"\x1b[c": b"\x1b[?62;22c"}  # synchronised output is known, as in xterm


class Terminal:
    """`with Terminal(command, environment) as t:` then `t.until_quiet()`, `t.send(b"n")`; bytes in `t.count`."""

    def __init__(self, command: Sequence[str], environment: dict[str, str], size: tuple[int, int] = (80, 24)) -> None:
        self.count = 0
        self.seen = b""
        self.begun = time.perf_counter()
        columns, rows = size
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), {**environment, "COLUMNS": str(columns), "LINES": str(rows)})
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pid in [*reversed(descendants(self.pid)), self.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(self.pid, 0)
        os.close(self.file)

    def read(self, seconds: float) -> bytes:
        """What comes within the time, at least one read; empty when nothing did."""
        if not select.select([self.file], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.file, 65536)
        except OSError:  # the app has ended
            return b""
        self.count += len(data)
        self.seen = (self.seen + data)[-400_000:]
        for question, answer in ANSWERS.items():
            if question in data:
                os.write(self.file, answer)
        return data

    def send(self, keys: bytes) -> None:
        os.write(self.file, keys)

    def until_quiet(self, most: float = 30.0, quiet: float = QUIET) -> float:
        """Reads until nothing has come for `quiet` seconds. Gives when the last byte came, on `time.perf_counter`."""
        last = time.perf_counter()
        until = last + most
        while time.perf_counter() < until:
            if self.read(quiet):
                last = time.perf_counter()
            elif time.perf_counter() - last >= quiet:
                break
        return last

    def until_seen(self, text: bytes, most: float = 60.0) -> float:
        """Raises TimeoutError when it does not come."""
        until = time.perf_counter() + most
        while text not in self.seen:
            if time.perf_counter() > until:
                raise TimeoutError(f"{text!r} did not come; last: {self.seen[-300:]!r}")
            self.read(0.1)
        return time.perf_counter()

    def listen(self, seconds: float) -> int:
        """Bytes that come within the time."""
        before, until = self.count, time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0:
            self.read(left)
        return self.count - before

    def alive(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"

    def memory(self) -> float:
        """Proportional set size of the app's own process, in MB: a shared page counts in parts."""
        for line in Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
        return 0.0
