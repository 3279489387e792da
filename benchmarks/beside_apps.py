"""Start, memory, answer to a key and bytes to the terminal, beside other Textual apps, all measured the same way.

Run:  python -m benchmarks.beside_apps --app "harlequin 2.17=/tmp/v/bin/harlequin" --app "toolong=/tmp/w/bin/tl x.log"
      [--runs 3] [--out benchmarks/results/app-beside-others.md]
The others are installed by hand, each in an environment of its own. Each run is a start at 80×24 in a pseudo-terminal,
the apps in turn. First paint: from exec to the last byte of the first screen, before 0.6 s without one; its CPU time is
the process's own. Memory: proportional set size of the app's process without its children. Answer: from Tab until the
first byte, the longest of 20. Bytes: at the start, then in 10 s without a key, then for the 20 Tabs.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from benchmarks.terminal import Terminal
from tests.web.served import without_tour

REPOSITORY = Path(__file__).resolve().parent.parent
IDLE_SECONDS, TABS = 10.0, 20
LOG_LINES = 2000
A_SCREEN = 1500  # bytes: more than the questions that an app asks its terminal


@dataclass(frozen=True)
class App:
    name: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    paint_s: float
    cpu_s: float
    memory_mb: float
    longest_answer_ms: float
    start_bytes: int
    idle_bytes: int
    tab_bytes: int


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(app: App, home: Path) -> Run:
    environment = {**os.environ, "TERM": "xterm-256color", "HOME": str(home), "PYTHONPATH": ""}
    if app.name == "triton-prep":
        environment["PYTHONPATH"] = str(REPOSITORY)
    with Terminal(app.command, environment) as terminal:
        terminal.until_seen(b"\x1b[?1049h")  # the alternate screen; what was printed before is no screen of the app
        asked = terminal.count
        while terminal.count < asked + A_SCREEN and terminal.alive():
            terminal.read(1.0)
        drawn = terminal.until_quiet()
        cpu, start = cpu_seconds(terminal.pid), terminal.count
        terminal.listen(5.0)  # what an app does after its first screen is not idling
        memory, idle = terminal.memory(), terminal.listen(IDLE_SECONDS)
        before, worst = terminal.count, 0.0
        for _ in range(TABS):
            sent = time.perf_counter()
            terminal.send(b"\t")
            if terminal.read(2.0):
                worst = max(worst, time.perf_counter() - sent)
            terminal.until_quiet(quiet=0.15)
        return Run(drawn - terminal.begun, cpu, memory, 1000 * worst, start, idle, terminal.count - before)


def table(apps: Sequence[App], runs: dict[str, list[Run]]) -> str:
    def median(name: str, figure: str) -> float:
        return statistics.median(getattr(run, figure) for run in runs[name])

    rows = ["| app | first paint | of it CPU | memory | longest answer to Tab | bytes: start | idle 10 s | 20 Tabs |"]
    rows.append("|---|---:|---:|---:|---:|---:|---:|---:|")
    for app in apps:
        paint, cpu, memory, answer, start, idle, tabs = (median(app.name, figure) for figure in Run.__annotations__)
        answered = f"{answer:.0f} ms" if tabs else "none: Tab does nothing there"
        rows.append(
            f"| {app.name} | {paint:.2f} s | {cpu:.2f} s | {memory:.0f} MB | {answered} "
            f"| {start:,.0f} | {idle:,.0f} | {tabs:,.0f} |"
        )
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--app", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        workspace = home / "work"
        without_tour(workspace)
        (home / "app.log").write_text("".join(f"2026-01-01 12:00:00 INFO line {n}\n" for n in range(LOG_LINES)))
        apps = [App("triton-prep", (sys.executable, "-m", "tutor", "--workspace", str(workspace)))]
        for given in options.app:
            name, _, command = given.partition("=")
            apps.append(App(name, tuple(shlex.split(command.replace("{home}", folder)))))
        runs: dict[str, list[Run]] = {app.name: [] for app in apps}
        for app in apps:
            measure(app, home)  # caches are written, and stubs
        busy = os.getloadavg()[0]
        for _ in range(options.runs):
            for app in apps:
                runs[app.name].append(measure(app, home))
    cores = os.cpu_count()
    text = (
        f"# The app beside other Textual apps\n\n`python -m benchmarks.beside_apps`, {date.today()}, {cores} cores, "
        f"load {busy:.1f} at the start and {os.getloadavg()[0]:.1f} at the end; median of {options.runs} runs, 80×24. "
        f"What the columns mean stands at the top of the script.\n\n{table(apps, runs)}\n"
    )
    if options.out:
        options.out.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
