"""One grade under way: the submission, the options, the problem, the drawings made so far, the verdict as it grows."""

from __future__ import annotations

import importlib.util
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import torch

from grader.catalog import ExerciseFiles
from grader.drawings import Drawings
from grader.expectation import Values
from grader.problem import Case, Problem
from grader.verdict import Verdict

IMPORT_LIMIT = 30.0  # seconds
CALL_LIMIT = {"interpreter": 20.0, "cuda": 60.0, "offline": 60.0}
MEMORY_MB = {"interpreter": 4096, "offline": 4096, "cuda": 16384}
Emit = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Submission:
    """One file to grade."""

    exercise: ExerciseFiles
    file: str  # as the learner named it
    source: bytes


@dataclass
class Options:
    backend: str = "auto"
    target: str = "sm_90"
    time: bool | None = None
    sanitize: bool = False
    seed: int = 0
    keep_going: bool = False
    call_limit: float | None = None  # seconds; None: the backend's
    verified: bool = False  # replay what the learner's file launches, outside its process


@dataclass
class Grade:
    """One grade under way."""

    submission: Submission
    problem: Problem
    options: Options
    backend: str
    emit: Emit
    cancelled: Callable[[], bool]
    verdict: Verdict
    drawings: Drawings
    cache: str | None = None  # a folder for what Triton compiles in this grade, in whichever process
    over: threading.Event = field(default_factory=threading.Event)  # nothing beside the values can matter any more

    def values(self, case: Case, drawing: int = 0) -> Values:
        return self.drawings.values(self.problem, case, self.options.seed, drawing)


def load_problem(files: ExerciseFiles) -> Problem:
    """Import an exercise's problem.py. Raises ValueError naming the file when it defines no Problem."""
    name = f"problem_{files.slug}"
    # a package of its own: a problem may keep its mistakes in a file beside it (`from .mistakes import …`)
    folder = [str(files.problem.parent)]
    spec = importlib.util.spec_from_file_location(name, files.problem, submodule_search_locations=folder)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    for known in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
        del sys.modules[known]
    sys.modules[name] = module
    spec.loader.exec_module(module)
    problem = getattr(module, "PROBLEM", None)
    if not isinstance(problem, Problem) or problem.slug != files.slug:
        raise ValueError(f"{files.problem}: PROBLEM must be a Problem whose slug is {files.slug!r}")
    return problem


def versions() -> dict[str, str]:
    return {"torch": torch.__version__, "triton": version("triton"), "python": platform.python_version()}
