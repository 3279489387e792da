"""A small course on disk, and ways to run the commands on it with a stand-in grader."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
FAKE_GRADER = shlex.join([sys.executable, str(REPOSITORY / "tests" / "fake_grader.py")])
Run = Callable[..., "subprocess.CompletedProcess[str]"]

MODULE = """\
id: m01
title: Tiny module
blurb: Two exercises and one item of each kind.
probes: Whether kernel[grid](x) is understood.
next: Nothing.
gotchas:
  - text: A gotcha about acc[i][j].
    evidence: ["doc:Triton 3.7 documentation, triton.jit"]
items:
  - kind: lesson
    id: m01.lesson.launch
    title: The launch
    pages:
      - title: One launch
        text: |
          Write `kernel[grid](x)`:

          ```python
          kernel[grid](x, acc[i][j])
          ```
      - title: Another page
        text: More about x[0].
  - kind: quiz
    id: m01.quiz.a
    title: One right
    aliases: [m01.quiz.was-a]
    question: What does kernel[grid](x) do?
    options:
      - {text: "Launches", why: "Yes [indeed].", correct: true}
      - {text: "Indexes", why: "No."}
      - {text: "Nothing", why: "No."}
    remember: Square brackets hold the grid.
  - kind: quiz
    id: m01.quiz.b
    title: Two right
    question: Which are true?
    options:
      - {text: "p", why: "No."}
      - {text: "q", why: "Yes.", correct: true}
      - {text: "r", why: "Yes.", correct: true}
  - kind: bug
    id: m01.bug.mask
    title: The mask
    story: It writes past the end.
    code: |
      def kernel(x):
          tl.store(x)
          return x
    faulty: [2]
    mends:
      - {line: 2, text: "    tl.store(x, mask=m)"}
    exercise: vector_add
    status: out_of_bounds
    cause: missing_store_mask
    explain: The store needs a mask.
    hint: Look at the store.
  - kind: match
    id: m01.match.words
    title: Words
    prompt: Match them.
    pairs:
      - {left: grid, right: "how many programs [n]", why: "It counts."}
      - {left: mask, right: "which lanes"}
      - {left: stride, right: "how far apart"}
  - kind: walkthrough
    id: m01.walk.add
    title: Line by line
    intro: Watch x[0].
    stage: |
      a = 1
      b = a + 1
    steps:
      - {text: "First.", lines: [1], state: {a: "1", b: "-"}}
      - {text: "Then.", lines: [2], state: {a: "1", b: "2"}}
  - kind: predict
    id: m01.predict.speed
    title: How fast
    question: What share?
    options:
      - {text: "half", why: "Too low."}
      - {text: "nearly all", why: "Yes.", correct: true}
    measured: {device: "some GPU", versions: "triton 3.7", date: "2026-11-29", figure: "0.97"}
  - kind: open
    id: m01.open.why
    title: Why
    question: Why masks?
    answer: Because n is no multiple of BLOCK.
    rubric:
      - {text: "sizes", points: 2}
      - {text: "faults", points: 1}
  - kind: exercise
    id: m01.exercise.vector-add
    title: Add
    exercise: vector_add
    brief: Write kernel[grid](x).
  - kind: exercise
    id: m01.exercise.row-sum
    title: Sum
    exercise: row_sum
    brief: Sum rows.
"""
STUB = '"""Task: out[i] = x[i] for {slug}."""\n\n# TODO\n'
PROBLEM = 'PROBLEM = Problem(title="{slug}", entry="f", hints=("nudge", "idea", "line"))\n'


@pytest.fixture
def course_root(tmp_path: Path) -> Path:
    """A course of one module and two exercises, in a folder of its own."""
    root = tmp_path / "course"
    (root / "modules").mkdir(parents=True)
    (root / "modules" / "01-tiny.yaml").write_text(MODULE, encoding="utf-8")
    for slug in ("vector_add", "row_sum"):
        folder = root / "exercises" / "01-tiny" / slug
        folder.mkdir(parents=True)
        (folder / "stub.py").write_text(STUB.format(slug=slug), encoding="utf-8")
        (folder / "problem.py").write_text(PROBLEM.format(slug=slug), encoding="utf-8")
        solutions = root / "solutions" / "01-tiny"
        solutions.mkdir(parents=True, exist_ok=True)
        (solutions / f"{slug}.py").write_text(f"# the solution of {slug}\n", encoding="utf-8")
    return root


@pytest.fixture
def small_course(course_root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """The same, in effect in this process."""
    from grader import catalog

    monkeypatch.setenv("TRITON_PREP_COURSE", str(course_root))
    monkeypatch.setenv("TRITON_PREP_CACHE", str(tmp_path / "cache"))
    catalog.exercises.cache_clear()
    yield course_root
    catalog.exercises.cache_clear()


@pytest.fixture
def environment(course_root: Path, tmp_path: Path) -> dict[str, str]:
    """For subprocesses: the small course, the stand-in grader, a workspace under tmp_path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRITON")}
    return {
        **kept,
        "PYTHONPATH": str(REPOSITORY),
        "TRITON_PREP_COURSE": str(course_root),
        "TRITON_PREP_CACHE": str(tmp_path / "cache"),
        "TRITON_PREP_WORKSPACE": str(tmp_path / "work"),
        "TRITON_PREP_GRADER": FAKE_GRADER,
    }


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs `triton-prep ARGS` on the small course: command("grade", "vector_add", stdin="…")."""

    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tutor", *arguments],
            input=stdin,
            env={**environment, **more},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The workspace folder that `command` uses."""
    return tmp_path / "work"
