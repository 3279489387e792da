"""Views of a kernel, graded, compiled and run for real: `softmax`, `matmul`, and one that a learner got wrong."""

from __future__ import annotations

import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.app.driver import Session

Way = Callable[[Session], Awaitable[None]]
ROOT = Path(__file__).resolve().parents[1]
SOLVED = {"softmax": "04-softmax-and-reductions", "matmul": "06-blocked-matmul", "vector_add": "02-first-kernel"}
WRONG = "m02.bug.mask"  # no mask anywhere: loads and stores beyond the end
BAD_FILL = "m03.bug.fill"  # padding of 0 before a maximum


def solution(slug: str) -> str:
    return (ROOT / "solutions" / SOLVED[slug] / f"{slug}.py").read_text(encoding="utf-8")


def bug(s: Session, bug_id: str) -> tuple[str, str]:
    """The exercise, and the file with the mistake in it."""
    from tutor.answers import bug_source
    from tutor.course.model import Bug

    found = s.desk.course.item(bug_id)
    assert isinstance(found, Bug)
    return found.exercise, bug_source(found)


@dataclass(frozen=True)
class KernelView:
    """A solution's slug, or the id of a bug; and the way from its exercise to the view."""

    kernel: str
    way: Way

    async def file(self, s: Session) -> None:
        """The exercise, with the file in the workspace."""
        kernel = self.kernel
        slug, text = bug(s, kernel) if kernel in (WRONG, BAD_FILL) else (kernel, solution(kernel))
        item = s.desk.course.exercise_item(slug)
        assert item is not None
        s.desk.workspace.file(slug).write_text(text, encoding="utf-8")
        await s.open(item.id)


async def compiler(s: Session) -> None:
    from tutor.screens.compiler import CompilerScreen

    await s.keys("v")
    await s.until(lambda: isinstance(s.app.screen, CompilerScreen) and s.app.screen.stage is not None)


async def compiler_ptx(s: Session) -> None:
    await compiler(s)
    await s.keys("4", "n", "n")  # TTIR, TTGIR, LLIR, PTX


async def compare(s: Session) -> None:
    await compiler(s)
    await s.keys("4", "c", *["down"] * 4, "enter")
    await s.until_shown("* differs")


async def access_map(s: Session) -> None:
    from tutor.screens.access_map import AccessMapScreen
    from tutor.widgets.access_grid import AccessGrid

    await s.keys("m")
    await s.until(lambda: isinstance(s.app.screen, AccessMapScreen) and s.app.screen.shown is not None)
    await s.until(lambda: s.app.screen.query_one(AccessGrid).drawn is not None)


async def grade(s: Session) -> None:
    shown: Any = s.app.screen
    await s.keys("g")
    await s.until(lambda: bool(s.desk.progress.state(shown.item.id).attempts))


async def graded(s: Session) -> None:
    await grade(s)
    await s.keys("f5")


async def cases(s: Session) -> None:
    await grade(s)
    await s.keys("b")
    await s.until_shown("FAIL")


def plots(view: str) -> Way:
    async def go(s: Session) -> None:
        from tutor.screens.result_plots import ResultPlotsScreen

        await s.keys("b")
        await s.until(lambda: isinstance(s.app.screen, ResultPlotsScreen) and len(s.app.screen.models) == 2)
        await s.keys(view)

    return go


async def sizes(s: Session) -> None:
    await s.keys("b", "S")
    await s.until_shown("of the limit")


async def editor(s: Session) -> None:
    from tutor.widgets.code_editor import CodeEditor

    await grade(s)
    await s.keys("E")
    await s.until(lambda: isinstance(s.app.focused, CodeEditor))
    s.app.focused.cursor_blink = False  # type: ignore[union-attr]


async def diff(s: Session) -> None:
    await s.keys("D")
    await s.until_shown("change 1 of")


async def conflict(s: Session) -> None:
    from tutor.editing.edited_file import Conflict
    from tutor.screens.conflict import ConflictScreen

    mine = solution("vector_add").replace("x + y", "y + x")
    await s.app.push_screen(ConflictScreen("vector_add.py", Conflict(mine, solution("vector_add"))))
    await s.until_shown("Keep mine")


OPENED: dict[str, KernelView] = {  # how long these take to open is printed
    "compiler-softmax": KernelView("softmax", compiler),
    "compiler-matmul": KernelView("matmul", compiler),
    "compiler-wrong": KernelView(WRONG, compiler),
    "access-map-softmax": KernelView("softmax", access_map),
    "access-map-matmul": KernelView("matmul", access_map),
    "access-map-wrong": KernelView(WRONG, access_map),
}
KERNEL_VIEWS: dict[str, KernelView] = {
    **OPENED,
    "compiler-ptx": KernelView("softmax", compiler_ptx),
    "compiler-compare": KernelView(WRONG, compare),
    "exercise-graded": KernelView(BAD_FILL, graded),
    "result-cases": KernelView(WRONG, cases),
    "result-times": KernelView("softmax", plots("2")),
    "result-roofline": KernelView("softmax", plots("3")),
    "result-sizes": KernelView("softmax", sizes),
    "editor": KernelView(BAD_FILL, editor),
    "diff": KernelView("vector_add", diff),
    "conflict": KernelView("vector_add", conflict),
}


def cpu_seconds(root: int) -> float:
    """Of the process, all below it, and what they have waited for."""
    from grader.process_tree import descendants

    spent = 0
    for pid in (root, *descendants(root)):
        try:
            spent += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue  # it has just ended; whoever waited for it has its time
    return spent / os.sysconf("SC_CLK_TCK")


async def timed(s: Session, name: str, view: KernelView) -> str:
    """Goes there; seconds from the key in the exercise to the view, and CPU seconds of the app and of the grader."""
    await view.file(s)
    pid = s.desk.grader.pid
    assert pid is not None
    begun, app, grader = time.monotonic(), time.process_time(), cpu_seconds(pid)
    await view.way(s)
    took, app, grader = time.monotonic() - begun, time.process_time() - app, cpu_seconds(pid) - grader
    return f"{name:<20} {took:5.2f} s   CPU {app:5.2f} s app, {grader:5.2f} s grader"
