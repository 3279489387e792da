"""Which of somebody's files is for which exercise: by its name, else by the function that the exercise calls."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from grader.catalog import ExerciseFiles, exercises
from tutor.homework.archives import shown

# by text, not by parsing: a file made to break Python's parser must not end the command
DEFINED = re.compile(rb"^(?:def[ \t]+(\w+)[ \t]*\(|(\w+)[ \t]*(?::[^=\n]+)?=(?!=))", re.MULTILINE)


def match(files: Mapping[str, bytes], asked: Sequence[ExerciseFiles]) -> tuple[dict[str, str], dict[str, str]]:
    """By exercise: the path of its file; and why none of several was taken."""
    found: dict[str, str] = {}
    problems: dict[str, str] = {}
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in sorted(files):
        by_name[PurePosixPath(path).stem.lower()].append(path)
    known = {one.slug for one in exercises()}
    others = [path for name, paths in by_name.items() if name not in known for path in paths]
    defining: dict[str, list[str]] = defaultdict(list)
    for path in others:
        for name in _defined(files[path]):
            defining[name].append(path)
    called = Counter(one.entry for one in asked)
    for one in asked:
        paths = _shallowest(by_name.get(one.slug, []))
        why = f"several files are called {one.slug}.py"
        if not paths:
            if called[one.entry] > 1:  # two exercises call it: the name must tell
                continue
            paths, why = defining.get(one.entry, []), f"several files define {one.entry}"
        if len(paths) == 1:
            found[one.slug] = paths[0]
        elif paths:
            problems[one.slug] = f"{why} ({', '.join(shown(path) for path in sorted(paths)[:4])}): hand in one"
    return found, problems


def _shallowest(paths: Sequence[str]) -> list[str]:
    least = min((path.count("/") for path in paths), default=0)
    return [path for path in paths if path.count("/") == least]


def _defined(source: bytes) -> set[str]:
    return {(a or b).decode("ascii", "replace") for a, b in DEFINED.findall(source)}
