"""Items as plain text. Markdown stays as written: it reads well, and code must appear exactly as it is."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from tutor.answers import mended_source, shuffled_right
from tutor.course.course import kind_of
from tutor.course.model import Bug, Exercise, Item, Lesson, Match, Module, Open, Predict, Quiz, Walkthrough
from tutor.course.pictures import without_info
from tutor.workspace import stub_doc


def item_text(item: Item, width: int = 80, *, answer: bool = False) -> str:
    head = f"{item.title}\n{kind_of(item)} {item.id}, about {item.minutes} min"
    return "\n\n".join([head, *_parts(item, width, answer)])


def module_text(module: Module, width: int = 80) -> str:
    parts = [f"{module.title} ({module.id})", wrapped(module.blurb, width)]
    parts += ["What interviewers probe", wrapped(module.probes, width)]
    for title, notes in (("Gotchas", module.gotchas), ("Versions", module.versions)):
        if notes:
            parts += [title, "\n".join(bullet("-", note.text, width) for note in notes)]
    if module.next:
        parts += ["Next", wrapped(module.next, width)]
    return "\n\n".join(parts)


def _parts(item: Item, width: int, answer: bool) -> Iterator[str]:
    match item:
        case Lesson():
            for number, page in enumerate(item.pages, 1):
                yield f"{number}/{len(item.pages)}  {page.title}"
                yield wrapped(without_info(page.text), width)
        case Quiz() | Predict():
            yield from question_parts(item, width)
            if answer:
                yield from choice_whys(item, width)
        case Bug():
            yield from bug_parts(item, width)
            if answer:
                yield from bug_answer(item, width)
        case Match():
            yield from match_parts(item, width)
            if answer:
                yield "\n".join(
                    bullet("-", f"{pair.left} = {pair.right}{f'. {pair.why}' if pair.why else ''}", width)
                    for pair in item.pairs
                )
        case Walkthrough():
            yield wrapped(item.intro, width)
            yield numbered(item.stage)
            for number, step in enumerate(item.steps, 1):
                where = f" (line {', '.join(map(str, step.lines))})" if step.lines else ""
                text = f"Step {number} of {len(item.steps)}{where}\n{wrapped(step.text, width)}"
                if step.state:
                    longest = max(map(len, step.state))
                    text += "\n" + "\n".join(f"  {name:{longest}} = {value}" for name, value in step.state.items())
                yield text
        case Open():
            yield wrapped(item.question, width)
            if answer:
                yield from open_answer(item, width)
            else:
                yield f"The model answer: triton-prep show {item.id} --answer"
        case Exercise():
            yield wrapped(item.brief, width)
            yield f"Task ({item.exercise})"
            yield table(stub_doc(item.exercise), width)
            if answer and item.after:
                yield f"Once it passes\n{wrapped(item.after, width)}"


def question_parts(item: Quiz | Predict, width: int) -> Iterator[str]:
    yield wrapped(item.question, width)
    if item.code:
        yield numbered(item.code)
    yield "\n".join(bullet(f"{number}.", option.text, width) for number, option in enumerate(item.options, 1))


def choice_whys(item: Quiz | Predict, width: int, chosen: frozenset[int] = frozenset()) -> Iterator[str]:
    lines = []
    for number, option in enumerate(item.options, 1):
        mark = "✓ right" if option.correct else "✗ wrong"
        mine = " (yours)" if number - 1 in chosen else ""
        lines.append(bullet(f"{number}.", f"{mark}{mine}: {option.why}", width))
    yield "\n".join(lines)
    if isinstance(item, Quiz) and item.remember:
        yield wrapped(f"Remember: {item.remember}", width)
    if isinstance(item, Predict):
        seen = item.measured
        yield wrapped(f"Measured: {seen.figure} on {seen.device}, {seen.versions}, {seen.date}", width)


def bug_parts(item: Bug, width: int) -> Iterator[str]:
    yield wrapped(item.story, width)
    yield numbered(item.code)


def bug_answer(item: Bug, width: int) -> Iterator[str]:
    yield f"Faulty: line {', '.join(map(str, item.faulty))}. Mended:"
    yield numbered(mended_source(item, imports=False))
    yield wrapped(item.explain, width)


def match_parts(item: Match, width: int) -> Iterator[str]:
    yield wrapped(item.prompt, width)
    yield "\n".join(bullet(f"{number}.", pair.left, width) for number, pair in enumerate(item.pairs, 1))
    order = shuffled_right(item)
    yield "\n".join(bullet(f"{chr(97 + place)}.", item.pairs[index].right, width) for place, index in enumerate(order))


def open_answer(item: Open, width: int) -> Iterator[str]:
    yield wrapped(item.answer, width)
    yield "Points\n" + "\n".join(
        bullet(f"{number}.", f"{point.text} ({point.points})", width) for number, point in enumerate(item.rubric, 1)
    )
    if item.strong:
        yield wrapped(f"A strong answer: {item.strong}", width)
    if item.weak:
        yield wrapped(f"A weak answer: {item.weak}", width)
    if item.followups:
        yield "Follow-up questions\n" + "\n".join(bullet("-", text, width) for text in item.followups)


def numbered(code: str) -> str:
    lines = code.rstrip("\n").split("\n")
    return "\n".join(f"{number:3} | {line}".rstrip() for number, line in enumerate(lines, 1))


def wrapped(text: str, width: int) -> str:
    """Prose filled to `width`; fenced and indented code, tables and list entries keep their lines."""
    out: list[str] = []
    fenced = False
    for line in text.rstrip("\n").split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > width and not line.startswith(("    ", "|")):
            mark = re.match(r"\s*(?:(?:[-*]|\d+\.) +)?", line)
            indent = " " * (len(mark[0]) if mark else 0)
            out += textwrap.wrap(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
            continue
        out.append(line)
    return "\n".join(out)


def table(text: str, width: int) -> str:
    """Lines of a name and what it is: where one is too long, it goes on under what it is."""
    out: list[str] = []
    for line in text.split("\n"):
        found = re.match(r"\s*(?:\S.*?\s{2,})?", line)
        indent = " " * (len(found[0]) if found else 0)
        out += textwrap.wrap(line, width, subsequent_indent=indent) if len(line) > width else [line]
    return "\n".join(out)


def bullet(mark: str, text: str, width: int) -> str:
    body = wrapped(text, width - len(mark) - 1)
    return f"{mark} " + body.replace("\n", "\n" + " " * (len(mark) + 1))
