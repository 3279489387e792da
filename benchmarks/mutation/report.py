"""The result of a mutation run as Markdown."""

from __future__ import annotations

import platform
from collections import Counter
from datetime import date
from importlib.metadata import version
from typing import Any

OUTCOMES = ("killed", "equal", "escaped", "misjudged", "race", "only large", "borderline", "undecided")
ABOUT = """\
A mutant is a reference solution with one edit. *Different* and *equal* are known without the grader, from a comparison
with float64 on 19 to 160 calls an exercise, each in guard bands and with NaN in what is not written, and from a compile
for sm_90; see `benchmarks/mutation/truth.py`. *Killed*: different, and not passed. *Equal*: equal, and passed. *Named*:
the share of the killed whose verdict names a cause. Inputs that the interpreter computes wrongly even for the solution
(bfloat16 arithmetic) are left out, and no tensor passes 2^31 elements: a dropped `.to(tl.int64)` counts as equal.
"""
SECTIONS = {
    "escaped": "Escaped: different, and passed",
    "misjudged": "Misjudged: equal, and not passed",
    "race": "Races: right with the programs in order, wrong in reverse, and passed",
    "only large": "Only large: wrong at sizes that the grader judges on a GPU only, and passed in the interpreter",
    "undecided": "Undecided: wrong only with bfloat16, which the interpreter does not compute rightly",
    "borderline": "Borderline: between one and two bounds from the reference",
}


def table(rows: list[dict[str, Any]]) -> str:
    """A row an exercise, and the total."""
    lines = ["| exercise | mutants | " + " | ".join(OUTCOMES) + " | named |", "|---|" + "---:|" * (len(OUTCOMES) + 2)]
    names = sorted({row["exercise"] for row in rows})
    for name in [*names, "all"]:
        own = [row for row in rows if name in ("all", row["exercise"])]
        counts = Counter(row["outcome"] for row in own)
        title = "**all**" if name == "all" else f"`{name}`"
        lines.append(f"| {title} | {len(own)} | " + " | ".join(str(counts[o]) for o in OUTCOMES) + f" | {named(own)} |")
    return "\n".join(lines) + "\n"


def named(rows: list[dict[str, Any]]) -> str:
    """The share of killed mutants whose verdict names a cause."""
    killed = [row for row in rows if row["outcome"] == "killed"]
    known = sum(row["cause"] not in (None, "unknown") for row in killed)
    return f"{100 * known / len(killed):.0f} %" if killed else "–"


def page(record: dict[str, Any]) -> str:
    rows = record["mutants"]
    missing = record["without_inputs"]
    operators = Counter(row["operator"] for row in rows)
    statuses = Counter(row["status"] for row in rows if row["outcome"] == "killed")
    parts = [
        "# The grader on random mutations of the solutions\n",
        f"{date.today()}, interpreter, torch {version('torch')}, triton {version('triton')}, "
        f"Python {platform.python_version()}; seed {record['seed']}. Made by "
        f"`python -m benchmarks.mutation --seed {record['seed']} --count {len(rows)}`.\n",
        ABOUT,
        *([f"Solutions for which nobody has written inputs yet: {', '.join(missing)}.\n"] if missing else []),
        table(rows),
        f"Operators: {', '.join(f'{name} {count}' for name, count in operators.most_common())}.\n",
        f"Statuses of the killed: {', '.join(f'{name} {count}' for name, count in statuses.most_common())}.\n",
    ]
    for outcome, title in SECTIONS.items():
        chosen = [row for row in rows if row["outcome"] == outcome]
        if chosen:
            parts.append(f"## {title}\n")
            parts += [_entry(row) for row in chosen]
    return "\n".join(parts)


def _entry(row: dict[str, Any]) -> str:
    truth = f"{row['truth']}: {row['why']}" + (f" ({row['call']})" if row["call"] else "")
    return (
        f"`{row['exercise']}`, {row['operator']}, line {row['line']}. Truth: {truth}. Grader: {row['status']}, "
        f"{row['cause']}{', ' + row['case'] if row['case'] else ''}.\n\n```diff\n{row['diff']}\n```\n"
    )
