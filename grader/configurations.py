"""Autotuned kernels: each configuration on its own, and what their keys and constexprs make the compiler do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from grader import checks
from grader.case_runner import CaseRunner, Outcome
from grader.failures import RunnerGone
from grader.grade import Grade
from grader.program_order import Finding, Passed

MOST = 32  # configurations of one kernel that are tried
SIZES = 3  # as many values of one constexpr, none a power of two, are the sizes themselves


def each_configuration(grade: Grade, runner: CaseRunner, passed: Sequence[Passed]) -> Finding | None:
    """The first configuration whose answer is wrong on fresh data. Notes on keys and constexprs go to the verdict."""
    told = _told(runner)
    kernels = told["kernels"]
    _advise(grade, kernels, told["constexprs"])
    for position, kernel in enumerate(kernels):
        names = [str(name) for name in kernel["configurations"]][:MOST]
        for chosen in _cases(passed):
            values = grade.values(chosen.case)
            for number, name in enumerate(names):
                outcome = checks.call(runner, values, configuration=(position, number))
                if outcome.status == "passed":
                    continue
                if checks.call(runner, values).status != "passed":
                    return chosen.case, values, checks.wrong_later(outcome)
                return chosen.case, values, _named(outcome, str(kernel["kernel"]), name)
    return None


def not_tuned(grade: Grade, passed: Sequence[Passed]) -> str | None:
    """What is missing, where the task asks for an autotuned kernel and none was launched."""
    if not grade.problem.autotuned or any(p.outcome.tuned for p in passed):
        return None
    return (
        "the answer is right, but no autotuned kernel was launched: the task asks for @triton.autotune(configs=…, "
        "key=…) above @triton.jit, and for a launch that leaves the tuned values to it"
    )


def _told(runner: CaseRunner) -> dict[str, list[dict[str, Any]]]:
    try:
        reply = runner.process.ask({"op": "tuners"}, runner.limit)
        return {
            "kernels": [
                {
                    "kernel": str(row["kernel"]),
                    "configurations": [str(name) for name in row["configurations"]],
                    **{part: [str(name) for name in row[part]] for part in ("keys", "pointers", "sizes", "factors")},
                }
                for row in reply["kernels"][:16]
            ],
            "constexprs": [
                {"kernel": str(row["kernel"]), "name": str(row["name"]), "values": [int(v) for v in row["values"]]}
                for row in reply["constexprs"][:256]
            ],
        }
    except (RunnerGone, KeyError, TypeError, ValueError):
        return {"kernels": [], "constexprs": []}


def _cases(passed: Sequence[Passed]) -> list[Passed]:
    """The smallest, and the largest light one."""
    smallest = min(passed, key=lambda p: p.size)
    largest = max((p for p in passed if p.light), key=lambda p: p.size, default=smallest)
    return [smallest] if largest is smallest else [smallest, largest]


def _named(outcome: Outcome, kernel: str, name: str) -> Outcome:
    message = f"Configuration {name} of {kernel}, on its own and on fresh data: {outcome.message}"
    if outcome.status == "wrong_answer":
        message += ". The tuner may pick any of them: the grid, the loop and the masks must fit each"
    return replace(outcome, message=message, cause="wrong_configuration")


def _advise(grade: Grade, kernels: list[dict[str, Any]], constexprs: list[dict[str, Any]]) -> None:
    notes = grade.verdict.notes
    for kernel in kernels:
        name, keys = kernel["kernel"], kernel["keys"]
        if len(kernel["configurations"]) < 2:
            notes.append(f"{name}: one configuration leaves the tuner nothing to choose from")
            continue
        for key in keys:
            if key in kernel["pointers"]:
                notes.append(f"{name}: the key names {key}, a tensor: every new tensor is tuned for again")
            elif key in kernel["factors"]:
                notes.append(
                    f"{name}: the key names {key}, a number that changes no size: each new value is tuned for again"
                )
        if kernel["sizes"] and not set(keys) & set(kernel["sizes"]):
            what = ", ".join(kernel["sizes"])
            notes.append(
                f"{name}: the sizes change between calls ({what}) and none of them is in the key: what is picked for "
                "the first call serves all later ones"
            )
    told = set()
    for row in constexprs:
        sizes = [value for value in row["values"] if value > 16 and value & (value - 1)]
        if len(sizes) >= SIZES and row["kernel"] not in told:
            told.add(row["kernel"])
            notes.append(
                f"recompiles_for_every_size: {row['name']} of {row['kernel']} is a tl.constexpr and had the values "
                f"{', '.join(str(v) for v in sizes[:4])}, …: each of them compiles the kernel anew. Where calls bring "
                "many sizes, pass it as an ordinary argument"
            )
