"""Marking of answers that need no GPU and no grader. Pure functions, shared by the app and the plain commands."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tutor.course.model import Bug, Match, Open, Predict, Quiz

USUAL_IMPORTS = ("import torch", "import triton", "import triton.language as tl")


@dataclass(frozen=True)
class Mark:
    correct: bool
    score: float  # 0 to 1
    message: str
    detail: dict[str, Any] = field(default_factory=dict)


def mark_quiz(item: Quiz | Predict, chosen: Collection[int]) -> Mark:
    """`chosen` holds 0-based option indices. Right when exactly the right options are chosen."""
    right = {index for index, option in enumerate(item.options) if option.correct}
    picked = set(chosen)
    wrong, missed = picked - right, right - picked
    detail = {"chosen": sorted(picked)}
    if not wrong and not missed:
        return Mark(True, 1.0, "Right.", detail)
    score = max(0.0, (len(picked & right) - len(wrong)) / len(right))
    if len(right) == 1:
        message = "Not right."
    else:
        message = f"Not right: {len(wrong)} ticked that should not be, {len(missed)} missed."
    return Mark(False, score, message, detail)


def mark_match(item: Match, answer: Mapping[int, int]) -> Mark:
    """`answer` maps the index of a left side to the index of the right side chosen for it."""
    texts = [pair.right for pair in item.pairs]
    good = sum(left in answer and texts[answer[left]] == texts[left] for left in range(len(texts)))
    total = len(item.pairs)
    detail = {"answer": {str(left): right for left, right in answer.items()}}
    return Mark(good == total, good / total, f"{good} of {total} pairs are right.", detail)


def shuffled_right(item: Match, seed: int = 0) -> tuple[int, ...]:
    """The order in which to show the right-hand sides: indices into `pairs`, never the order of the answers."""
    order = list(range(len(item.pairs)))
    chance = random.Random(f"{item.id}/{seed}")
    while order == sorted(order):
        chance.shuffle(order)
    return tuple(order)


def mark_bug_line(bug: Bug, line: int) -> Mark:
    """`line` is a 1-based line of `bug.code`."""
    right = line in bug.faulty
    message = "Right, that is where it goes wrong." if right else f"Line {line} is not where it goes wrong."
    return Mark(right, 1.0 if right else 0.0, message, {"line": line})


def mark_open(item: Open, claimed: Sequence[int]) -> Mark:
    """`claimed` holds the 0-based indices of the rubric points the learner says the answer made; 70 % passes."""
    got = sum(item.rubric[index].points for index in set(claimed))
    total = sum(point.points for point in item.rubric)
    return Mark(got >= 0.7 * total, got / total, f"{got} of {total} points.", {"claimed": sorted(set(claimed))})


def bug_source(bug: Bug) -> str:
    """The file that is graded: the item's code, with the usual imports in front when it has none."""
    return _imports(bug) + _with_newline(bug.code)


def mended_source(bug: Bug, mends: Mapping[int, str] | None = None, *, imports: bool = True) -> str:
    """`bug_source` with lines replaced: line of `bug.code` to new text; empty text deletes. None takes the author's."""
    if mends is None:
        mends = {mend.line: mend.text for mend in bug.mends}
    lines = bug.code.rstrip("\n").split("\n")
    kept = [mends.get(number, line) for number, line in enumerate(lines, 1)]
    out = [text.rstrip("\n") for number, text in enumerate(kept, 1) if text or number not in mends]
    return (_imports(bug) if imports else "") + "\n".join(out) + "\n"


def same_mend(bug: Bug, mends: Mapping[int, str]) -> bool:
    """Whether the lines say what the author's say, spacing and comments aside: for where no grader can run them."""
    try:
        mine, author = (ast.dump(ast.parse(mended_source(bug, lines))) for lines in (mends, None))
    except SyntaxError:
        return False
    return mine == author


def indented(bug: Bug, line: int, typed: str) -> str:
    """What was typed for a line, with that line's indentation when it came without any."""
    if not typed.strip() or typed[0].isspace():
        return typed
    old = bug.code.split("\n")[line - 1]
    indent = old[: len(old) - len(old.lstrip())]
    return "\n".join(indent + part for part in typed.split("\n"))


def submission_line(bug: Bug, grader_line: int, mends: Mapping[int, str] | None = None) -> int:
    """The line of `bug.code` behind a line that the grader named in `mended_source(bug, mends)`, by default in
    `bug_source(bug)`. 0 or less: a line of the imports put in front."""
    left = grader_line - _imports(bug).count("\n")
    if left <= 0:
        return left
    mends = mends or {}
    lines = bug.code.rstrip("\n").split("\n")
    for number, line in enumerate(lines, 1):
        text = mends.get(number, line)
        left -= len(text.rstrip("\n").split("\n")) if text or number not in mends else 0
        if left <= 0:
            return number
    return len(lines)


def _imports(bug: Bug) -> str:
    starts = [line.strip() for line in bug.code.splitlines()]
    if any(line.startswith(("import ", "from ")) for line in starts):
        return ""
    return "\n".join(USUAL_IMPORTS) + "\n\n\n"


def _with_newline(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
