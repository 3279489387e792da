"""Names that follow another one through a loop: found in the source, confirmed by the compiler, told beside a pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from grader import diagnose
from grader.case_runner import Outcome
from grader.catalog import find
from grader.compare import compare
from grader.compiled_otherwise import loops_of, stale_name
from grader.drawings import Drawings
from grader.grade import Grade, Options, Submission, load_problem
from grader.stale_names import stale_names
from grader.verdict import Verdict
from tests.evidence.run import compiled
from tests.grader.server import RealGrader

BEFORE, BODY = "cur = s + 5\nprev = cur", "tl.store(p + i, prev)\nprev = cur\ncur = cur + 1"
# (what stands before the loop, the loop's line, its body, what stands after it)
STALE = {
    "for": (BEFORE, "for i in range(n):", BODY),
    "tl.range": (BEFORE, "for i in tl.range(0, n):", BODY),
    "while": (f"{BEFORE}\ni = 0", "while i < n:", f"{BODY}\ni += 1"),
    "a literal, then its name": ("cur = 0\nprev = cur", "for i in range(n):", BODY),
    "a constexpr, then its name": ("cur = C\nprev = cur", "for i in range(n):", BODY),
    "a tuple of names": ("z = s + 5\nprev, cur = z, z", "for i in range(n):", BODY),
    "both at once": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nprev, cur = cur, cur + 1"),
    "fibonacci": ("cur = s + 5\nprev = cur", "for i in range(n):", "tl.store(p + i, prev)\nprev, cur = cur, prev + cur"),
    "a tile": ("cur = tl.arange(0, 8)\nprev = cur", "for i in range(n):", "tl.store(p + prev, i)\nprev = cur\ncur += 8"),
    "a pointer": ("cur = p\nprev = cur", "for i in range(n):", "tl.store(prev, i)\nprev = cur\ncur += 1"),
    "by way of a third": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nz = cur\ncur = cur + 1\nprev = z"),
    "in a loop of a loop": (
        "for j in range(n):\n    cur = tl.load(p + j)\n    prev = cur\n    for i in range(n):\n"
        "        tl.store(p + i, prev)\n        prev = cur\n        cur = cur + 1",
        "",
        "",
    ),
    "after a loop": (BEFORE, "for i in range(n):", "prev = cur\ncur = cur + tl.load(p)\ntl.store(p + i, cur)", "tl.store(p, prev)"),
}  # fmt: skip
RIGHT = {
    "a value of its own": ("cur = s + 5\nprev = cur + 0", "for i in range(n):", BODY),
    "a pointer of its own": (
        "cur = p\nprev = cur + 0",
        "for i in range(n):",
        "tl.store(prev, i)\nprev = cur\ncur += 1",
    ),
    "a tile of its own": (
        "cur = tl.zeros([8], tl.float16)\nprev = cur + 0",
        "for i in range(n):",
        "tl.store(p + tl.arange(0, 8), prev.to(tl.int32))\nprev = cur\ncur += 1",
    ),
    "two literals": ("cur = 0\nprev = 0", "for i in range(n):", BODY),
    "two of one constexpr": ("cur = C\nprev = C", "for i in range(n):", BODY),
    "a new value in the loop": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nprev = cur + 0\ncur = cur + 1"),
    "a choice": ("cur = s + 5\nprev = cur if n > 3 else s", "for i in range(n):", BODY),
    "the value after its change": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\ncur = cur + 1\nprev = cur"),
}
# of these nothing is said, though some are compiled wrongly: they read no first value, or the tree does not settle it
UNTOLD = {
    "taken before it is read": (BEFORE, "for i in range(n):", "prev = cur\ncur = cur + 1\ntl.store(p + i, cur - prev)"),
    "unrolled": (BEFORE, "for i in tl.static_range(4):", BODY),
    "two iterations": (BEFORE, "for i in range(2):", BODY),
    "nothing changes": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nprev, cur = cur, prev"),
    "two of one argument": ("cur = s\nprev = s", "for i in range(n):", BODY),
    "in a branch": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nif i > 2:\n    prev = cur\ncur = cur + 1"),
    "changed in a branch": (BEFORE, "for i in range(n):", "tl.store(p + i, prev)\nprev = cur\nif i > 2:\n    cur += 1"),
    "read in a branch": (BEFORE, "for i in range(n):", "if i == 0:\n    tl.store(p, prev)\nprev = cur\ncur = cur + 1"),
    "two loops": (
        BEFORE,
        "for j in range(n):",
        "for i in range(n):\n    tl.store(p + i, prev)\n    prev = cur\n    cur = cur + 1",
    ),
    "a call that may change nothing": (BEFORE, "for i in range(n):", f"{BODY}\ncur = cur.to(tl.int32)"),
}
HEAD = "@triton.jit\ndef kernel_{}(p, n, s, C: tl.constexpr):\n"


def kernel(number: int, before: str, loop: str, body: str, after: str = "") -> str:
    lines = before.splitlines() + [loop] * bool(loop) + [f"    {line}" for line in body.splitlines()]
    return HEAD.format(number) + "".join(f"    {line}\n" for line in lines + after.splitlines())


def names(parts: Any) -> list[str]:
    return [one.name for one in stale_names(kernel(0, *parts))]


@pytest.mark.parametrize("title", STALE)
def test_a_name_that_keeps_its_first_value_is_found(title: str) -> None:
    found = stale_names(kernel(0, *STALE[title]))
    assert [(one.name, one.follows in ("cur", "z")) for one in found] == [("prev", True)]


@pytest.mark.parametrize("title", [*RIGHT, *UNTOLD])
def test_nothing_is_said_where_it_is_right_or_unsettled(title: str) -> None:
    assert names((RIGHT | UNTOLD)[title]) == []


def test_only_kernels_are_looked_at_and_what_cannot_be_read_is_no_finding() -> None:
    text = kernel(0, *STALE["for"])
    assert stale_names(text.replace("@triton.jit", "@triton.jit(debug=True)"))
    assert not stale_names(text.replace("@triton.jit", "@torch.compile"))
    for unread in ("def f(:", "x = 1\0", "(" * 9000, text.replace("    prev = cur\n", "    prev = cur\n    del n\n")):
        assert not stale_names(unread)


def test_loops_in_loops_end() -> None:
    deep = "".join(f"{'    ' * (depth + 1)}for i{depth} in range(n):\n" for depth in range(18))
    assert stale_names(f"{HEAD.format(0)}    cur = s + 0\n    prev = cur\n{deep}{'    ' * 19}prev = cur\n") == []


def test_the_compiler_confirms_each_of_them_and_none_that_is_right() -> None:
    """Line by line: the name is no argument of the compiled loop, and the loop of a right one has it."""
    kernels = {**STALE, **RIGHT}
    source = "".join(kernel(number, *parts) for number, parts in enumerate(kernels.values()))
    source += f"kernels = [{', '.join(f'kernel_{number}' for number in range(len(kernels)))}]\n"
    source += """
import json
from grader.loop_carries import loops
x = torch.zeros(64, dtype=torch.int32)
print(json.dumps([[k.fn.__code__.co_firstlineno, loops(k[(1,)](x, 8, 3, 7).asm["ttir"])] for k in kernels]))
"""
    for (title, parts), (start, rows) in zip(kernels.items(), json.loads(compiled(source)), strict=True):
        text = kernel(0, *parts)
        loops = [{"line": row["line"] - start + 1, "names": row["names"]} for row in rows]
        verdict = a_verdict()
        verdict.loops = loops_of([{"loops": loops}])
        told = stale_name(verdict, text)
        assert (told is not None) == (title in STALE), (title, loops, torch.__version__)
        if title in RIGHT and title != "the value after its change":
            assert any(name.startswith("prev") for row in loops for name in row["names"]), (title, loops)


# -- in a verdict ---------------------------------------------------------------------------------------------------

TEXT = kernel(0, *STALE["for"])
LINE = TEXT.splitlines().index("        prev = cur") + 1


def a_verdict(backend: str = "cuda", triton: str = "3.7.1") -> Verdict:
    return Verdict("vector_add", "", "vector_add.py", "", 0, backend, "no GPU", {"triton": triton}, status="passed")


def a_grade(verdict: Verdict) -> Grade:
    files = find("vector_add")
    source = TEXT + files.solution.read_text()
    submission = Submission(files, "vector_add.py", source.encode())
    return Grade(submission, load_problem(files), Options(), verdict.backend, print, bool, verdict, Drawings())


@pytest.mark.parametrize(
    ("triton", "loops", "told"),
    [
        ("3.6.0", None, True),
        ("3.9.0+git1", None, True),
        ("3.10.0", None, False),  # not known of it, and no compiled loop at hand
        ("3.10.0", [{"line": LINE - 2, "names": ["cur_0"]}], True),
        ("3.7.1", [{"line": LINE - 2, "names": ["cur", "prev_0"]}], False),  # mended
        ("3.7.1", [{"line": LINE - 2, "names": ["arg4"]}], False),  # names that say nothing
        ("3.7.1", [], False),  # never compiled
    ],
)
def test_the_compiled_loops_decide_where_they_were_seen(triton: str, loops: Any, told: bool) -> None:
    verdict = a_verdict(triton=triton)
    verdict.loops = loops
    assert (stale_name(verdict, TEXT) is not None) is told


def test_rows_of_a_runner_are_not_trusted() -> None:
    rows = ["x", {"loops": [3, {"line": "1", "names": []}, {"line": 2, "names": "cur"}, {"line": 3, "names": [4]}]}]
    assert loops_of(rows) == [{"line": 3, "names": ["4"]}]


def test_a_pass_has_a_remark_and_stays_a_pass() -> None:
    grade = a_grade(a_verdict("interpreter"))
    diagnose.finish(grade)
    found = json.loads(json.dumps(grade.verdict.as_dict()))["diagnosis"]
    assert (grade.verdict.status, found["cause"], found["line"]) == ("passed", "stale_name_in_loop", LINE)
    assert found["see"] == "m08.lesson.debug" and "`prev = cur + 0`" in found["message"]


@pytest.mark.parametrize(("backend", "stale"), [("cuda", True), ("interpreter", False)])
def test_a_wrong_output_that_fits_no_mistake_is_put_down_to_it_on_a_gpu(backend: str, stale: bool) -> None:
    verdict = a_verdict(backend)
    grade = a_grade(verdict)
    case = max(grade.problem.cases, key=lambda case: grade.values(case).size)
    values = grade.values(case)
    wrong = torch.randn(values.args[0].shape, generator=torch.Generator().manual_seed(0))
    outcome = Outcome("wrong_answer", "wrong", compare(wrong, values.expected[0]), 0, (wrong,))
    verdict.first_failure(case, values, outcome)
    diagnose.finish(grade)
    assert verdict.status == "wrong_answer" and verdict.diagnosis is not None
    assert (verdict.diagnosis["cause"] == "stale_name_in_loop") is stale, verdict.diagnosis


def test_beside_a_mistake_that_fits_it_is_a_note() -> None:
    """A first tile only, say: the loop over the others may be there, and this be why it does nothing."""
    verdict = a_verdict()
    grade = a_grade(verdict)
    case = grade.problem.cases[-1]
    verdict.first_failure(case, grade.values(case), Outcome("out_of_bounds", "a store past the end", line=9))
    diagnose.finish(grade)
    assert verdict.diagnosis is not None and verdict.diagnosis["cause"] != "stale_name_in_loop"
    assert [note.startswith(f"line {LINE}: `prev` takes") for note in verdict.notes] == [True]


LAGGING = """
    ahead = tl.arange(0, BLOCK_N)
    cols = ahead{own}
    for _ in range(0, n_cols + BLOCK_N, BLOCK_N):
        mask = cols < n_cols
        x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=mask)
        tl.store(out_ptr + row * stride_om + cols * stride_on, x * scale, mask=mask)
        cols = ahead
        ahead += BLOCK_N
"""


@pytest.mark.parametrize(("own", "cause"), [("", "stale_name_in_loop"), (" + 0", None)])
def test_the_offline_compile_of_a_pass_tells(grader: RealGrader, tmp_path: Path, own: str, cause: str | None) -> None:
    solution = find("row_scale").solution.read_text()
    loop, end = solution.index("    for start in"), solution.index("\n\ndef row_scale(")
    file = tmp_path / "row_scale.py"
    file.write_text(solution[:loop] + LAGGING.format(own=own).lstrip("\n") + solution[end:])
    verdict = grader.grade("row_scale", file)
    found = verdict["diagnosis"] or {}
    assert (verdict["status"], found.get("cause")) == ("passed", cause), verdict
    if cause:
        assert file.read_text().splitlines()[found["line"] - 1].strip() == "cols = ahead"
