"""An access map as plain text: for the command line and for pictures in lessons."""

from __future__ import annotations

import textwrap

from grader.access_map.model import AccessMap
from tutor.access import words
from tutor.access.cells import Choice, Grid, grid, touches


def report(shown: AccessMap, width: int = 80, *, program: int | None = None, height: int = 16) -> str:
    """The whole map: the call, each tensor with its grid and its facts, each access in words."""
    parts = [f"{shown.exercise}, {words.call_line(shown)}", *words.state_lines(shown), words.moved_line(shown)]
    parts = [_wrapped(part, width) for part in parts]
    for index in range(len(shown.tensors)):
        choice = Choice(tensor=index, program=program)
        parts += ["", _wrapped(words.tensor_line(shown, index), width), *picture(shown, choice, width, height)]
        parts += [_wrapped(fact, width, "  ") for fact in words.tensor_facts(shown, index)]
        if program is not None:
            parts.append(_wrapped(words.program_line(shown, choice), width, "  "))
        for site in shown.sites:
            if site.tensor == index:
                parts.append(_wrapped(f"{words.site_line(shown, site)}: {site.source}".rstrip(": "), width, "  "))
                parts += [_wrapped(fact, width, "    ") for fact in words.site_facts(shown, site)]
    parts += _elsewhere(shown, width)
    if shown.tensors:
        parts += ["", _wrapped(words.signs_line(Choice(program=program)), width)]
        parts += [_wrapped(line, width) for line in (words.label_line(shown), words.LANES) if line]
    return "\n".join(parts)


def picture(shown: AccessMap, choice: Choice, width: int, height: int) -> list[str]:
    """The grid of one tensor, with what a cell stands for where that is not one element."""
    drawn = grid(touches(shown, choice), width, height)
    scale = [words.scale_line(drawn)] if drawn.across * drawn.down > 1 else []
    return [*lines(drawn), *scale]


def lines(drawn: Grid) -> list[str]:
    rows = [f"{row.label:>{drawn.label_width}} {''.join(cell.sign for cell in row.cells)}" for row in drawn.rows]
    return [*rows, *(edge_line(drawn, number) for number in range(len(drawn.edges)))]


def edge_line(drawn: Grid, number: int) -> str:
    row = drawn.edges[number]
    return f"{row.label} {''.join(cell.sign for cell in row.cells)}{edge_scale(drawn)}"


def edge_scale(drawn: Grid) -> str:
    return f" ({drawn.edge_scale} elements a sign)" if drawn.edge_scale > 1 else ""


def _elsewhere(shown: AccessMap, width: int) -> list[str]:
    told = [site for site in shown.sites if site.tensor is None]
    if not told:
        return []
    parts = ["", "Memory that is no argument:"]
    for site in told:
        parts.append(_wrapped(f"{words.site_line(shown, site)}: {site.source}".rstrip(": "), width, "  "))
        parts += [_wrapped(fact, width, "    ") for fact in words.site_facts(shown, site)]
    return parts


def _wrapped(text: str, width: int, indent: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=indent, subsequent_indent=f"{indent}  ", break_long_words=False)
