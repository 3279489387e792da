"""What is to be graded, and what came of it: values that mean the same on this machine and on another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import grader
from grader.catalog import exercises, find
from tutor.homework.assignment import Assignment
from tutor.homework.submissions import Content

Run = Literal["shown", "hidden"]


class CannotGrade(Exception):
    """The place where grades run is not as the assignment needs it; the text says what to do."""


@dataclass(frozen=True)
class Facts:
    """Where grades run."""

    backend: str  # interpreter or cuda
    device: str
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Work:
    """One grade: a content, an exercise, and how."""

    key: str  # equal for grades that must come out alike
    exercise: str
    content: Content
    options: Mapping[str, Any]  # of GradeRequest
    total_limit: float  # seconds


@dataclass(frozen=True)
class Graded:
    """How a piece of work ended: the grader's verdict, or why there is none, which is not the learner's doing."""

    key: str
    verdict: Mapping[str, Any] | None
    fault: str | None = None
    seconds: float = 0.0  # without those waited
    waited: float = 0.0  # seconds for turns on a GPU that others use too
    gpu: str = ""  # as CUDA_VISIBLE_DEVICES names it; empty: none, or whichever the grader took


def work_for(assignment: Assignment, facts: Facts, exercise: str, content: Content, run: Run) -> Work:
    options = {
        "backend": facts.backend,
        "target": assignment.target,
        "time": None if run == "shown" and assignment.timing == "auto" else False,
        "seed": assignment.seed if run == "shown" else assignment.hidden.seed,
        "verified": is_verified(assignment, facts),
        "call_limit": assignment.time_limit,
    }
    facts_of_key = {
        "content": content.sha256,
        "exercise": exercise,
        "problem": _digest(find(exercise).problem.parent),
        "options": options,
        "total_limit": assignment.total_limit,
        "grader": _grader_digest(),
        "device": facts.device,
        "versions": dict(facts.versions),
    }
    key = hashlib.sha256(json.dumps(facts_of_key, sort_keys=True).encode()).hexdigest()[:40]
    return Work(key, exercise, content, options, assignment.total_limit)


def is_verified(assignment: Assignment, facts: Facts) -> bool:
    """Raises CannotGrade when the assignment asks for it and there is no GPU."""
    if assignment.verified == "always" and facts.backend != "cuda":
        raise CannotGrade(
            "The assignment asks for verified grades, which need a GPU: write `verified: auto`, or run it on one."
        )
    return assignment.verified != "never" and facts.backend == "cuda"


def course_digest() -> str:
    """Of the grader and of every exercise: equal wherever grades must come out alike."""
    parts = [_grader_digest(), *(f"{one.slug} {_digest(one.problem.parent)}" for one in exercises())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:20]


@cache
def _grader_digest() -> str:
    try:
        version = metadata.version("triton-prep")
    except metadata.PackageNotFoundError:
        version = ""
    return f"{version} {_digest(Path(grader.__file__).parent)}"


@cache
def _digest(folder: Path) -> str:
    """Of the Python files: a grade from before a change to them is no longer this grade."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        if "course" not in file.relative_to(folder).parts[:1]:  # in a wheel the course lies inside grader/
            digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:20]
