"""With two GPUs: tensors on the second one while the first is current. What fails only then is remarked beside a pass."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from grader import diagnose, elsewhere, state
from grader.case_runner import Outcome
from grader.catalog import find
from grader.drawings import Drawings
from grader.failures import RunnerGone
from grader.grade import Grade, Options, Submission, load_problem
from grader.memory_views import RunnerMemory
from grader.program_order import Passed
from grader.verdict import Verdict
from tests.grader.server import RealGrader

PASSED = Outcome("passed")
IN_TRITONS_WORDS = "ValueError: Pointer argument (at 0) cannot be accessed from Triton (cpu tensor?)"
REFUSED = Outcome(
    "runtime_error", "a tensor that lies in the CPU's memory", cause="tensor_on_the_cpu", line=None,
    whole=f"Traceback (most recent call last):\n  add_kernel[grid](…)\n{IN_TRITONS_WORDS}\n",
)  # fmt: skip


class Judge:
    """Stands for the real one: what a call gives on the second GPU, and with the first one current."""

    def __init__(self, **outcomes: Outcome | RunnerGone) -> None:
        self.outcomes, self.asked = outcomes, list[str]()

    @contextmanager
    def runner(self, grade: Grade, mode: str, drawn: Any) -> Iterator[Judge]:
        assert mode == "cuda" and len(drawn) == 1
        yield self

    def run(self, values: Any, elsewhere: str) -> Outcome:
        self.asked.append(elsewhere)
        given = self.outcomes[elsewhere.replace(" ", "_")]
        if isinstance(given, RunnerGone):
            raise given
        return given


@pytest.fixture
def grade(monkeypatch: pytest.MonkeyPatch) -> Grade:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    files = find("vector_add")
    problem = load_problem(files)
    submission = Submission(files, "vector_add.py", files.solution.read_bytes())
    verdict = Verdict("vector_add", problem.title, "vector_add.py", "", 0, "cuda", "no GPU", {}, status="passed")
    return Grade(submission, problem, Options(), "cuda", print, bool, verdict, Drawings())


def looked_at(grade: Grade, judge: Any) -> dict[str, Any]:
    case = grade.problem.cases[0]
    state.another_device(judge, grade, [Passed(case, grade.values(case).size, PASSED)])
    diagnose.finish(grade)
    return json.loads(json.dumps(grade.verdict.as_dict()))


def line_of_launch(grade: Grade) -> int:
    lines = grade.submission.source.decode().splitlines()
    return next(n for n, line in enumerate(lines, 1) if "add_kernel[grid](" in line)


def test_what_fails_only_while_another_device_is_current_is_named_beside_the_pass(grade: Grade) -> None:
    verdict = looked_at(grade, Judge(second_GPU=PASSED, device=REFUSED))
    found = verdict["diagnosis"]
    assert (verdict["status"], found["cause"], verdict["notes"]) == ("passed", "wrong_device_current", [])
    assert (found["concept"], found["see"]) == ("launch", "m02.lesson.launch")
    assert (found["line"], found["case"]) == (line_of_launch(grade), grade.problem.cases[0].name)
    assert f"the call fails (runtime error): {IN_TRITONS_WORDS}. " in found["message"]
    assert "`with torch.cuda.device(x.device):`" in found["message"]
    assert "lies in the CPU's memory" not in found["message"]


def test_the_line_is_the_one_that_failed_where_the_failure_has_one(grade: Grade) -> None:
    failed = Outcome("crashed", "an illegal memory access", line=7)
    found = looked_at(grade, Judge(second_GPU=PASSED, device=failed))["diagnosis"]
    assert found["line"] == 7 and "(crashed): an illegal memory access. " in found["message"]


def test_a_call_that_finds_its_device_gets_no_remark(grade: Grade) -> None:
    judge = Judge(second_GPU=PASSED, device=PASSED)
    verdict = looked_at(grade, judge)
    assert (verdict["diagnosis"], verdict["notes"]) == (None, [])
    assert judge.asked == ["second GPU", "device"]


@pytest.mark.parametrize("there", [Outcome("runtime_error", "out of memory"), RunnerGone("crashed", "out of memory")])
def test_where_the_second_gpu_cannot_be_used_the_current_device_is_not_blamed(grade: Grade, there: Any) -> None:
    judge = Judge(second_GPU=there)
    verdict = looked_at(grade, judge)
    assert (verdict["status"], verdict["diagnosis"]) == ("passed", None)
    assert "on cuda:1 the call fails: out of memory" in verdict["notes"][0]
    assert judge.asked == ["second GPU"]


def test_what_fails_later_is_the_diagnosis(grade: Grade) -> None:
    case = grade.problem.cases[0]
    state.another_device(Judge(second_GPU=PASSED, device=REFUSED), grade, [Passed(case, 1, PASSED)])  # type: ignore[arg-type]
    grade.verdict.fail("not_triton", "the kernels alone give something else", "kernels_alone_are_wrong")
    diagnose.finish(grade)
    assert grade.verdict.diagnosis is not None and grade.verdict.diagnosis["cause"] == "kernels_alone_are_wrong"


def test_no_diagnosis_outlives_a_pass_that_was_taken_back(grade: Grade) -> None:
    case = grade.problem.cases[0]
    state.another_device(Judge(second_GPU=PASSED, device=REFUSED), grade, [Passed(case, 1, PASSED)])  # type: ignore[arg-type]
    grade.verdict.status = "infrastructure_error"
    diagnose.finish(grade)
    assert grade.verdict.diagnosis is None


def test_with_one_gpu_nothing_is_tried(grade: Grade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    judge = Judge()
    assert looked_at(grade, judge)["diagnosis"] is None and not judge.asked


# -- in the runner --------------------------------------------------------------------------------------------------


def test_a_memory_that_lies_elsewhere_for_a_while_brings_everything_back() -> None:
    memory = RunnerMemory("cpu", None)
    memory.arena = torch.zeros(64, dtype=torch.uint8)
    place = {"dtype": "float32", "shape": [2], "stride": [2], "offset": 16}
    before = memory.argument(place)
    memory.tensor(place).fill_(1.0)
    with memory.lying_on(torch.device("cpu")):
        there = memory.argument(place)
        assert there.tolist() == [1.0, 1.0] and there.data_ptr() != before.data_ptr()
        there.fill_(2.0)
        assert memory.store(torch.full((2,), 3.0), place | {"stride": [1], "offset": 32})
        memory.arena[63] = 7  # a guard band that a kernel overran
        assert before.tolist() == [1.0, 1.0]
    assert memory.argument(place) is before and before.tolist() == [2.0, 2.0]
    assert memory.tensor(place | {"stride": [1], "offset": 32}).tolist() == [3.0, 3.0]
    assert int(memory.arena[63]) == 7


def test_the_first_gpu_stays_current_unless_the_second_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    @contextmanager
    def device(chosen: torch.device) -> Iterator[None]:
        seen.append(("current", chosen.index))
        yield
        seen.append("as before")

    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda chosen: seen.append(("waited for", chosen.index)))
    for what in ("device", "second GPU"):
        with elsewhere.current(what):
            seen.append("call")
    assert seen == ["call", ("waited for", 1), ("current", 1), "call", "as before", ("waited for", 1)]


# -- where there are two GPUs ---------------------------------------------------------------------------------------

LAUNCH = "    add_kernel[grid](x, y, out, n, BLOCK=1024)\n"


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize(
    ("guard", "cause"),
    [("", "wrong_device_current"), ("torch.cuda.device_of(x)", None), ("torch.cuda.device(x.device)", None)],
)
def test_on_two_gpus_a_launcher_without_a_guard_is_told_of_it(
    grader: RealGrader, tmp_path: Any, guard: str, cause: str | None
) -> None:
    source = find("vector_add").solution.read_text()
    assert LAUNCH in source
    file = tmp_path / "vector_add.py"
    file.write_text(source.replace(LAUNCH, f"    with {guard}:\n    {LAUNCH}") if guard else source)
    event, _ = grader.ask("grade", exercise="vector_add", file=str(file), backend="cuda", time=False)
    verdict = event["verdict"]
    assert (verdict["status"], (verdict["diagnosis"] or {}).get("cause")) == ("passed", cause), verdict
