"""Turns on a GPU that graders share, taken by real processes. The keeper runs here, as it does in the command."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from grader.gpu_turns import VARIABLE, Turn, Turns
from tests.conftest import REPOSITORY
from tutor.grading import Event, GradeRequest, Stage
from tutor.homework.turns import Seat, SharingGrader, TurnKeeper

LIMIT = 60.0


class Taker:
    """A process of turn_taker.py in a seat."""

    def __init__(self, seat: Seat, process: asyncio.subprocess.Process) -> None:
        self.seat, self.process = seat, process

    @classmethod
    async def start(cls, seat: Seat) -> Taker:
        with seat.join() as end:
            process = await asyncio.create_subprocess_exec(
                sys.executable, str(Path(__file__).with_name("turn_taker.py")),
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, pass_fds=(end.fileno(),),
                env={**os.environ, VARIABLE: str(end.fileno()), "PYTHONPATH": str(REPOSITORY)},
            )  # fmt: skip
        return cls(seat, process)

    def tell(self, word: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())

    async def says(self) -> str:
        assert self.process.stdout is not None
        return (await asyncio.wait_for(self.process.stdout.readline(), LIMIT)).decode().strip()

    async def does(self, word: str) -> str:
        self.tell(word)
        return await self.says()

    async def waits(self, word: str) -> None:
        """Tells it, and returns once the keeper has heard its wish and not granted it."""
        self.tell(word)
        wish = Turn.ALONE if word == "alone" else Turn.SHARED
        await until(lambda: self.seat.wants is wish)

    async def end(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT):
        while not condition():
            await asyncio.sleep(0.01)


def with_takers(count: int, play: Callable[..., Awaitable[None]]) -> None:
    """`play(keeper, *takers)` with so many processes on one GPU."""

    async def run() -> None:
        keeper = TurnKeeper()
        takers = [await Taker.start(keeper.seat()) for _ in range(count)]
        try:
            await play(keeper, *takers)
        finally:
            for taker in takers:
                await taker.end()
            keeper.close()

    asyncio.run(run())


def test_nobody_else_has_a_turn_while_one_process_is_alone_and_all_get_through() -> None:
    async def play(keeper: TurnKeeper, *takers: Taker) -> None:
        for taker in takers:
            taker.tell("rounds 12")
        held: list[tuple[float, float, str, int]] = []
        for number, taker in enumerate(takers):
            while (line := (await taker.says()).split())[0] != "done":
                held.append((float(line[1]), float(line[2]), line[0], number))
            assert float(line[1]) > 0  # each has waited, and knows it
            assert taker.seat.waited > 0
        assert len(held) == 4 * (12 + 12 + 4)
        for one in held:
            for other in held:
                if "ALONE" in (one[2], other[2]) and one[3] != other[3]:
                    assert one[1] <= other[0] or other[1] <= one[0], (one, other)

    with_takers(4, play)


def test_several_share_at_once() -> None:
    async def play(keeper: TurnKeeper, *takers: Taker) -> None:
        for taker in takers:
            assert await taker.does("share") == "holds SHARED"
        assert all(seat.holds is Turn.SHARED for seat in keeper.seats)

    with_takers(3, play)


def test_who_shares_and_wants_to_be_alone_gives_up_first_so_that_two_such_get_on() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker) -> None:
        for taker in (one, other):
            assert await taker.does("share") == "holds SHARED"
        await one.waits("alone")
        assert one.seat.holds is Turn.NOTHING
        other.tell("alone")
        assert await one.says() == "holds ALONE"
        assert other.seat.wants is Turn.ALONE
        assert await one.does("end") == "ended"
        assert one.seat.holds is Turn.SHARED  # back at once
        assert await one.does("end") == "ended"
        assert await other.says() == "holds ALONE"

    with_takers(2, play)


@pytest.mark.parametrize("held", ["alone", "share"])
def test_a_holder_that_is_killed_gives_its_turn_back(held: str) -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker) -> None:
        await one.does(held)
        await other.waits("alone")
        one.process.send_signal(signal.SIGKILL)
        assert await other.says() == "holds ALONE"

    with_takers(2, play)


def test_one_that_is_killed_while_it_waits_keeps_nobody_waiting() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker) -> None:
        await one.does("share")
        await other.waits("alone")
        other.process.send_signal(signal.SIGKILL)
        await until(lambda: other.seat.wants is Turn.NOTHING)
        again = await Taker.start(other.seat)  # the grader that is started in its place
        assert await again.does("share") == "holds SHARED"
        await again.end()

    with_takers(2, play)


def test_who_wants_to_be_alone_is_not_kept_waiting_by_those_who_come_to_share_later() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker, third: Taker) -> None:
        await one.does("share")
        await third.does("share")
        await other.waits("alone")
        assert await one.does("end") == "ended"
        await one.waits("share")  # third still shares: with nobody waiting this would be granted
        assert await third.does("end") == "ended"
        assert await other.says() == "holds ALONE"
        assert one.seat.wants is Turn.SHARED
        assert await other.does("end") == "ended"
        assert await one.says() == "holds SHARED"

    with_takers(3, play)


def test_who_wants_to_share_is_not_kept_waiting_by_those_who_are_alone_again_and_again() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker, third: Taker) -> None:
        await one.does("alone")
        await third.waits("share")
        await other.waits("alone")
        assert await one.does("end") == "ended"
        assert await third.says() == "holds SHARED"
        await one.waits("alone")
        assert await third.does("end") == "ended"
        await third.waits("share")  # both others are let through before it, together, and no more than once
        first, second = (one, other) if one.seat.holds is Turn.ALONE else (other, one)
        assert await first.says() == "holds ALONE"
        await first.does("end")
        await first.waits("alone")
        assert await second.says() == "holds ALONE"
        await second.does("end")
        assert await third.says() == "holds SHARED"

    with_takers(3, play)


def test_who_asks_to_be_alone_after_a_round_of_such_has_begun_comes_after_those_who_want_to_share() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker, third: Taker, fourth: Taker) -> None:
        await one.does("share")
        await third.does("share")
        await one.waits("alone")
        await other.waits("alone")
        assert await third.does("end") == "ended"
        assert await one.says() == "holds ALONE"
        await third.waits("share")
        await one.does("end")  # it shares again, and keeps the round waiting
        await fourth.waits("alone")
        await one.does("end")
        assert await other.says() == "holds ALONE"
        await other.does("end")
        assert await third.says() == "holds SHARED"
        assert fourth.seat.wants is Turn.ALONE

    with_takers(4, play)


def test_a_wait_that_is_cancelled_leaves_no_wish_behind() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker, third: Taker) -> None:
        await one.does("share")
        await other.waits("alone")
        other.tell("cancel")
        assert await other.says() == "cancelled"
        assert await third.does("share") == "holds SHARED"
        assert await other.does("share") == "holds SHARED"
        await other.waits("alone")  # inside: it does not take an old grant for this one
        await third.does("end")
        await one.does("end")
        assert await other.says() == "holds ALONE"
        before = other.seat.waited
        assert before > 0
        await asyncio.sleep(0.05)
        assert other.seat.waited == before  # it waits no longer

    with_takers(3, play)


def test_a_reserved_gpu_is_used_by_its_graders_alone_and_they_wait_for_nothing() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker) -> None:
        await other.does("share")
        booking = one.seat.reserved()
        entering = asyncio.create_task(booking.__aenter__())
        await until(lambda: len(keeper.bookings) == 1)
        assert await other.does("end") == "ended"
        await asyncio.wait_for(entering, LIMIT)
        await other.waits("share")
        for word in ("share", "end", "alone", "end"):
            await one.does(word)
            assert other.seat.wants is Turn.SHARED
        await booking.__aexit__(None, None, None)
        assert await other.says() == "holds SHARED"

    with_takers(2, play)


def test_with_nobody_to_hand_out_turns_the_wait_ends() -> None:
    async def play(keeper: TurnKeeper, one: Taker, other: Taker) -> None:
        await one.does("share")
        await other.waits("alone")
        keeper.close()
        assert await other.says() == "lost"

    with_takers(2, play)


def test_a_grader_by_itself_never_waits_and_blocks_may_be_nested() -> None:
    turns = Turns()
    with turns.sharing():
        with turns.alone():
            with turns.sharing():
                assert turns.holds is Turn.ALONE
            assert turns.holds is Turn.ALONE
        assert turns.holds is Turn.SHARED
    assert (turns.holds, turns.waited, turns.shared_gpu) == (Turn.NOTHING, 0.0, False)


def test_a_second_thread_is_told_that_turns_are_between_processes() -> None:
    turns, said = Turns(), []

    def enter() -> None:
        try:
            with turns.alone():
                pass
        except RuntimeError as error:
            said.append(str(error))

    with turns.sharing():
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(LIMIT)
    assert said == ["another thread of this process has its turn on the GPU"]


HOSTILE = """
import contextlib, ctypes, gc, os, socket, stat

libc = ctypes.CDLL(None)
OWN = {o.fileno() for o in gc.get_objects() if isinstance(o, socket.socket)}  # to the judge: closing it ends the grade


def take(fd):
    with contextlib.suppress(OSError):
        if fd > 2 and fd not in OWN and stat.S_ISSOCK(os.fstat(fd).st_mode):
            os.write(fd, bytes((2, 200)))  # to be alone


for fd in range(3, 256):
    take(fd)
pids = {os.getppid()}
with contextlib.suppress(OSError):
    pids |= {int(name) for name in os.listdir("/proc") if name.isdigit()}
for pid in pids:
    handle = libc.syscall(434, pid, 0)  # pidfd_open
    for number in range(3, 64):
        with contextlib.suppress(OSError):
            take(os.open(f"/proc/{pid}/fd/{number}", os.O_RDWR | os.O_NONBLOCK))
        if handle >= 0 and (stolen := libc.syscall(438, handle, number, 0)) >= 0:  # pidfd_getfd
            take(stolen)
            os.close(stolen)
    if handle >= 0:
        os.close(handle)


def add(x, y):
    while True:
        pass
"""


async def _until_it_runs(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    async for event in events:
        yield event
        if isinstance(event, Stage) and event.name == "run":
            return


def test_a_submission_can_neither_take_a_turn_nor_keep_others_from_theirs(tmp_path: Path) -> None:
    """It has tried whatever it can reach when its function is called, which then does not end."""
    file = tmp_path / "vector_add.py"
    file.write_text(HOSTILE)

    async def run() -> None:
        keeper = TurnKeeper()
        seat, mine = keeper.seat(), keeper.seat()
        grader = SharingGrader({}, seat)
        taker = await Taker.start(mine)
        try:
            events = grader.grade(GradeRequest("vector_add", file, backend="interpreter"))
            seen = [event async for event in _until_it_runs(events)]
            assert isinstance(seen[-1], Stage), seen
            assert await taker.does("alone") == "holds ALONE"
            assert (seat.holds, seat.wants) == (Turn.NOTHING, Turn.NOTHING)
        finally:
            await grader.close()
            await taker.end()
            keeper.close()

    asyncio.run(run())
