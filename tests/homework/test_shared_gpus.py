"""Several graders on each of several GPUs, with a stand-in grader that takes its turns as the graded file says."""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from grader.cores import VARIABLE as CORES_VARIABLE
from tests.conftest import REPOSITORY
from tests.homework.test_turns import until
from tutor.grading import Grader
from tutor.homework.gpus import graders_each
from tutor.homework.places import Local, Slot, _done_within
from tutor.homework.submissions import Content
from tutor.homework.work import Graded, Work

LIMIT = 60.0
Submit = Callable[..., None]


@pytest.fixture
def graded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Graded]]:
    """Grades texts by name on `workers` graders a GPU, and `beside` it runs what is given the place."""
    script = Path(__file__).with_name("sharing_grader.py")
    monkeypatch.setenv("TRITON_PREP_GRADER", f"{sys.executable} {script}")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))

    def run(
        workers: int,
        devices: tuple[str, ...],
        texts: dict[str, str],
        beside: Callable[[Local], Coroutine[Any, Any, None]] | None = None,
    ) -> dict[str, Graded]:
        async def go() -> dict[str, Graded]:
            place = Local(workers, devices)
            try:
                await place.facts()
                for name, text in texts.items():
                    place.submit(_work(tmp_path, name, text))
                watching = asyncio.create_task(beside(place)) if beside else None
                ended = {one.key: one async for one in place.collect()}
                if watching is not None:
                    await watching
                return ended
            finally:
                await place.close()

        return asyncio.run(asyncio.wait_for(go(), 3 * LIMIT))

    return run


def _work(folder: Path, name: str, text: str) -> Work:
    path = folder / f"{name}.py"
    path.write_text(text)
    options = {"backend": "auto", "target": "sm_90", "time": None, "seed": 0, "verified": True, "call_limit": None}
    return Work(name, "vector_add", Content(name, f"{name}.py", path), options, LIMIT)


def statuses(ended: dict[str, Graded]) -> dict[str, str | None]:
    return {name: one.verdict["status"] if one.verdict else None for name, one in ended.items()}


def test_each_gpu_has_its_graders_and_little_work_is_spread_over_all_gpus() -> None:
    place = Local(3, ("0", "GPU-abc"))
    assert [slot.gpu for slot in place._slots] == ["0", "GPU-abc"] * 3
    assert len({id(slot.seat) for slot in place._slots}) == 6
    assert all(slot.seat is not None and slot.seat.keeper is place._keepers[slot.gpu] for slot in place._slots)


def test_each_grader_may_count_on_its_share_of_the_cores(graded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 9)
    ended = graded(2, ("3", "5"), {"one": f"verdict['notes'] = os.environ[{CORES_VARIABLE!r}]"})
    assert ended["one"].verdict["notes"] == "2"


def test_who_is_alone_on_one_gpu_leaves_the_others_theirs(graded: Any) -> None:
    text = """
with turns.alone():
    (file.parent / f"alone-on-{gpu}").touch()
    until(lambda: len(list(file.parent.glob("alone-on-*"))) == 2)
"""
    ended = graded(2, ("3", "5"), {"one": text, "two": text})
    assert statuses(ended) == {"one": "passed", "two": "passed"}
    assert {one.gpu for one in ended.values()} == {"3", "5"}


def test_graders_of_one_gpu_grade_at_once_and_measure_one_by_one(graded: Any, tmp_path: Path) -> None:
    text = """
with turns.sharing():
    (file.parent / f"shares-{os.getpid()}").touch()
    until(lambda: len(list(file.parent.glob("shares-*"))) == 2)
with turns.alone():
    began = time.monotonic()
    time.sleep(0.01)
    verdict["notes"] = [began, time.monotonic()]
"""
    ended = graded(2, ("3",), {str(number): text for number in range(6)})
    assert set(statuses(ended).values()) == {"passed"}
    assert len(list(tmp_path.glob("shares-*"))) == 2
    measured = sorted(one.verdict["notes"] for one in ended.values() if one.verdict)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(measured))
    assert sum(one.waited for one in ended.values()) > 0


def test_a_grader_that_dies_alone_on_its_gpu_leaves_the_others_to_their_work(graded: Any, tmp_path: Path) -> None:
    deadly = "with turns.alone():\n    (file.parent / f'died-{time.monotonic()}').touch()\n    os._exit(9)\n"
    fine = "with turns.sharing(): pass\nwith turns.alone(): pass\n"
    ended = graded(2, ("3", "5"), {"deadly": deadly, **{str(number): fine for number in range(8)}})
    assert statuses(ended) == {"deadly": None, **{str(number): "passed" for number in range(8)}}
    assert "exit code 9" in (ended["deadly"].fault or "")
    assert len(list(tmp_path.glob("died-*"))) == 2


SHORT = """
tries = file.with_suffix(f".try-{len(list(file.parent.glob('*.try-*')))}")
tries.touch()
if tries.suffix == ".try-0":
    verdict["status"] = "runtime_error"
    verdict["diagnosis"] = {"message": "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"}
else:
    until((file.parent / "seen").exists)
    with turns.alone():
        pass
"""


def test_who_ran_out_of_memory_beside_others_is_graded_again_with_the_gpu_to_itself(
    graded: Any, tmp_path: Path
) -> None:
    async def beside(place: Local) -> None:
        keeper = place._keepers["3"]
        await until(lambda: any(keeper.reserved_for(slot.seat) for slot in place._slots if slot.seat is not None))
        (tmp_path / "seen").touch()

    ended = graded(2, ("3",), {"short": SHORT}, beside)
    assert statuses(ended) == {"short": "passed"}


def test_a_grader_by_itself_on_its_gpu_takes_no_turns_and_is_not_asked_again(graded: Any, tmp_path: Path) -> None:
    ended = graded(1, ("3",), {"short": SHORT, "free": "assert not turns.shared_gpu"})
    assert statuses(ended) == {"short": "runtime_error", "free": "passed"}


def test_no_more_graders_are_started_than_there_is_work(graded: Any) -> None:
    started: list[int] = []

    async def beside(place: Local) -> None:
        await until(lambda: place._open == 0)
        started.append(sum(slot.grader.pid is not None for slot in place._slots))

    graded(4, ("3", "5"), {"one": "", "two": ""}, beside)
    assert started == [2]


def test_time_spent_waiting_for_a_turn_does_not_count_against_the_limit_of_a_grade() -> None:
    class Waiting(Slot):
        """As if it had waited ever since."""

        @property
        def waited(self) -> float:
            return time.monotonic()

    async def run() -> tuple[bool, bool]:
        task, endless = asyncio.create_task(asyncio.sleep(0.3)), asyncio.create_task(asyncio.sleep(LIMIT))
        try:
            return await _done_within(0.1, task, Waiting(Grader())), await _done_within(0.1, endless, Slot(Grader()))
        finally:
            endless.cancel()

    assert asyncio.run(run()) == (True, False)


@pytest.mark.parametrize(
    ("count", "cores", "memory_mb", "each"),
    [
        (1, 16, [143771], 4),
        (2, 32, [143771, 143771], 4),
        (2, 8, [143771, 143771], 2),
        (1, 2, [143771], 1),
        (8, 4, [143771] * 8, 1),
        (1, 64, [16380], 1),
        (1, 64, [24564, 81559], 2),
        (1, 64, [], 1),
    ],
)
def test_a_gpu_has_as_many_graders_as_cores_and_its_memory_allow(
    count: int, cores: int, memory_mb: list[int], each: int
) -> None:
    assert graders_each(count, cores, memory_mb) == each
