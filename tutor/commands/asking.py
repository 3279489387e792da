"""quiz: asks on stdout, reads from stdin. Works in a pipe: one line an answer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from tutor.answers import Mark, mark_match, mark_open, mark_quiz, shuffled_right
from tutor.commands.session import Session, open_session, say_unkept
from tutor.commands.terminal import FELL_SHORT, PASSED, USAGE, Stop, ask, say, width
from tutor.course import text
from tutor.course.course import UnknownItem, kind_of
from tutor.course.model import Bug, Exercise, Item, Match, Open, Predict, Quiz

Keep = Callable[[Mark], None]


def quiz(name: str, folder: Path | None) -> int:
    """An item that can be answered, or a module id for all of its questions. 0 when everything was right."""
    session = open_session(folder, create=True)
    right = []
    for item in _asked(session, name):
        session.progress.set_resume(item.id)
        right.append(ask_item(session, item))
    say_unkept(session.progress)
    return PASSED if all(right) else FELL_SHORT


def _asked(session: Session, name: str) -> list[Item]:
    for module in session.course.modules:
        if module.id == name:
            return [item for item in module.items if isinstance(item, (Quiz, Predict, Match))]
    try:
        item = session.course.item(name)
    except UnknownItem as unknown:
        raise Stop(str(unknown), USAGE) from unknown
    if isinstance(item, Exercise):
        raise Stop(f"{name} is an exercise: triton-prep grade {item.exercise}", USAGE)
    if not isinstance(item, (Quiz, Predict, Match, Bug, Open)):
        raise Stop(f"{name} is a {kind_of(item)}, nothing to answer: triton-prep show {name}", USAGE)
    return [item]


def ask_item(session: Session, item: Item) -> bool:
    """Whether it was answered right. The answer is kept before its result is shown: what was said holds."""
    start = time.monotonic()
    say(f"{item.title}  [{item.id}]\n")

    def keep(mark: Mark) -> None:
        session.progress.record_answer(
            item.id,
            kind_of(item),
            correct=mark.correct,
            score=mark.score,
            seconds=time.monotonic() - start,
            detail=mark.detail,
        )

    match item:
        case Quiz() | Predict():
            mark = _choice(item, keep)
        case Match():
            mark = _pairs(item, keep)
        case Open():
            mark = _open(item, keep)
        case Bug():
            from tutor.commands.mending import ask_bug

            mark = ask_bug(session, item, keep)
    return mark.correct


def _choice(item: Quiz | Predict, keep: Keep) -> Mark:
    say("\n\n".join(text.question_parts(item, width())))
    several = isinstance(item, Quiz) and item.several
    prompt = "\nYour answers, such as 1,3: " if several else "\nYour answer: "
    while True:
        chosen = _numbers(ask(prompt), len(item.options))
        if chosen and (several or len(chosen) == 1):
            break
        say(f"Write {'numbers' if several else 'one number'} from 1 to {len(item.options)}.")
    mark = mark_quiz(item, chosen)
    keep(mark)
    _result(mark)
    say("\n\n".join(text.choice_whys(item, width(), frozenset(chosen))))
    return mark


def _pairs(item: Match, keep: Keep) -> Mark:
    say("\n\n".join(text.match_parts(item, width())))
    order = shuffled_right(item)
    last = chr(96 + len(order))
    while True:
        answer = {
            int(left) - 1: order[ord(right.lower()) - 97]
            for left, right in re.findall(r"(\d+)\s*[-:=]?\s*([a-zA-Z])", ask("\nYour pairs, such as 1b 2a: "))
            if 1 <= int(left) <= len(order) and "a" <= right.lower() <= last
        }
        if answer:
            break
        say(f"Write pairs of a number from 1 to {len(order)} and a letter from a to {last}.")
    mark = mark_match(item, answer)
    keep(mark)
    _result(mark)
    for number, pair in enumerate(item.pairs):
        right = number in answer and item.pairs[answer[number]].right == pair.right
        why = f". {pair.why}" if pair.why else ""
        say(text.bullet("✓ right" if right else "✗ wrong", f"{pair.left} = {pair.right}{why}", width()))
    return mark


def _open(item: Open, keep: Keep) -> Mark:
    say(text.wrapped(item.question, width()))
    ask("\nAnswer it aloud or in writing, then press Enter for the model answer. ")
    say("\n\n".join(text.open_answer(item, width())))
    while True:
        line = ask("\nWhich points did you make? Numbers such as 1,3, or 0 for none: ")
        claimed = _numbers(line, len(item.rubric))
        if claimed or line.strip() == "0":
            break
        say(f"Write numbers from 1 to {len(item.rubric)}.")
    mark = mark_open(item, sorted(claimed))
    keep(mark)
    _result(mark)
    return mark


def _result(mark: Mark) -> None:
    say(f"\n{'✓' if mark.correct else '✗'} {mark.message}\n")


def _numbers(line: str, count: int) -> set[int]:
    """0-based indices from "1,3" or "1 3"; empty when anything in it is not a number in range."""
    words = re.split(r"[\s,;]+", line.strip())
    if not all(word.isdecimal() and 1 <= int(word) <= count for word in words):
        return set()
    return {int(word) - 1 for word in words}
