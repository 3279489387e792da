"""The judge's handle of one runner: start it, ask it, end it as a tree. Its output is drained, never parsed."""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from grader.failures import Cancelled, RunnerGone
from grader.process_tree import descendants
from grader.protocol import Channel, Lost
from grader.triton_c_launchers import KEEPER, noted
from grader.warm import Warm

PROCESS_LIMIT = 128  # that one graded file may have at a time; a compile takes a few
LOOK_EVERY = 0.25  # seconds between looks at how many there are
KEPT_OUTPUT = 16384  # bytes kept of the start, and as many of the end, of what a learner prints


class SharedMemory:
    """Memory shared with a runner on the CPU: a sealed memfd that neither side can shrink."""

    def __init__(self, size: int) -> None:
        self.fd = os.memfd_create("case", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, max(size, mmap.PAGESIZE))
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self.mapping = mmap.mmap(self.fd, 0)
        self.tensor = torch.frombuffer(self.mapping, dtype=torch.uint8)

    def close(self) -> None:
        os.close(self.fd)


class PrintedOutput:
    """What the learner's process printed: the first and the last part of it."""

    def __init__(self, fd: int, folder: Path) -> None:
        self.folder = folder
        self.head, self.tail, self.total = bytearray(), bytearray(), 0
        self.thread = threading.Thread(target=self._drain, args=(fd,), daemon=True)
        self.thread.start()

    def _drain(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(fd, 1 << 16):
                self.total += len(data)
                room = KEPT_OUTPUT - len(self.head)
                self.head += data[:room]
                self.tail = (self.tail + data[max(room, 0) :])[-KEPT_OUTPUT:]
        os.close(fd)

    def text(self) -> dict[str, Any]:
        cut = self.total > len(self.head) + len(self.tail)
        middle = b"\n[... cut ...]\n" if cut else b""
        whole = bytes(self.head + middle + self.tail).decode("utf-8", "replace")
        return {"text": whole.replace(f"{self.folder}/", ""), "bytes": self.total, "truncated": cut}


class RunnerProcess:
    def __init__(
        self,
        warm: Warm,
        spec: dict[str, Any],
        source: bytes,
        memory: SharedMemory | None,
        cancelled: Callable[[], bool],
    ) -> None:
        self.warm, self.cancelled = warm, cancelled
        self.scratch = Path(tempfile.mkdtemp(prefix="triton-prep-"))
        file = self.scratch / Path(spec["file"]).name
        file.write_bytes(source)
        ours, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        self.memory_mb = int(spec["memory_mb"])
        try:
            self.pid = warm.spawn(
                {**spec, "file": str(file), "scratch": str(self.scratch)},
                theirs,
                write_end,
                memory.fd if memory else None,
            )
        except BaseException:
            ours.close()
            os.close(read_end)
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise
        finally:
            theirs.close()
            os.close(write_end)
        self.channel = Channel(ours)
        self.printed = PrintedOutput(read_end, self.scratch)
        self.ended = False

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Raises RunnerGone when it dies, hangs or babbles, Cancelled when the learner cancels."""
        until = time.monotonic() + timeout
        look = time.monotonic() + LOOK_EVERY
        try:
            self.channel.send(message)
            while True:
                try:
                    return self.channel.receive(0.05)
                except TimeoutError:
                    pass
                if self.cancelled():
                    self.end()
                    raise Cancelled
                if time.monotonic() > until:
                    self.end()
                    raise RunnerGone("timeout", f"no answer within {timeout:g} s: an endless loop?")
                if time.monotonic() > look:
                    look = time.monotonic() + LOOK_EVERY
                    others = self.warm.runners - {self.pid}
                    if len(descendants(self.warm.pid, spared=others)) > PROCESS_LIMIT:
                        self.end()
                        raise RunnerGone("crashed", f"started more than {PROCESS_LIMIT} processes")
                if self.warm.mode == "cuda" and _resident_mb(self.pid) > self.memory_mb:
                    self.end()
                    raise RunnerGone("crashed", f"used more than {self.memory_mb} MB of memory")
        except Lost as error:
            raise self._gone(str(error)) from error

    def _gone(self, how: str) -> RunnerGone:
        time.sleep(0.01)
        status = self.end()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            name = signal.Signals(os.WTERMSIG(status)).name
            return RunnerGone(
                "crashed", f"the process died of {name}: memory outside its buffers was touched, or it aborted"
            )
        if how == "closed" and os.WIFEXITED(status):
            return RunnerGone("crashed", f"the process ended by itself (exit code {os.WEXITSTATUS(status)})")
        return RunnerGone("crashed", f"the process was lost ({how})")

    def end(self) -> int:
        """Kill the runner and everything it started; remove its scratch folder. Safe to call twice."""
        if self.ended:
            return 0
        self.ended = True
        status = 0
        deadline = time.monotonic() + 0.2
        with contextlib.suppress(Lost):
            self.channel.close()
            while self.warm.alive(self.pid) and time.monotonic() < deadline and not self.cancelled():
                time.sleep(0.005)
            status = self.warm.reap(self.pid)
        self.printed.thread.join(0.5)
        if self.warm.mode == "cuda":
            KEEPER.want(noted(self.scratch))
        shutil.rmtree(self.scratch, ignore_errors=True)
        return status


def _resident_mb(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE / 2**20
    except (OSError, IndexError, ValueError):
        return 0.0
