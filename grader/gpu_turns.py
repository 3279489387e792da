"""Turns on a GPU that several graders share: many at a time for values, one by itself while it measures.

Whoever runs several graders on one GPU (`tutor.homework.turns`) holds the other end of a socket that this process
inherits, and hands out the turns. A socket without a name, and no locked file: a runner has none of the judge's
descriptors and can open no other end of it, so nothing that a submission does takes a turn or keeps one. A process that
dies gives its turn back, because its end closes. A grader started by itself has no such socket and never waits.

On the wire: two bytes ask (what is wanted, a number), the same two bytes grant it. What was held before is given up
with the asking, so nobody waits while holding.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum

from grader.failures import Cancelled
from grader.protocol import Lost

VARIABLE = "TRITON_PREP_GPU_TURNS"  # the number of the inherited descriptor
LOOK_EVERY = 0.05  # seconds between looks at whether the grade was cancelled
ASKED = 2  # bytes


class Turn(IntEnum):
    """What a process holds or wants; a larger one covers a smaller."""

    NOTHING = 0
    SHARED = 1
    ALONE = 2


def _never() -> bool:
    return False


class Turns:
    """One process's turns on its GPU. One thread at a time may be inside: turns are between processes."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        """Without a socket the GPU is this process's own, and every turn is granted."""
        self.waited = 0.0  # seconds in all, so far: of no grade's own doing
        self.holds = Turn.NOTHING
        self._sock = sock
        self._number = 0
        self._came = bytearray()
        self._thread: int | None = None

    @classmethod
    def of_environment(cls) -> Turns:
        """Takes the descriptor that the variable names, once: what this process starts later inherits neither.

        Raises ValueError when it names none.
        """
        named = os.environ.pop(VARIABLE, None)
        if named is None:
            return cls()
        try:
            sock = socket.socket(fileno=int(named))
            sock.set_inheritable(False)
        except (OSError, ValueError) as error:
            raise ValueError(f"{VARIABLE}={named} is no inherited socket: unset it ({error})") from error
        return cls(sock)

    @property
    def shared_gpu(self) -> bool:
        """Whether other graders may be at work on this GPU."""
        return self._sock is not None

    @contextmanager
    def sharing(self, cancelled: Callable[[], bool] = _never) -> Iterator[None]:
        """The GPU is in use, and nobody measures on it. Inside `alone` it changes nothing.

        Raises Cancelled while waiting, Lost when nobody hands out turns any more.
        """
        with self._holding(Turn.SHARED, cancelled):
            yield

    @contextmanager
    def alone(self, cancelled: Callable[[], bool] = _never) -> Iterator[None]:
        """Nobody else uses the GPU. Inside `sharing`, that turn is given up first and is back after the block, at once.

        Between giving it up and getting this one others measure: no process that runs a learner's code may be alive
        then. Others that wait to be alone then wait for the end of the outer `sharing` too: one block after the other
        is quicker than one inside the other. Raises Cancelled while waiting, Lost when nobody hands out turns any more.
        """
        with self._holding(Turn.ALONE, cancelled):
            yield

    @contextmanager
    def _holding(self, wanted: Turn, cancelled: Callable[[], bool]) -> Iterator[None]:
        before, outer = self.holds, self._thread
        if outer not in (None, threading.get_ident()):
            raise RuntimeError("another thread of this process has its turn on the GPU")
        self._thread = threading.get_ident()
        try:
            if wanted > before:
                self._ask(wanted, cancelled)
            yield
        finally:
            try:
                if self.holds > before:
                    self._ask(before, _never)  # less than is held: granted without waiting
            finally:
                self._thread = outer

    def _ask(self, wanted: Turn, cancelled: Callable[[], bool]) -> None:
        if self._sock is None:
            self.holds = wanted
            return
        self._send(wanted)
        if wanted is Turn.NOTHING:
            return
        started = time.monotonic()
        try:
            while not self._granted(wanted):
                if cancelled():
                    raise Cancelled
        except BaseException:
            self._send(Turn.NOTHING)
            raise
        finally:
            self.waited += time.monotonic() - started
        self.holds = wanted

    def _send(self, wanted: Turn) -> None:
        assert self._sock is not None
        self.holds = Turn.NOTHING
        self._number = (self._number + 1) % 256
        try:
            self._sock.settimeout(None)
            self._sock.sendall(bytes((wanted, self._number)))
        except OSError as error:
            raise Lost(f"nobody hands out turns on the GPU any more ({error})") from error

    def _granted(self, wanted: Turn) -> bool:
        """Whether the newest wish was granted within LOOK_EVERY; grants of wishes withdrawn before do not count."""
        assert self._sock is not None
        try:
            self._sock.settimeout(LOOK_EVERY)
            data = self._sock.recv(4096)
        except TimeoutError:
            return False
        except OSError as error:
            raise Lost(f"nobody hands out turns on the GPU any more ({error})") from error
        if not data:
            raise Lost("nobody hands out turns on the GPU any more")
        self._came += data
        whole = len(self._came) - len(self._came) % ASKED
        answers, self._came = bytes(self._came[:whole]), self._came[whole:]
        return answers[-ASKED:] == bytes((wanted, self._number))
