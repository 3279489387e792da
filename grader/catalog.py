"""Which exercises there are and where their files lie. Reads problem files without importing them (no torch here)."""

from __future__ import annotations

import ast
import difflib
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path


class UnknownExercise(LookupError):
    """No exercise of that name; the text suggests the nearest."""


class BrokenProblem(ValueError):
    """A problem file that does not say what it must; the text names file and line."""


@dataclass(frozen=True)
class ExerciseFiles:
    slug: str
    module: str  # the folder's name: "02-first-kernel"
    stub: Path
    problem: Path
    solution: Path
    title: str
    entry: str
    hints: tuple[str, ...]


def course_root() -> Path:
    """The folder that holds modules/, exercises/ and solutions/: the repository's, or the installed package's data."""
    given = os.environ.get("TRITON_PREP_COURSE")
    here = Path(__file__).resolve().parent
    for root in ([Path(given)] if given else []) + [here.parent, here / "course"]:
        if (root / "modules").is_dir() and (root / "exercises").is_dir():
            return root
    raise FileNotFoundError(f"no course files beside {here}: expected modules/ and exercises/; reinstall triton-prep")


@cache
def exercises() -> tuple[ExerciseFiles, ...]:
    """Every exercise of the course, in the order of the modules, then by name."""
    root = course_root()
    found = []
    for problem in sorted((root / "exercises").glob("*/*/problem.py")):
        folder = problem.parent
        solution = root / "solutions" / folder.parent.name / f"{folder.name}.py"
        title, entry, hints = _stated(problem)
        found.append(
            ExerciseFiles(folder.name, folder.parent.name, folder / "stub.py", problem, solution, title, entry, hints)
        )
    return tuple(found)


def find(slug: str) -> ExerciseFiles:
    """The exercise of that name. Raises UnknownExercise with the nearest names."""
    by_name = {exercise.slug: exercise for exercise in exercises()}
    if slug in by_name:
        return by_name[slug]
    near = difflib.get_close_matches(slug, by_name, n=3, cutoff=0.4)
    advice = f"did you mean {', '.join(near)}?" if near else "`triton-prep list` names them all"
    raise UnknownExercise(f"no exercise is called {slug!r}: {advice}")


def _stated(path: Path) -> tuple[str, str, tuple[str, ...]]:
    """Title, entry and hints: literals in the call that makes PROBLEM."""
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    for node in tree.body:
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Call):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "PROBLEM" for target in targets):
            keywords = {k.arg: k.value for k in node.value.keywords}
            try:
                values = [ast.literal_eval(keywords[name]) for name in ("title", "entry", "hints")]
            except (KeyError, ValueError) as error:
                raise BrokenProblem(
                    f"{path}:{node.lineno}: PROBLEM needs title, entry and hints as plain literals ({error})"
                ) from error
            return values[0], values[1], tuple(values[2])
    raise BrokenProblem(f"{path}: defines no PROBLEM = Problem(...)")
