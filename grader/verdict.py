"""The verdict under construction and as JSON, schema 1. Sections that do not apply are null, never invented."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from grader.case_runner import Outcome
from grader.causes import Diagnosis
from grader.expectation import Values, work_of
from grader.problem import Case, Problem


@dataclass(frozen=True)
class Failure:
    """A case that failed, with what was drawn and what came back."""

    case: Case
    values: Values
    outcome: Outcome


@dataclass
class Verdict:
    exercise: str
    title: str
    file: str
    sha256: str
    seed: int
    backend: str
    device: str
    versions: dict[str, str]
    status: str = "infrastructure_error"
    verified: bool = False
    sandbox: dict[str, str] = field(default_factory=dict)  # what confined the runner, layer by layer
    stages: list[dict[str, Any]] = field(default_factory=list)
    cases: list[dict[str, Any]] = field(default_factory=list)
    diagnosis: dict[str, Any] | None = None
    compile: list[dict[str, Any]] | None = None
    traffic: dict[str, Any] | None = None
    timing: dict[str, Any] | None = None
    estimate: dict[str, Any] | None = None  # modelled, where nothing can be measured
    notes: list[str] = field(default_factory=list)
    output: dict[str, Any] | None = None
    # for the diagnosis, not in the JSON
    failure: Failure | None = None
    refused: tuple[Case, Outcome] | None = None  # what the offline compiler refused
    out_of_bounds: tuple[Case, Values, Outcome] | None = None  # seen by the interpreter beside a GPU run
    tried_beside: list[Failure] = field(default_factory=list)  # and the other cases, there
    smallest_beside: Failure | None = None
    unordered: tuple[Case, Values, Outcome] | None = None  # a race that the interpreter saw beside a GPU run
    filler_failure: tuple[Case, Values, Outcome] | None = None  # a masked-off lane without `other` reached the output
    undefined_filler: bool = False
    tried: list[Failure] = field(default_factory=list)  # the other cases, run to tell mistakes apart; some passed
    smallest: Failure | None = None  # the smallest case that failed like `failure`
    remark: tuple[Case, Diagnosis] | None = None  # what a pass does not cover: told if it stays a pass
    loops: list[dict[str, Any]] | None = None  # of the compiled kernels: line and carried names, as far as seen
    _traffic_size: int = -1

    def fail(self, status: str, message: str, cause: str | None, line: int | None = None, whole: str = "") -> None:
        """A failure outside the cases."""
        self.status = status
        self.diagnosis = {"cause": cause, "message": message, "line": line, "concept": None, "see": None}
        if whole:
            self.diagnosis["whole"] = whole

    def first_failure(self, case: Case, values: Values, outcome: Outcome) -> None:
        self.status = outcome.status
        self.failure = Failure(case, values, outcome)
        self.tried, self.smallest = [], None

    def add_traffic(self, outcome: Outcome, values: Values, problem: Problem) -> None:
        """Keep the counted bytes of the largest case, beside the least the task needs."""
        if (
            outcome.traffic is None
            or values.size <= self._traffic_size
            or outcome.status not in ("passed", "wrong_answer")
        ):
            return
        least = work_of(problem, values.args).bytes
        loaded, stored = outcome.traffic
        self._traffic_size = values.size
        self.traffic = {
            "loaded_bytes": loaded,
            "stored_bytes": stored,
            "minimum_bytes": least,
            "ratio": round((loaded + stored) / least, 3) if least else None,
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "exercise": self.exercise,
            "title": self.title,
            "file": self.file,
            "sha256": self.sha256,
            "seed": self.seed,
            "backend": self.backend,
            "verified": self.verified,
            "sandbox": self.sandbox,
            "device": self.device,
            "versions": self.versions,
            "status": self.status,
            "stages": self.stages,
            "cases": self.cases,
            "diagnosis": self.diagnosis,
            "compile": self.compile,
            "traffic": self.traffic,
            "timing": self.timing,
            "estimate": self.estimate,
            "notes": self.notes,
            "output": self.output,
        }


def case_row(case: Case, outcome: Outcome) -> dict[str, Any]:
    comparison = outcome.comparison
    finite = comparison is not None and comparison.max_error == comparison.max_error
    return {
        "name": case.name,
        "status": outcome.status,
        "max_error": _number(comparison.max_error) if comparison and finite else None,
        "tolerance": _number(comparison.tolerance) if comparison else None,
        "first_bad_index": list(comparison.first_bad_index)
        if comparison and comparison.first_bad_index
        else _index(outcome),
        "program_id": list(outcome.program_id) if outcome.program_id else None,
        "message": outcome.message,
        "seconds": round(outcome.seconds, 4) if outcome.seconds is not None else None,
    }


def _index(outcome: Outcome) -> list[int] | None:
    return [outcome.index] if outcome.index is not None else None


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if torch.isfinite(torch.tensor(value)) else None
