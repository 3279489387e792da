"""What the judge makes of answers that a hostile runner could send."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from grader.case_runner import Buffers, CaseRunner
from grader.catalog import find
from grader.expectation import draw
from grader.grade import load_problem


class Answering:
    """A runner that writes the right answer, or not, and says what it is told to say."""

    def __init__(self, reply: dict[str, Any], write: Any = None) -> None:
        self.reply, self.write = reply, write

    def ask(self, message: dict[str, Any], timeout: float) -> dict[str, Any]:
        if self.write is not None:
            self.write(message)
        return self.reply


@pytest.fixture
def case():
    problem = load_problem(find("vector_add"))
    values = draw(problem, problem.cases[2], 0)
    buffers = Buffers("cpu", [values])
    yield problem, values, buffers
    buffers.close()


RESULT = {"event": "result", "outputs": [{"shape": [1000], "dtype": "float32", "device": "cpu", "copied": True}]}


def test_a_claim_to_have_written_is_not_believed(case):
    problem, values, buffers = case
    outcome = CaseRunner(problem, Answering(RESULT), buffers, 1).run(values)  # type: ignore[arg-type]
    assert outcome.status == "not_written"


def test_what_lies_in_the_judges_memory_is_what_counts(case):
    problem, values, buffers = case

    def write(message: dict[str, Any]) -> None:
        offset = message["outputs"][0]["offset"]
        buffers.arena[offset : offset + 4000].view(torch.float32).copy_(values.expected[0].native)

    outcome = CaseRunner(problem, Answering(RESULT, write), buffers, 1).run(values)  # type: ignore[arg-type]
    assert outcome.status == "passed"


def test_a_store_beside_an_argument_is_out_of_bounds(case):
    problem, values, buffers = case

    def write(message: dict[str, Any]) -> None:
        buffers.arena[message["args"][1]["tensor"]["offset"] + 4000] = 0

    outcome = CaseRunner(problem, Answering(RESULT, write), buffers, 1).run(values)  # type: ignore[arg-type]
    assert outcome.status == "out_of_bounds"


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"event": "result"},
        {"event": "result", "outputs": 3},
        {"event": "result", "outputs": [{"shape": None, "dtype": 1}]},
        {**RESULT, "traffic": ["many", None]},
        {**RESULT, "seconds": []},
        {"event": "error", "program": 7},
    ],
)
def test_nonsense_never_passes(case, reply):
    problem, values, buffers = case
    outcome = CaseRunner(problem, Answering(reply), buffers, 1).run(values)  # type: ignore[arg-type]
    assert outcome.status in ("crashed", "wrong_shape", "not_written")
