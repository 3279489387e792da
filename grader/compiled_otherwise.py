"""What the interpreter gets right and the compiler does not: a name that follows another one through a loop."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from grader.causes import Diagnosis, general
from grader.loop_carries import carries
from grader.stale_names import StaleName, stale_names

if TYPE_CHECKING:
    from grader.verdict import Verdict

KNOWN = ((3, 6), (3, 9))  # Triton's versions that are known to do so, both included
MESSAGE = (
    "`{name}` takes the value of `{follows}` in this loop, and the two hold one value when the loop starts. Triton 3.6 "
    "to 3.9 then compile `{name}` as if the loop left it alone: line {read} reads the value from before the loop. The "
    "interpreter does what Python does, and does not show it. Before the loop, give `{name}` a value of its own: "
    "`{name} = {follows} + 0`, or the expression written out again."
)


def stale_name(verdict: Verdict, source: str) -> Diagnosis | None:
    """The first such name of the file that the compiled loops confirm; by the source alone where none was seen."""
    for one in stale_names(source):
        if _is_known(verdict.versions) if verdict.loops is None else _confirmed(one, verdict.loops):
            message = MESSAGE.format(name=one.name, follows=one.follows, read=one.read)
            return general("stale_name_in_loop", message, one.line)
    return None


def _confirmed(one: StaleName, loops: list[dict[str, Any]]) -> bool:
    """Whether its loop was compiled, carries what it surely must, and not this name."""
    seen = [row["names"] for row in loops if row["line"] == one.loop]
    return any(carries(names, other) for names in seen for other in one.carried) and not any(
        carries(names, one.name) for names in seen
    )


def _is_known(versions: Mapping[str, str]) -> bool:
    numbers = re.findall(r"\d+", versions.get("triton", ""))[:2]
    return KNOWN[0] <= tuple(map(int, numbers)) <= KNOWN[1]


def loops_of(rows: list[Any]) -> list[dict[str, Any]]:
    """What a runner tells of its kernels' loops, of which nothing is trusted."""
    told = [loop for row in rows if isinstance(row, dict) for loop in row.get("loops") or () if isinstance(loop, dict)]
    return [
        {"line": loop["line"], "names": [str(name) for name in loop["names"]]}
        for loop in told
        if isinstance(loop.get("line"), int) and isinstance(loop.get("names"), list)
    ]
