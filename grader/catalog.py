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


class NoCourse(ValueError):
    """A course directory that is none; the text names it and says what belongs there."""


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


def course_roots() -> tuple[Path, ...]:
    """The built-in course, then what TRITON_PREP_COURSES adds: course directories, or single module files.

    Raises NoCourse.
    """
    added = [Path(name) for name in os.environ.get("TRITON_PREP_COURSES", "").split(os.pathsep) if name]
    for root in added:
        if not (root / "modules").is_dir() and not (root.is_file() and root.suffix == ".yaml"):
            raise NoCourse(
                f"{root} is no course: name a module file (NN-name.yaml), or a folder that holds modules/, and "
                "exercises/ and solutions/ where it has exercises"
            )
    built_in = course_root()
    return (built_in, *dict.fromkeys(root for root in added if root.resolve() != built_in.resolve()))


@cache
def exercises() -> tuple[ExerciseFiles, ...]:
    """Every exercise, in the order of the modules, then by name; those of added courses last.

    Raises NoCourse and BrokenProblem.
    """
    found: dict[str, ExerciseFiles] = {}
    for root in course_roots():
        for problem in sorted((root / "exercises").glob("*/*/problem.py")):
            folder = problem.parent
            slug, module = folder.name, folder.parent.name
            if slug in found:
                raise BrokenProblem(f"{problem}: {slug!r} is an exercise already ({found[slug].problem}): rename it")
            solution = root / "solutions" / module / f"{slug}.py"
            found[slug] = ExerciseFiles(slug, module, folder / "stub.py", problem, solution, *_stated(problem))
    return tuple(found.values())


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
