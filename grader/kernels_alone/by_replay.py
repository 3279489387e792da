"""On a GPU, where the interpreter cannot record a call: its launches, recorded there, carried out without the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from grader.failures import RunnerGone
from grader.grade import Grade
from grader.verified import verify

if TYPE_CHECKING:
    from grader.judge import Judge

ASKED = (
    "The grader runs the kernels by themselves, on the CPU too, and there the function fails ({why}). Take the device "
    "from the input, device=x.device, so that it can"
)


class NotReplayed(Exception):
    """No replay says anything of this call; the text says why."""


def check(judge: Judge, grade: Grade, why: str) -> None:
    """Change a pass into what a replay says; `why` the interpreter had nothing to say. Raises NotReplayed.

    Whether it can be replayed must not be left to the file: what cannot be checked in either way does not pass.
    """
    why = why.partition(". Try: ")[0]
    reason = verify.NOT_BY_REPLAY.get(grade.problem.call)
    if reason is not None:
        raise NotReplayed(f"{ASKED.format(why=why)}; a replay of its launches cannot stand in, as {reason}")
    try:
        records = verify.record_cases(judge, grade)
        replayed = verify.replay_cases(judge, grade, records)
    except verify.Unrecordable as found:
        raise NotReplayed(f"{ASKED.format(why=why)}; its launches cannot be replayed either: {found}") from found
    except verify.Fails as fails:
        outcome = fails.outcome
        message = f"while its launches were recorded: {outcome.message}"
        grade.verdict.fail(outcome.status, message, outcome.cause, outcome.line, whole=outcome.whole)
        return
    except (RunnerGone, torch.OutOfMemoryError) as error:
        raise NotReplayed(f"{ASKED.format(why=why)}; the replay of its launches could not be made: {error}") from error
    if replayed.failure is not None:
        grade.verdict.first_failure(*replayed.failure)
    elif grade.verdict.status == "passed":
        grade.verdict.notes.append(
            f"kernels checked by a replay of {replayed.launches} launches on the GPU, outside the learner's process: "
            f"the interpreter cannot run this file ({why})"
        )
