"""Every known mistake of people who write Triton kernels, as a submission, and the verdict it must get.

A mistake is the reference solution with pieces of its text replaced, or a whole source. The numbers are those of the
project's list of mistakes, which was collected from public issue trackers (see listed.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class KnownMistake:
    numbers: tuple[str, ...]  # of the list of mistakes, see listed.py
    title: str
    exercise: str  # its slug; of an exercise that is not there yet, what it will be called
    changes: tuple[tuple[str, str], ...] = ()  # (old, new): every occurrence of old is replaced, in this order
    source: str | None = None  # the whole submission, instead of changes
    status: str = "wrong_answer"
    causes: tuple[str, ...] = ()  # names that say what the mistake is; the first is the best one
    line: str | None = None  # text that stands on the named line; None where no line can be named
    right_on_cuda: bool = False  # there it is no mistake, and passes
    needs_cuda: bool = False  # a GPU alone shows it
    gpus: int = 1  # that many, where a GPU alone shows it
    cuda_statuses: tuple[str, ...] = ()  # what it may be on a GPU as well
    cuda_causes: tuple[str, ...] = ()
    why_not_run: str | None = None  # "needs a GPU: …", "no exercise yet: …", "not a wrong answer: …"

    @property
    def id(self) -> str:
        return f"{self.exercise}-{self.title}".replace(" ", "-")

    def text(self, solution: str) -> str:
        """The submission, from the reference solution's text. Raises ValueError when a piece to replace is missing."""
        if self.source is not None:
            return self.source
        for old, new in self.changes:
            if old not in solution:
                raise ValueError(f"{self.id}: {old!r} is not in the solution any more")
            solution = solution.replace(old, new)
        return solution


def all_mistakes() -> tuple[KnownMistake, ...]:
    """All rows, those that are not run here included."""
    from tests.grader.mistakes import (
        first_kernels,
        matrices,
        norms_and_losses,
        on_a_gpu,
        pytorch,
        reductions,
        tiles_and_strides,
        tuned_kernels,
        unrun,
    )

    modules = (
        first_kernels,
        tiles_and_strides,
        reductions,
        norms_and_losses,
        tuned_kernels,
        matrices,
        pytorch,
        on_a_gpu,
        unrun,
    )
    return tuple(mistake for module in modules for mistake in module.MISTAKES)
