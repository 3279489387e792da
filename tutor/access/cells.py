"""A tensor of an access map as a grid of cells: which programs touch what a cell stands for."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from grader.access_map.model import AccessMap, MappedTensor, Site, Visit
from grader.access_map.runs import expanded

LABELS = string.digits + string.ascii_lowercase + string.ascii_uppercase  # programs beyond these start again at 0
SEVERAL, PARTLY, MIXED, GAP, MASKED, BAD = "×", "~", "/", "·", "-", "!"
WIDTHS = (128, 64, 32, 16, 8)  # cells in a row of a tensor with one axis
LOADS, STORES, UPDATES = 1, 2, 4
LETTERS = {LOADS: "L", STORES: "S", LOADS | STORES: "B"}
KINDS = {"load": LOADS, "store": STORES, "atomic": UPDATES}


@dataclass(frozen=True)
class Choice:
    """What is looked at: a tensor; of its accesses one or all; of the programs one or all; of its iterations too."""

    tensor: int = 0
    site: int | None = None  # an index into the map's sites
    program: int | None = None
    visit: int | None = None


@dataclass(frozen=True)
class Cell:
    sign: str
    tone: str  # program, several, partly, mixed, gap, masked, bad, load, store
    first: int  # the element in its upper left corner; outside the tensor: an offset
    program: int = -1


@dataclass(frozen=True)
class Row:
    label: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Grid:
    """`across` and `down`: how many elements a cell stands for along a row and over rows."""

    rows: tuple[Row, ...]
    edges: tuple[Row, ...]  # memory beside the tensor's elements
    across: int
    down: int
    edge_scale: int

    @property
    def label_width(self) -> int:
        return max((len(row.label) for row in self.rows), default=0)


@dataclass(frozen=True)
class Touches:
    """Who touches each element of a tensor, for one choice."""

    tensor: MappedTensor
    one: bool  # of one program: `kinds` counts; else `owner` and `several`
    owner: list[int]  # the last program that touches it; -1: none
    several: bytearray
    kinds: bytearray
    masked: bytearray
    outside: dict[int, bool]  # offsets that are no element: whether an active lane touches it, or a masked-off one


def sites_of(shown: AccessMap, choice: Choice) -> tuple[Site, ...]:
    if choice.site is not None:
        return (shown.sites[choice.site],)
    return tuple(site for site in shown.sites if site.tensor == choice.tensor)


def visits_of(site: Site, choice: Choice) -> Iterator[tuple[int, Visit]]:
    for by in site.programs:
        if choice.program is None or by.program == choice.program:
            chosen = by.visits if choice.visit is None else by.visits[choice.visit : choice.visit + 1]
            for visit in chosen:
                yield by.program, visit


def touches(shown: AccessMap, choice: Choice) -> Touches:
    tensor = shown.tensors[choice.tensor]
    count = tensor.elements
    found = Touches(
        tensor,
        choice.program is not None,
        [-1] * count,
        bytearray(count),
        bytearray(count),
        bytearray(count),
        {},
    )
    launch, owner = -1, found.owner
    for site in sorted(sites_of(shown, choice), key=lambda site: site.launch):
        if site.launch != launch:  # programs of two launches do not overlap: one comes after the other
            launch, before = site.launch, owner
            owner = [-1] * count
            _merge(found.owner, before)
        for program, visit in visits_of(site, choice):
            for element in expanded(visit.at):
                if owner[element] not in (-1, program):
                    found.several[element] = 1
                owner[element] = program
                found.kinds[element] |= KINDS[site.kind]
            for element in expanded(visit.masked):
                found.masked[element] = 1
            for offset in expanded(visit.masked_beyond):
                found.outside.setdefault(offset, False)
            for offset in expanded(visit.beyond):
                found.outside[offset] = True
    _merge(found.owner, owner)
    return found


def _merge(into: list[int], owner: list[int]) -> None:
    if owner is not into:
        into[:] = [new if new >= 0 else old for old, new in zip(into, owner, strict=True)]


def grid(found: Touches, width: int, height: int) -> Grid:
    """At most `width` columns, labels included, and about `height` rows; where it does not fit, a cell stands for more
    elements, a power of two along each axis."""
    shape = found.tensor.seen_shape
    strips, scale = _edges(found, max(8, width - 36))
    room = max(1, height - len(strips))
    if len(shape) <= 1:
        plan = _one_axis(found.tensor.elements, width, room)
    else:
        plan = _two_axes(shape, width, room)
    rows = tuple(Row(label, tuple(_cell(found, part) for part in parts)) for label, parts in plan.rows())
    return Grid(rows, strips, plan.across, plan.down, scale)


@dataclass(frozen=True)
class _Plan:
    """Elements of `lines` rows with `columns` columns, `across` × `down` of them to a cell."""

    lines: int
    columns: int
    across: int
    down: int
    total: int
    leading: tuple[int, ...] = ()  # sizes of the axes that `lines` counts

    def rows(self) -> Iterator[tuple[str, list[list[range]]]]:
        for line in range(0, self.lines, self.down):
            cells = []
            for column in range(0, self.columns, self.across):
                stop = min(column + self.across, self.columns)
                parts = [
                    range(row * self.columns + column, min(row * self.columns + stop, self.total))
                    for row in range(line, min(line + self.down, self.lines))
                ]
                if parts[0]:
                    cells.append(parts)
            yield self.label(line), cells

    def label(self, line: int) -> str:
        if not self.leading:
            return str(line * self.columns)
        return ",".join(str(i) for i in index_of(line, self.leading))


def _one_axis(total: int, width: int, height: int) -> _Plan:
    room = width - len(str(total)) - 1
    cells = next((n for n in WIDTHS if n <= room), 1)
    across = 1
    while -(-total // (cells * across)) > height:
        across *= 2
    columns = min(cells * across, max(total, 1))
    return _Plan(max(1, -(-total // columns)), columns, across, 1, total)


def _two_axes(shape: tuple[int, ...], width: int, height: int) -> _Plan:
    *leading, columns = shape
    lines = 1
    for n in leading:
        lines *= n
    label = len(",".join(str(max(n - 1, 0)) for n in leading))
    across = down = 1
    while -(-columns // across) > max(1, width - label - 1):
        across *= 2
    while -(-lines // down) > height:
        down *= 2
    return _Plan(lines, max(columns, 1), across, down, lines * columns, tuple(leading))


def _cell(found: Touches, parts: list[range]) -> Cell:
    elements = [element for part in parts for element in part]
    first = elements[0]
    touched = [element for element in elements if found.owner[element] >= 0]
    whole = len(touched) == len(elements)
    if found.one:
        kinds = 0
        for element in touched:
            kinds |= found.kinds[element]
        if touched:
            letter = LETTERS.get(kinds, "A")
            tone = "load" if kinds == LOADS else "store"
            return Cell(letter if whole else letter.lower(), tone, first, found.owner[touched[0]])
    elif touched:
        programs = {found.owner[element] for element in touched}
        one = min(programs)
        if any(found.several[element] for element in touched):
            return Cell(SEVERAL, "several", first, one)
        if not whole:
            return Cell(PARTLY, "partly", first, one)
        if len(programs) > 1:
            return Cell(MIXED, "mixed", first, one)
        return Cell(LABELS[one % len(LABELS)], "program", first, one)
    if any(found.masked[element] for element in elements):
        return Cell(MASKED, "masked", first)
    return Cell(GAP, "gap", first)


def _edges(found: Touches, width: int) -> tuple[tuple[Row, ...], int]:
    """Before the tensor's memory, between its elements, past its end: a sign for each offset that is pointed at."""
    low, high = found.tensor.low, found.tensor.high
    parts: dict[str, list[int]] = {"before": [], "between": [], "past the end": []}
    for offset in sorted(found.outside):
        parts["before" if offset < low else "between" if offset < high else "past the end"].append(offset)
    longest = max(len(offsets) for offsets in parts.values())
    scale = 1
    while -(-longest // scale) > width:
        scale *= 2
    rows = []
    for label, offsets in parts.items():
        if offsets:
            chunks = [offsets[i : i + scale] for i in range(0, len(offsets), scale)]
            rows.append(Row(label, tuple(_edge(found, chunk) for chunk in chunks)))
    return tuple(rows), scale


def _edge(found: Touches, offsets: list[int]) -> Cell:
    bad = any(found.outside[offset] for offset in offsets)
    return Cell(BAD if bad else MASKED, "bad" if bad else "masked", offsets[0])


def index_of(element: int, shape: Iterable[int]) -> tuple[int, ...]:
    """The index along each axis of an element counted row by row."""
    found = []
    for n in reversed(tuple(shape)):
        element, i = divmod(element, max(n, 1))
        found.append(i)
    return tuple(reversed(found))


@dataclass(frozen=True)
class Steps:
    """Where one can go from a choice: programs, iterations, sites."""

    shown: AccessMap
    choice: Choice

    @cached_property
    def sites(self) -> list[int]:
        return [i for i, site in enumerate(self.shown.sites) if site.tensor == self.choice.tensor]

    @property
    def programs(self) -> list[int]:
        return sorted({by.program for site in sites_of(self.shown, self.choice) for by in site.programs})

    @property
    def visits(self) -> int:
        """Iterations of the longest loop around the chosen accesses, of the chosen program or of any."""
        chosen = replace(self.choice, visit=None)
        return max(
            (
                len(by.visits)
                for site in sites_of(self.shown, chosen)
                for by in site.programs
                if chosen.program in (None, by.program)
            ),
            default=0,
        )

    def program(self, direction: int) -> Choice:
        return replace(self.choice, program=_stepped(self.programs, self.choice.program, direction), visit=None)

    def visit(self, direction: int) -> Choice:
        return replace(self.choice, visit=_stepped(list(range(self.visits)), self.choice.visit, direction))

    def site(self, direction: int) -> Choice:
        return replace(self.choice, site=_stepped(self.sites, self.choice.site, direction), visit=None)

    def tensor(self, direction: int) -> Choice:
        count = max(1, len(self.shown.tensors))
        return Choice((self.choice.tensor + direction) % count, None, self.choice.program, None)


def _stepped(stops: list[int], at: int | None, direction: int) -> int | None:
    """All (None), the first, … the last; it stays at either end."""
    place = stops.index(at) + 1 if at in stops else 0
    place = min(max(place + direction, 0), len(stops))
    return None if place == 0 else stops[place - 1]
