"""What an access map says in words: each function gives short lines, exactly as they are shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from grader.access_map.model import AccessMap, ByProgram, MappedTensor, Order, Site, Visit
from grader.access_map.runs import expanded, size_of
from tutor.access.cells import LABELS, Choice, Grid, Touches, index_of, sites_of, visits_of

KIND = {"load": "loads", "store": "stores", "atomic": "atomically updates"}
SIGNS_ALL = "digit or letter: that program; × several; / several, each its own; ~ only some elements"
SIGNS_ONE = "L loads; S stores; B both; A atomic; small letter: only some elements"
SIGNS_ALWAYS = "· nobody; - only masked-off lanes point there; ! out of range"
LANES = (
    "Lanes are counted row by row through the block; the compiler may give them to threads in another order, and "
    "element 0 of a tensor counts as the start of a sector."
)


def tensor_name(shown: AccessMap, index: int) -> str:
    tensor = shown.tensors[index]
    names = tensor.names[0] if tensor.names else "?"
    others = f" (also {', '.join(tensor.names[1:])})" if len(tensor.names) > 1 else ""
    role = {
        "argument": f"argument {tensor.parameter}",
        "result": "the result",
        "allocated": "allocated by the launcher",
    }
    return f"{names}{others}, {role[tensor.role]}"


def tensor_line(shown: AccessMap, index: int) -> str:
    tensor = shown.tensors[index]
    shape = " × ".join(str(n) for n in tensor.shape) or "one element"
    strides = ", ".join(str(s) for s in tensor.strides)
    return f"{tensor_name(shown, index)}: {tensor.dtype} {shape}, strides ({strides}), {tensor.bytes:,} bytes"


def call_line(shown: AccessMap) -> str:
    if not shown.launches:
        return f"case {shown.case}: no kernel was launched"
    kernels = []
    for launch in shown.launches[:4]:
        grid = list(launch.grid)
        while len(grid) > 1 and grid[-1] == 1:
            grid.pop()
        count = programs_in(launch.grid)
        size = " × ".join(str(n) for n in grid)
        kernels.append(f"{launch.kernel} on {count} program{'s' * (count != 1)}{f' ({size})' if len(grid) > 1 else ''}")
    more = f", and {len(shown.launches) - 4} more launches" if len(shown.launches) > 4 else ""
    return f"case {shown.case}: {', then '.join(kernels)}{more}"


def programs_in(grid: Iterable[int]) -> int:
    count = 1
    for n in grid:
        count *= n
    return count


def program_name(shown: AccessMap, program: int, launch: int = 0) -> str:
    """`5`, or with its ids where the grid has several axes: `5 (1, 2)`."""
    grid = list(shown.launches[launch].grid) if launch < len(shown.launches) else []
    while len(grid) > 1 and grid[-1] == 1:
        grid.pop()
    if len(grid) < 2:
        return str(program)
    return f"{program} ({', '.join(str(i) for i in index_of(program, grid))})"


def moved_line(shown: AccessMap) -> str:
    moved = f"Loads {shown.loaded_bytes:,} bytes, stores {shown.stored_bytes:,}"
    if shown.ratio is None:
        return f"{moved}."
    least = f"the least that the task needs ({shown.minimum_bytes:,} bytes)"
    if shown.loaded_bytes + shown.stored_bytes == shown.minimum_bytes:
        return f"{moved}: together {least}."
    return f"{moved}: {shown.ratio:.2f} × {least}."


def state_lines(shown: AccessMap) -> list[str]:
    """What went wrong, if anything did."""
    if shown.full:
        return [shown.message]
    if shown.status == "passed":
        return []
    where = f"line {shown.line}: " if shown.line else ""
    told = [f"! {shown.status.replace('_', ' ')}: {where}{shown.message}"]
    if shown.bad is not None:
        told.append("Lanes out of range were left out, and the kernel went on.")
    elif shown.status not in ("wrong_answer", "not_written"):
        told.append("The map goes up to there.")
    return told


def tensor_facts(shown: AccessMap, index: int) -> list[str]:
    tensor = shown.tensors[index]
    facts, count, told = tensor.facts, tensor.elements, []
    if facts.loaded:
        what = "every element" if facts.loaded == count else f"{facts.loaded:,} of {count:,} elements"
        if facts.most_times < 2:
            told.append(f"Loaded: {what}, once.")
        else:
            by = f"{facts.most_programs} programs" if facts.most_programs > 1 else "one program"
            told.append(
                f"Loaded: {what}; {facts.repeated:,} of them more than once, up to {facts.most_times} × by {by}."
            )
    if facts.stored:
        what = "every element" if facts.stored == count else f"{facts.stored:,} of {count:,} elements"
        told.append(f"Stored: {what}.")
        if facts.unstored_at is not None:
            told.append(f"· Never stored: {count - facts.stored:,}, the first at {_at(tensor, facts.unstored_at)}.")
    if facts.overlap and facts.overlap_at is not None:
        programs = " and ".join(str(p) for p in facts.overlap_programs[:2])
        first = _at(tensor, facts.overlap_at)
        told.append(f"× Stored by several programs: {facts.overlap:,}, the first at {first} by programs {programs}.")
    if facts.updated:
        told.append(f"Updated with atomics by several programs: {facts.updated:,} elements.")
    return told or ["Neither loaded nor stored."]


def _at(tensor: MappedTensor, element: int) -> str:
    return "[" + ", ".join(str(i) for i in index_of(element, tensor.seen_shape)) + "]"


def site_line(shown: AccessMap, site: Site) -> str:
    kernel = shown.launches[site.launch].kernel
    launch = f" (launch {site.launch + 1})" if len(shown.launches) > 1 else ""
    line = f"line {site.line}" if site.line else "no line"
    return f"{site.kind}, {line} of {kernel}{launch}"


def site_facts(shown: AccessMap, site: Site) -> list[str]:
    block = " × ".join(str(n) for n in site.block) if len(site.block) else "1"
    told = [f"Block of {block} lane{'s' * (block != '1')}: {_programs(site)}."]
    if site.outside:
        told.append(f"! {_lanes(site.outside)} out of range.")
    if site.between:
        told.append(f"! {_lanes(site.between)} in memory between the tensor's elements: look at the strides.")
    return told + order_lines(site.order)


def order_lines(order: Order) -> list[str]:
    words = {
        "one": "One lane.",
        "contiguous": "Neighbouring lanes touch neighbouring elements (contiguous).",
        "backwards": "Neighbouring lanes touch neighbouring elements, backwards.",
        "strided": f"Neighbouring lanes are {order.step} elements apart (strided).",
        "broadcast": "All lanes of a row touch one element (broadcast).",
        "scattered": "Neighbouring lanes follow no fixed step (scattered).",
        "masked": "No two neighbouring lanes are active.",
    }
    told = [words[order.word]]
    if len(order.axes) > 1:
        steps = [
            f"{axis.step} along the {axis.size} of axis {number}"
            if axis.step is not None
            else f"no fixed step along the {axis.size} of axis {number}"
            for number, axis in enumerate(order.axes)
        ]
        told.append(f"Steps in the block: {', '.join(steps)}.")
    if order.groups and order.word != "one":
        lanes = order.lanes / order.groups
        touched, fewest = order.sectors / order.groups, order.fewest / order.groups
        least = ", no order fewer" if touched <= fewest else f"; in no order fewer than {fewest:.3g}"
        told.append(f"{lanes:.3g} neighbouring lanes touch {touched:.3g} sectors of 32 bytes{least}.")
    return told


def _programs(site: Site) -> str:
    """Programs that do alike, together: `programs 0–3 touch 256 each, program 4 touches 3 (253 masked off)`."""
    groups: list[tuple[list[int], tuple[int, int, int, int]]] = []
    for by in site.programs:
        counts = _counts(by)
        if groups and groups[-1][1] == counts:
            groups[-1][0].append(by.program)
        else:
            groups.append(([by.program], counts))
    told = []
    for programs, (active, masked, beyond, visits) in groups[:4]:
        one = len(programs) == 1
        name = f"program {programs[0]}" if one else f"programs {_span(programs)}"
        touch = f"{'touches' if one else 'touch'} {active:,}{'' if one else ' each'}"
        extra = [f"{masked:,} masked off"] if masked else []
        extra += [f"{beyond:,} of them at no element"] if beyond else []
        extra += [f"in {visits} iterations"] if visits > 1 else []
        told.append(f"{name} {touch}{_listed(extra)}")
    if len(groups) > 4:
        told.append(f"and {len(groups) - 4} more groups of programs")
    return ", ".join(told)


def _lanes(count: int) -> str:
    return f"{count:,} lane{'s' * (count != 1)}"


def _listed(extra: list[str]) -> str:
    return f" ({', '.join(extra)})" if extra else ""


def _span(programs: list[int]) -> str:
    whole = programs == list(range(programs[0], programs[-1] + 1))
    return f"{programs[0]}–{programs[-1]}" if whole else ", ".join(map(str, programs[:6])) + " …" * (len(programs) > 6)


def _counts(by: ByProgram) -> tuple[int, int, int, int]:
    active = sum(size_of(visit.at) for visit in by.visits)
    beyond = sum(size_of(visit.beyond) for visit in by.visits)
    masked = sum(size_of(visit.masked) + size_of(visit.masked_beyond) for visit in by.visits)
    return active + beyond, masked, beyond, len(by.visits)


def program_line(shown: AccessMap, choice: Choice) -> str:
    """What the chosen program does to the chosen tensor."""
    assert choice.program is not None
    sites = [site for site in sites_of(shown, choice) if any(by.program == choice.program for by in site.programs)]
    told = []
    for site in sites:
        only = replace(choice, site=shown.sites.index(site))
        visits = [visit for _, visit in visits_of(site, only)]
        told.append(f"{KIND[site.kind]} {_extent(visits)} (line {site.line})")
    name = f"Program {program_name(shown, choice.program, sites[0].launch if sites else 0)}"
    when = f", iteration {choice.visit}" if choice.visit is not None else ""
    return f"{name}{when}: {'; '.join(told) or 'touches nothing here'}."


def _extent(visits: list[Visit]) -> str:
    elements = [element for visit in visits for element in expanded(visit.at)]
    masked = sum(size_of(visit.masked) + size_of(visit.masked_beyond) for visit in visits)
    beyond = sum(size_of(visit.beyond) for visit in visits)
    off = f", {_lanes(masked)} masked off" if masked else ""
    off += f", {_lanes(beyond)} at no element (!)" if beyond else ""
    if not elements:
        return f"nothing{off}"
    different = len(set(elements))
    again = f" in {len(elements):,} accesses" if different < len(elements) else ""
    return f"{different:,} element{'s' * (different != 1)}{again}{off}"


def scale_line(grid: Grid) -> str:
    if grid.across * grid.down == 1:
        return "A cell is one element."
    if grid.down == 1:
        return f"A cell stands for {grid.across} neighbouring elements."
    rows = f"{grid.down} row{'s' * (grid.down > 1)}"
    return f"A cell stands for {rows} × {grid.across} column{'s' * (grid.across > 1)}."


def signs_line(choice: Choice) -> str:
    return f"{SIGNS_ONE if choice.program is not None else SIGNS_ALL}; {SIGNS_ALWAYS}"


def label_line(shown: AccessMap) -> str:
    most = max((programs_in(launch.grid) for launch in shown.launches), default=0)
    return f"Programs from {len(LABELS)} on start again at 0." if most > len(LABELS) else ""


def cell_lines(shown: AccessMap, choice: Choice, found: Touches, element: int) -> list[str]:
    """One element: its index, its address, and who touches it in which line."""
    tensor = found.tensor
    index = index_of(element, tensor.seen_shape)
    offset = sum(i * s for i, s in zip(index, tensor.strides, strict=True))
    told = [f"{_at(tensor, element)}: offset {offset} elements, {offset * tensor.itemsize} bytes from element 0."]
    for site in sites_of(shown, choice):
        reached: dict[int, int] = {}
        off: set[int] = set()
        for program, visit in visits_of(site, choice):
            times = sum(e == element for e in expanded(visit.at))
            if times:
                reached[program] = reached.get(program, 0) + times
            elif any(e == element for e in expanded(visit.masked)):
                off.add(program)
        for verb, programs in ((f"{site.kind}, line {site.line}", reached), ("masked off there", off - set(reached))):
            if programs:
                names = ", ".join(
                    program_name(shown, p, site.launch) + (f" ({reached[p]} ×)" if reached.get(p, 0) > 1 else "")
                    for p in sorted(programs)[:8]
                )
                more = f" and {len(programs) - 8} more" if len(programs) > 8 else ""
                told.append(f"{verb}: program{'s' * (len(programs) > 1)} {names}{more}")
    return told if len(told) > 1 else [*told, "Nobody touches it."]
