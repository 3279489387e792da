"""From the recorded accesses of a small call: which of its bytes must come from memory, and which may come from the L2.

NumPy only. Used in the runner; what it says only explains.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from grader.watch import LaunchTrace


def of_call(launches: list[LaunchTrace]) -> dict[str, Any]:
    """Bytes of a call, over its launches.

    read      at different addresses that a launch reads: the least that comes from memory
    written   at different addresses that a launch writes
    again     read again by the program that had read them: they come from memory when the L2 is too small to keep them
    shared    read by several programs: counted once for each after the first
    programs  of all launches
    load_bytes   one access of each line that loads in a program, together: what it can wait for at a time in a loop
    loops     whether some line of a program loads more than once
    """
    total = {"read": 0, "written": 0, "again": 0, "shared": 0, "programs": 0, "load_bytes": 0}
    loops = False
    for launch in launches:
        counted = _of_launch(launch)
        loops |= counted.pop("loops") > 1
        total["load_bytes"] = max(total["load_bytes"], counted.pop("load_bytes"))
        for name, value in counted.items():
            total[name] += value
    return {**total, "loops": loops}


def _of_launch(launch: LaunchTrace) -> dict[str, int]:
    programs = int(np.prod(launch.grid)) if launch.grid else 0
    loads = [a for a in launch.accesses if a.kind != "store" and a.addresses.size]
    stores = [a for a in launch.accesses if a.kind != "load" and a.addresses.size]
    read = sum(a.addresses.size * a.itemsize for a in loads)
    once_each, once = _distinct(loads, by_program=True), _distinct(loads, by_program=False)
    return {
        "read": once,
        "written": _distinct(stores, by_program=False),
        "again": read - once_each,
        "shared": once_each - once,
        "programs": programs,
        **_of_lines(loads),
    }


def _distinct(accesses: list[Any], by_program: bool) -> int:
    """Bytes at different addresses; `by_program`: different for each program, summed over the programs."""
    groups: dict[tuple[int, int], list[Any]] = {}
    for access in accesses:
        groups.setdefault((access.program if by_program else 0, access.itemsize), []).append(access.addresses)
    return sum(np.unique(np.concatenate(found)).size * size for (_, size), found in groups.items())


def _of_lines(loads: list[Any]) -> dict[str, int]:
    """Of the program that loads most: how often its busiest line loads, and one access of every line, in bytes."""
    lines: dict[int, dict[int, list[int]]] = {}
    for access in loads:
        lines.setdefault(access.program, {}).setdefault(access.line, []).append(access.addresses.size * access.itemsize)
    if not lines:
        return {"loops": 0, "load_bytes": 0}
    busiest = max(lines.values(), key=lambda found: sum(map(sum, found.values())))
    return {
        "loops": max(len(sizes) for sizes in busiest.values()),
        "load_bytes": sum(max(sizes) for sizes in busiest.values()),
    }
