"""A small course with every kind of item, and square brackets wherever a text can stand."""

from __future__ import annotations

from tutor.course.course import Course
from tutor.course.model import (
    Bug,
    Exercise,
    Lesson,
    Match,
    Measurement,
    Mend,
    Module,
    Note,
    Open,
    Option,
    Page,
    Pair,
    Predict,
    Quiz,
    RubricPoint,
    Step,
    Walkthrough,
)

BUG_CODE = """\
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y)


def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return out
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out
"""

BUG_LINE = 13
MENDED_LINE = "    tl.store(out_ptr + offs, x + y, mask=mask)"
TABLE = "| name | cell |\n|---|---|\n| launch | kernel[grid](x) |\n| element | acc[i][j] |\n"

LESSON = Lesson(
    id="m01.lesson.grid",
    title="The launch kernel[grid](x)",
    pages=(
        Page(
            title="First a[i]",
            text="A launch is kernel[grid](x), an element acc[i][j].\n\n- item b[j]\n\n"
            f"```python\nc[k] = x\n```\n\n{TABLE}",
        ),
        Page(title="Then a[i+1]", text="\n\n".join(f"Paragraph {number} about row[{number}]." for number in range(20))),
        Page(title="Last", text="The last page ends with out[n]."),
    ),
)
QUIZ = Quiz(
    id="m01.quiz.grid",
    title="What is kernel[grid]?",
    question="What does kernel[grid](x) do with `a[i]`?",
    code="kernel[grid](x)\na[i] = 1",
    options=(
        Option(text="It launches kernel[grid](x)", why="One program for each grid[i].", correct=True),
        Option(text="It indexes a[i]", why="Nothing is indexed: kernel[grid] binds a grid."),
        Option(text="It fails with `a[i][j]`", why="It does not: a[i][j] is fine."),
    ),
    remember="kernel[grid] binds, (x) launches.",
)
SEVERAL = Quiz(
    id="m01.quiz.several",
    title="Which of x[i]?",
    question="Which are elements?",
    options=(
        Option(text="x[i]", why="x[i] is one.", correct=True),
        Option(text="kernel[grid]", why="kernel[grid] is a launcher."),
        Option(text="y[j]", why="y[j] is one.", correct=True),
    ),
)
BUG = Bug(
    id="m01.bug.mask",
    title="Past out[n]",
    story="Sizes that are no multiple of BLOCK write past out[n] after kernel[grid](x).",
    code=BUG_CODE,
    faulty=(BUG_LINE,),
    mends=(Mend(line=BUG_LINE, text=MENDED_LINE),),
    exercise="vector_add",
    status="out_of_bounds",
    cause="missing_store_mask",
    explain="The store of out[n] and on needs the mask.",
    hint="Which access of p[i] has no mask?",
)
TWO_MENDS = Bug(
    id="m02.bug.two",
    title="Two lines of k[i]",
    story="Both of x[i] and y[j] are read past their end.",
    code="def f(x):\n    a = x[3]\n    b = x[4]\n    return a\n",
    faulty=(2, 3),
    mends=(Mend(line=2, text="    a = x[0]"), Mend(line=3, text="    b = x[1]\n    b += a")),
    exercise="vector_add",
    status="out_of_bounds",
    cause="missing_load_mask",
    explain="x[3] and x[4] are not there.",
)
MATCH = Match(
    id="m01.match.words",
    title="Words of w[i]",
    prompt="Match each with kernel[grid](x).",
    pairs=(
        Pair(left="grid[0]", right="programs on axis[0]", why="axis[0] of the grid."),
        Pair(left="x[i]", right="an element e[i]", why=""),
        Pair(left="tl.constexpr", right="known when compiling c[0]", why=""),
    ),
)
WALK = Walkthrough(
    id="m01.walkthrough.add",
    title="Walk over x[i]",
    intro="The kernel[grid](x) with n = 5.",
    stage="@triton.jit\ndef f(x_ptr, n, B: tl.constexpr):\n"
    "    offs = tl.arange(0, B)\n    x = tl.load(x_ptr + offs)[None]\n",
    steps=(
        Step(text="Offsets o[i] come first.", lines=(3,), state={"offs[0]": "0", "x[i]": "-"}),
        Step(text="Then the load of x[i].", lines=(4,), state={"offs[0]": "0", "x[i]": "[1, 2][0]"}),
    ),
)
PREDICT = Predict(
    id="m01.predict.copy",
    title="How fast is out[i] = x[i]?",
    question="Which share of the limit does kernel[grid](x) reach?",
    options=(
        Option(text="half of p[0]", why="No, h[0]."),
        Option(text="nearly all of p[1]", why="Yes, h[1].", correct=True),
    ),
    measured=Measurement(device="NVIDIA H200", versions="torch 2.11", date="2026-11-29", figure="0.97 of copy[0]"),
)
OPEN = Open(
    id="m01.open.mask",
    title="Explain mask[i]",
    question="Why does kernel[grid](x) need a mask?",
    answer="Because the last program owns offsets past x[n - 1].",
    rubric=(RubricPoint(text="names x[n - 1]", points=2), RubricPoint(text="names other=o[0]", points=1)),
    followups=("And for y[i][j]?",),
    weak="Just says mask[i].",
)
EXERCISE = Exercise(
    id="m01.exercise.vector-add",
    title="Add x[i] and y[i]",
    exercise="vector_add",
    brief="Write kernel[grid](x) for out[i] = x[i] + y[i].",
    after="Asked next: how many bytes does out[i] = x[i] + y[i] move?",
)
NOTE = Note(text="Beware of grid[3].", evidence=("doc:a document about grids",))

ITEMS = (LESSON, QUIZ, SEVERAL, BUG, MATCH, WALK, PREDICT, OPEN, EXERCISE)
MODULE = Module(
    id="m01",
    title="Programs p[i]",
    blurb="What kernel[grid](x) starts.",
    probes="Whether you know kernel[grid](x).",
    items=ITEMS,
    gotchas=(NOTE,),
    versions=(NOTE,),
    next="Masks m[i].",
)
SECOND = Module(
    id="m02",
    title="Second s[i]",
    blurb="More of b[j].",
    probes="Whether s[i] is clear.",
    items=(Quiz(id="m02.quiz.last", title="Last q[i]", question="Is x[i] one?", options=QUIZ.options), TWO_MENDS),
)
COURSE = Course((MODULE, SECOND))
