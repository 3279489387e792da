from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tutor import batch
from tutor.grading import (
    CaseDone,
    DoctorReport,
    Event,
    Failed,
    Grader,
    GradeRequest,
    GraderLost,
    Stage,
    VerdictReady,
)

COMMAND = [sys.executable, str(REPOSITORY / "tests" / "fake_grader.py")]


def with_grader(action: Callable[[Grader], Awaitable[None]], command: list[str] = COMMAND) -> None:
    async def run() -> None:
        grader = Grader(command)
        try:
            await action(grader)
        finally:
            await grader.close()

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "vector_add.py"


async def heard(events: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in events]


def test_stages_and_cases_come_before_one_verdict(file: Path) -> None:
    file.write_text("# fake: wrong_answer")

    async def action(grader: Grader) -> None:
        events = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert [type(event) for event in events] == [Stage, Stage, CaseDone, CaseDone, CaseDone, VerdictReady]
        assert isinstance(events[-1], VerdictReady)
        assert events[-1].verdict["status"] == "wrong_answer"

    with_grader(action)


def test_the_process_stays_warm_between_grades(file: Path) -> None:
    file.write_text("fine")

    async def action(grader: Grader) -> None:
        ready = await grader.start()
        assert ready.backend == "interpreter"
        first = grader.pid
        for _ in range(3):
            await heard(grader.grade(GradeRequest("vector_add", file)))
        assert grader.pid == first

    with_grader(action)


def test_stray_lines_and_unknown_events_are_ignored(file: Path) -> None:
    file.write_text("# noise")

    async def action(grader: Grader) -> None:
        events = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert isinstance(events[-1], VerdictReady)

    with_grader(action)


def test_a_lost_process_is_told_and_replaced(file: Path) -> None:
    async def action(grader: Grader) -> None:
        file.write_text("# die")
        (*_, last) = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert isinstance(last, Failed)
        assert last.kind == "infrastructure"
        assert "last words" in last.message
        assert not grader.running
        file.write_text("fine")
        (*_, last) = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert isinstance(last, VerdictReady)

    with_grader(action)


def test_a_killed_process_names_the_signal(file: Path) -> None:
    file.write_text("# slow")

    async def action(grader: Grader) -> None:
        events = []
        async for event in grader.grade(GradeRequest("vector_add", file)):
            events.append(event)
            if len(events) == 2:
                assert grader.pid
                os.kill(grader.pid, 9)
        assert isinstance(events[-1], Failed)
        assert "SIGKILL" in events[-1].message

    with_grader(action)


def test_cancel_ends_the_grade_at_once_and_keeps_the_process(file: Path) -> None:
    file.write_text("# slow")

    async def action(grader: Grader) -> None:
        start = time.monotonic()
        events = []
        async for event in grader.grade(GradeRequest("vector_add", file)):
            events.append(event)
            await grader.cancel()
        assert isinstance(events[-1], Failed)
        assert events[-1].kind == "cancelled"
        assert time.monotonic() - start < 40
        assert grader.running

    with_grader(action)


def test_a_cancelled_task_cancels_its_grade(file: Path) -> None:
    file.write_text("# slow")

    async def action(grader: Grader) -> None:
        await grader.start()
        task = asyncio.create_task(heard(grader.grade(GradeRequest("vector_add", file))))
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task])
        file.write_text("fine")
        start = time.monotonic()
        (*_, last) = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert isinstance(last, VerdictReady)
        assert time.monotonic() - start < 40  # it did not wait for the slow one

    with_grader(action)


def test_two_requests_at_once_each_get_their_own_answer(file: Path) -> None:
    file.write_text("fine")

    async def action(grader: Grader) -> None:
        grades, report = await asyncio.gather(
            heard(grader.grade(GradeRequest("vector_add", file))), heard(grader.doctor())
        )
        assert isinstance(grades[-1], VerdictReady)
        assert [type(event) for event in report] == [DoctorReport]

    with_grader(action)


@pytest.mark.parametrize("manner", ["time.sleep(1000)", "sys.stdin.read()"], ids=["deaf", "polite"])
def test_closing_leaves_no_process_behind(tmp_path: Path, manner: str) -> None:
    pids = tmp_path / "pids"
    # A server with a child in a session of its own: one that is deaf, one that ends when asked and leaves the child.
    source = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
print('{{"event": "ready", "versions": {{}}, "backend": "interpreter", "device": "x"}}', flush=True)
{manner}
"""

    async def action(grader: Grader) -> None:
        await grader.start()

    with_grader(action, [sys.executable, "-c", source])
    until = time.monotonic() + 60
    while left := [pid for pid in pids.read_text().split() if runs(pid)]:
        assert time.monotonic() < until, left
        time.sleep(0.05)


def runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("command", [["/nowhere/at-all"], [sys.executable, "-c", "raise SystemExit('no torch')"]])
def test_a_grader_that_cannot_start_says_why(command: list[str], file: Path) -> None:
    async def action(grader: Grader) -> None:
        with pytest.raises(GraderLost, match="at-all|no torch"):
            await grader.start()
        (event,) = await heard(grader.grade(GradeRequest("vector_add", file)))
        assert isinstance(event, Failed)
        assert event.kind == "infrastructure"

    with_grader(action, command)


def test_a_batch_answers_in_order_on_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("TRITON_PREP_GRADER", " ".join(COMMAND))
    monkeypatch.setenv("FAKE_GRADER_LOG", str(log))
    files = [tmp_path / f"{number}.py" for number in range(6)]
    for number, file in enumerate(files):
        file.write_text(f"# fake: s{number}")

    def job(file: Path) -> batch.Job:
        return lambda grader: grader.grade(GradeRequest("vector_add", file))

    told: list[int] = []
    results = batch.run([job(file) for file in files], servers=2, on_result=lambda index, _: told.append(index))
    statuses = [event.verdict["status"] for event in results if isinstance(event, VerdictReady)]
    assert statuses == [f"s{number}" for number in range(6)]
    assert told == list(range(6))
    assert len({line.split()[0] for line in log.read_text().splitlines()}) == 2
