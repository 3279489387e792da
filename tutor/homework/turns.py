"""Who may use a GPU that several graders share, and when: the end that hands out what `grader.gpu_turns` asks for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.gpu_turns import ASKED, VARIABLE, Turn
from tutor.grading import Grader


class SharingGrader(Grader):
    """A grader whose processes ask for their turns on a GPU."""

    def __init__(self, environment: Mapping[str, str], seat: Seat) -> None:
        super().__init__(environment=environment)
        self._seat = seat

    @contextlib.contextmanager
    def _inherited(self) -> Iterator[dict[str, Any]]:
        with super()._inherited() as inherited, self._seat.join() as end:
            number = end.fileno()
            yield {**inherited, "env": {**inherited["env"], VARIABLE: str(number)}, "pass_fds": (number,)}


@dataclass(eq=False)
class Seat:
    """One grader's place at a GPU. A grader that is started again takes the place of the one that was lost."""

    keeper: TurnKeeper
    holds: Turn = Turn.NOTHING
    wants: Turn = Turn.NOTHING
    _sock: socket.socket | None = None
    _number: int = 0
    _came: bytearray = field(default_factory=bytearray)
    _since: float | None = None  # when it began to wait
    _waited: float = 0.0

    @property
    def waited(self) -> float:
        """Seconds that its graders have waited for turns, so far."""
        return self._waited + (time.monotonic() - self._since if self._since is not None else 0.0)

    def join(self) -> socket.socket:
        """The end that a new grader inherits; close it here once that runs. Whatever the last one held is free."""
        self._leave()
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._sock = ours
        asyncio.get_running_loop().add_reader(ours, self._heard, ours)
        return theirs

    @contextlib.asynccontextmanager
    async def reserved(self) -> AsyncIterator[None]:
        """The GPU is this seat's alone; what its grader asks for meanwhile is granted without waiting."""
        granted = asyncio.Event()
        keeper = self.keeper
        booking = Seat(keeper, wants=Turn.ALONE)
        keeper.bookings[booking] = self, granted.set
        keeper.seats.append(booking)
        keeper.hand_out()
        started = time.monotonic()
        try:
            await granted.wait()
            self._waited += time.monotonic() - started
            yield
        finally:
            keeper.seats.remove(booking)
            del keeper.bookings[booking]
            keeper.hand_out()

    def _heard(self, sock: socket.socket) -> None:
        try:
            data = sock.recv(4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._leave()
            return
        self._came += data
        while len(self._came) >= ASKED:
            wanted, self._number = self._came[0], self._came[1]
            del self._came[:ASKED]
            self._ask(Turn(wanted))

    def _ask(self, wanted: Turn) -> None:
        # from alone to shared nobody has to be waited for; any other wish gives up what was held
        keeps = wanted is Turn.SHARED and self.holds is Turn.ALONE
        self._settle(Turn.NOTHING, Turn.NOTHING)
        if keeps or (wanted is not Turn.NOTHING and self.keeper.reserved_for(self)):
            self.grant(wanted)
        else:
            self._settle(Turn.NOTHING, wanted)
        self.keeper.hand_out()

    def grant(self, turn: Turn) -> None:
        self._settle(turn, Turn.NOTHING)
        if self._sock is not None:
            with contextlib.suppress(OSError):  # its end has closed: the reader will say so
                self._sock.send(bytes((turn, self._number)))

    def _settle(self, holds: Turn, wants: Turn) -> None:
        self._waited = self.waited
        self.holds, self.wants = holds, wants
        self._since = time.monotonic() if wants is not Turn.NOTHING else None

    def _leave(self) -> None:
        """The grader is gone: its end is closed, or another takes its place."""
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock)
            self._sock.close()
            self._sock = None
        self._came.clear()
        self._settle(Turn.NOTHING, Turn.NOTHING)
        self.keeper.hand_out()


class TurnKeeper:
    """One GPU. Its graders share it, or one of them has it alone.

    Those who want to be alone are let through together, one after another, once the others have ended what they are at:
    the GPU is emptied once for all of them. Whoever asks to share meanwhile comes right after them, before anybody else
    may be alone: neither kind can keep the other waiting for more than one such round.
    """

    def __init__(self) -> None:
        self.seats: list[Seat] = []
        self.bookings: dict[Seat, tuple[Seat, Callable[[], None]]] = {}  # for whom, and whom to tell
        self._round: list[Seat] = []  # who is still to be alone in it
        self._begun = False  # the first of the round has been let through: nobody joins it any more

    def seat(self) -> Seat:
        self.seats.append(Seat(self))
        return self.seats[-1]

    def reserved_for(self, seat: Seat) -> bool:
        return any(booking.holds is Turn.ALONE and of is seat for booking, (of, _) in self.bookings.items())

    def hand_out(self) -> None:
        self._round = [seat for seat in self._round if seat.wants is Turn.ALONE and seat in self.seats]
        if any(seat.holds is Turn.ALONE for seat in self.seats):
            return
        if not self._round:
            self._begun = False
            for seat in self.seats:
                if seat.wants is Turn.SHARED:
                    seat.grant(Turn.SHARED)
        if not self._begun:
            self._round += [seat for seat in self.seats if seat.wants is Turn.ALONE and seat not in self._round]
        if self._round and all(seat.holds is Turn.NOTHING for seat in self.seats):
            self._begun = True
            first = self._round.pop(0)
            first.grant(Turn.ALONE)
            if first in self.bookings:
                seat, tell = self.bookings[first]
                if seat.wants is not Turn.NOTHING:
                    seat.grant(seat.wants)
                tell()

    def close(self) -> None:
        seats, self.seats = self.seats, []
        for seat in seats:
            seat._leave()
