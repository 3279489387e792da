"""Mistakes of the list that no submission shows here, and why."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake


def unrun(number: str, title: str, exercise: str, why: str, *causes: str) -> KnownMistake:
    return KnownMistake((number,), title, exercise, causes=causes, why_not_run=why)


LARGE = "needs a GPU: 8 GiB for one tensor, and no case of this task is that large"

MISTAKES: tuple[KnownMistake, ...] = (
    unrun("11", "int32 offset past 2^31 elements", "block_copy_2d", LARGE),
    unrun("11", "int32 row offset past 2^31 elements", "row_scale", LARGE),
    unrun("24", "// and % of negative numbers", "roll", "no exercise yet: an offset that may be negative"),
    unrun("40", "recompiled for every row count", "row_scale", "not a wrong answer: slow in its first calls"),
    unrun("48", "a shape missing from key", "autotuned_add", "not a wrong answer: a poor configuration is reused"),
    unrun("49", "an irrelevant argument in key", "autotuned_add", "not a wrong answer: tuned again and again"),
    unrun("59", "empty grid launched", "vector_add", "not a wrong answer: Triton skips an empty grid"),
    unrun("63", "timing without synchronising", "vector_add", "not a wrong answer: a wrong measurement"),
)
