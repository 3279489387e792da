from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from tests.conftest import FAKE_GRADER
from tutor.homework.gpus import gpus
from tutor.homework.places import Local
from tutor.homework.submissions import Content
from tutor.homework.work import CannotGrade, Facts, Work


@pytest.mark.parametrize(("given", "found"), [("", ()), ("-1", ()), ("2", ("2",)), ("0, GPU-abc", ("0", "GPU-abc"))])
def test_the_gpus_are_those_that_the_environment_leaves(
    given: str, found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", given)
    assert gpus() == found


def test_each_gpu_has_a_grader_of_its_own_that_sees_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the stand-in says which devices it was given, in place of a device's name."""
    script = tmp_path / "grader.py"
    script.write_text(
        "import json, os\n"
        "v = {'torch': '', 'triton': '', 'python': ''}\n"
        "print(json.dumps({'event': 'ready', 'versions': v, 'backend': 'cuda', 'device': os.environ['CUDA_VISIBLE_DEVICES']}))\n"
        "input()\n"
    )
    monkeypatch.setenv("TRITON_PREP_GRADER", f"{shlex.split(FAKE_GRADER)[0]} {script}")

    async def seen() -> list[str]:
        place = Local(1, ("3", "5"))
        try:
            return [(await slot.grader.start()).device for slot in place._slots]
        finally:
            await place.close()

    assert asyncio.run(seen()) == ["3", "5"]


def work(tmp_path: Path, name: str, text: str) -> Work:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    options = {"backend": "auto", "target": "sm_90", "time": False, "seed": 0, "verified": False, "call_limit": None}
    return Work(name, "vector_add", Content(name, f"{name}.py", path), options, 60.0)


def test_work_may_be_added_while_results_come_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PREP_GRADER", FAKE_GRADER)

    async def run() -> tuple[Facts, list[tuple[str, str]]]:
        place = Local(2)
        try:
            facts = await place.facts()
            place.submit(work(tmp_path, "one", "# fake: timeout"))
            ended = []
            async for graded in place.collect():
                assert graded.verdict is not None
                ended.append((graded.key, graded.verdict["status"]))
                if graded.key == "one":
                    place.submit(work(tmp_path, "two", "# fine"))
            return facts, ended
        finally:
            await place.close()

    facts, ended = asyncio.run(run())
    assert facts.backend == "interpreter"
    assert ended == [("one", "timeout"), ("two", "passed")]


def test_a_request_that_the_grader_does_not_take_ends_the_run_and_is_nobodys_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_PREP_GRADER", FAKE_GRADER)

    async def run() -> None:
        place = Local(1)
        try:
            gone = work(tmp_path, "one", "# fine")
            gone.content.path.unlink()
            place.submit(gone)
            async for _ in place.collect():
                pass
        finally:
            await place.close()

    with pytest.raises(CannotGrade, match="is not there"):
        asyncio.run(run())


def test_no_grader_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PREP_GRADER", FAKE_GRADER)
    monkeypatch.setenv("FAKE_GRADER_SILENT", "1")
    with pytest.raises(CannotGrade, match="no module named torch"):
        asyncio.run(Local(1).facts())
