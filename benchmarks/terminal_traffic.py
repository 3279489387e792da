"""Bytes that the app writes to its terminal: at the start, idle, for a page, a grade, a minute of a drill's clock.

Run:  python -m benchmarks.terminal_traffic [--ssh] [--size 80x24]
Through a pseudo-terminal that knows synchronised output, on a workspace of its own, with the real grader. Bytes do not
depend on the machine's speed, except that a slow grade draws its stages one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.terminal import Terminal
from grader import catalog
from tests.web.served import without_tour

REPOSITORY = Path(__file__).resolve().parent.parent
IDLE_SECONDS = 10.0


def start(workspace: Path, *arguments: str, ssh: bool, size: tuple[int, int]) -> Terminal:
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(REPOSITORY)}
    environment.pop("SSH_CONNECTION", None)
    if ssh:
        environment["SSH_CONNECTION"] = "192.0.2.1 50000 192.0.2.2 22"
    return Terminal([sys.executable, "-m", "tutor", *arguments, "--workspace", str(workspace)], environment, size)


def counted(terminal: Terminal, keys: bytes, until: bytes = b"") -> int:
    before = terminal.count
    terminal.seen = b""
    terminal.send(keys)
    if until:
        terminal.until_seen(until)
    terminal.until_quiet()
    return terminal.count - before


def jump(terminal: Terminal, words: bytes, until: bytes) -> None:
    """Through the palette."""
    counted(terminal, b"\x10")
    counted(terminal, words, until)
    counted(terminal, b"\x1b[B")
    counted(terminal, b"\r")


def course_figures(workspace: Path, ssh: bool, size: tuple[int, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    with start(workspace, ssh=ssh, size=size) as terminal:
        terminal.until_seen(b"Quit")
        terminal.until_seen(b"Grading on")
        terminal.until_quiet()
        found["start"] = terminal.count
        found["idle_10_s_home"] = terminal.listen(IDLE_SECONDS)
        shutil.copy(catalog.find("vector_add").solution, workspace / "02-first-kernel" / "vector_add.py")
        jump(terminal, b"m01.lesson", b"lesson")
        found["page_of_a_lesson"] = counted(terminal, b" ")
        found["idle_10_s_lesson"] = terminal.listen(IDLE_SECONDS)
        jump(terminal, b"vector_add", b"Vector")
        found["grade"] = counted(terminal, b"g", b"passed")
        found["idle_10_s_graded"] = terminal.listen(IDLE_SECONDS)
    return found


def clock_figure(workspace: Path, ssh: bool, size: tuple[int, int]) -> dict[str, int]:
    with start(workspace, "drill", "--plan", "bug-blitz", "--seed", "1", ssh=ssh, size=size) as terminal:
        terminal.until_seen(b":")
        terminal.until_quiet(most=5.0)
        return {"drill_clock_60_s": terminal.listen(60.0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ssh", action="store_true", help="as over SSH: no animations")
    parser.add_argument("--size", default="80x24")
    options = parser.parse_args()
    columns, rows = map(int, options.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        without_tour(workspace)
        figures = course_figures(workspace, options.ssh, (columns, rows))
        figures |= clock_figure(workspace, options.ssh, (columns, rows))
    print(json.dumps({"ssh": options.ssh, "size": options.size, "bytes": figures}))


if __name__ == "__main__":
    main()
