"""After every case has passed, in the interpreter: does the result depend on which program runs when?

The interpreter runs the programs of a launch one after another, so `load; add; store` without an atomic is right there
and wrong on a GPU. Two looks at small cases with several programs: the accesses of each program (grader/races.py), and
the same call with the programs in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader import checks
from grader.case_runner import CaseRunner, Outcome
from grader.expectation import Values
from grader.grade import Grade
from grader.problem import Case

# A case with more is not run again. Counts and no seconds: what is found must not depend on how busy the machine is.
MOST_PROGRAMS, MOST_BYTES = 128, 2**20
SECONDS = 2.0  # and none that took as long, whatever it did
ROUNDING = (
    "with the programs in another order the result differs by rounding, within the tolerance: float atomics add in "
    "whatever order the programs come"
)
WAITING = (
    "programs wait for each other through atomics (a lock or a flag): the interpreter runs programs one after another, "
    "so races between them are not looked for"
)
COUNTING = (
    "programs count through an atomic on an integer: what the last one may then load is not told apart from a race, "
    "so races between programs are not looked for"
)
WHAT = {
    "race_between_programs": (
        "Programs {programs} share element {index} of {name}: {what}, and nothing orders them. The interpreter runs "
        "programs one after another; on a GPU they run at the same time and the result depends on timing. Use an "
        "atomic (tl.atomic_add, tl.atomic_max), or let one program own each element."
    ),
    "missing_barrier": (
        "Program {programs} stores element {index} of {name} and loads it again at another place of its block, with no "
        "tl.debug_barrier() between: on a GPU another thread may load it before it is stored. Put tl.debug_barrier() "
        "between them, or keep the value in a variable."
    ),
}


@dataclass(frozen=True)
class Passed:
    """A case that passed: its size in elements, and what its call told of itself."""

    case: Case
    size: int
    outcome: Outcome

    @property
    def seconds(self) -> float:
        return self.outcome.seconds or 0.0

    @property
    def light(self) -> bool:
        """Whether it may be run several times more."""
        small = self.outcome.programs <= MOST_PROGRAMS and sum(self.outcome.traffic or (0, 0)) <= MOST_BYTES
        return small and self.seconds <= SECONDS


Finding = tuple[Case, Values, Outcome]


def depends_on_order(grade: Grade, runner: CaseRunner, passed: Sequence[Passed]) -> Finding | None:
    """The first case whose result depends on timing, with a nondeterministic outcome. Adds notes to the verdict."""
    atomics = True
    for chosen, order in zip(_cases(passed), ("reversed", "shuffled"), strict=False):
        values = grade.values(chosen.case)
        if not atomics:  # nothing can wait, no sum can come out rounded otherwise: one call shows both
            other = checks.call(runner, values, trace="accesses", order=order)
            outcome = _conflict(other) or _in_order(runner, values, other, order)
            if outcome is not None:
                return chosen.case, values, outcome
            continue
        forward = checks.call(runner, values, trace="accesses")
        if forward.status != "passed":
            return chosen.case, values, checks.wrong_later(forward)
        conflict = _conflict(forward)
        if conflict is not None:
            return chosen.case, values, conflict
        if forward.conflicts.get("locks"):
            _note(grade, WAITING)
            continue  # a program may wait for one that would come later
        if forward.conflicts.get("counters"):
            _note(grade, COUNTING)
        atomics = bool(forward.conflicts.get("atomics", True))
        other = checks.call(runner, values, order=order)
        outcome = _in_order(runner, values, other, order)
        if outcome is not None:
            return chosen.case, values, outcome
        pairs = zip(forward.outputs, other.outputs, strict=True)
        if not all(checks.same_bits(a, b) for a, b in pairs):
            _note(grade, ROUNDING)
    return None


def _cases(passed: Sequence[Passed]) -> list[Passed]:
    """Of the cases with several programs the smallest, and of the light ones that with the most programs."""
    several = [p for p in passed if p.outcome.programs > 1 and p.seconds <= SECONDS]
    if not several:
        return []
    smallest = min(several, key=lambda p: p.size)
    most = max((p for p in several if p.light), key=lambda p: p.outcome.programs, default=smallest)
    return [smallest] if most is smallest else [smallest, most]


def _conflict(outcome: Outcome) -> Outcome | None:
    """The outcome with what the trace found, in words; the trace comes from the runner and may be anything."""
    first = outcome.conflicts.get("first")
    if not isinstance(first, dict):
        return None
    try:
        programs = [tuple(int(i) for i in program) for program in first["programs"]]
        told: dict[str, Any] = {
            "programs": " and ".join(str(program) for program in programs),
            "index": int(first["index"]),
            "name": str(first["name"])[:80],
            "what": str(first["what"])[:80],
        }
        cause, line = str(first["cause"]), first["line"]
        return replace(
            outcome,
            status="nondeterministic",
            cause=cause,
            message=WHAT[cause].format(**told),
            line=int(line) if line else None,
            program_id=programs[0],
            index=told["index"],
        )
    except (KeyError, TypeError, ValueError, IndexError):
        return Outcome("crashed", "the process answered nonsense", cause="crashed")


def _in_order(runner: CaseRunner, values: Values, outcome: Outcome, order: str) -> Outcome | None:
    """What to say of a call in another order; None where it passed."""
    if outcome.status == "passed":
        return None
    again = checks.call(runner, values)
    if again.status != "passed":  # in order as well, by now
        return checks.wrong_later(again)
    message = (
        f"Right when the programs run in the order of their ids, wrong when they run in {_ARTICLE[order]} order: "
        f"{outcome.message}. On a GPU the order is not defined: no program may rely on another having run."
    )
    return replace(outcome, status="nondeterministic", cause="depends_on_program_order", message=message)


_ARTICLE = {"reversed": "the reverse", "shuffled": "a shuffled"}


def _note(grade: Grade, text: Any) -> None:
    if text not in grade.verdict.notes:
        grade.verdict.notes.append(text)
