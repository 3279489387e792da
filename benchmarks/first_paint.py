"""First full paint of the app in a pseudo-terminal, and the longest pause of its event loop while it grades vector_add.

Run:  python benchmarks/first_paint.py [--starts 5]
Paint: from exec until the screen holds Home's last part, the footer. Pause: the largest gap between ticks of a 5 ms
clock in the app's own event loop, from pressing g until the verdict, less those 5 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import json
import os
import pty
import select
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
START = "import sys; from pathlib import Path; from tutor.app import run; sys.exit(run(Path(sys.argv[1])))"
TICK = 0.005


def paint_seconds(workspace: Path) -> tuple[float, float]:
    """One start at 80×24 until the footer's last key is drawn: wall time, and CPU time for when the machine is busy."""
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(REPOSITORY)
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
        os.execve(sys.executable, [sys.executable, "-c", START, str(workspace)], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen = b""
    while b"Quit" not in seen:
        if not select.select([terminal], [], [], 20)[0]:
            raise SystemExit("no paint within 20 s")
        seen += os.read(terminal, 65536)
    took = time.perf_counter() - begun
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    worked = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    os.kill(pid, signal.SIGTERM)
    os.close(terminal)
    os.waitpid(pid, 0)
    return took, worked


async def longest_pause(workspace: Path) -> tuple[float, float]:
    """Seconds of the longest pause and of the whole grade, warm, with the reference solution."""
    from grader import catalog
    from tutor.course.loader import load
    from tutor.grading import Grader
    from tutor.progress import Progress
    from tutor.screens.terminal import TritonPrepApp
    from tutor.widgets.desk import Desk
    from tutor.workspace import Workspace

    course, folder, grader = load(), Workspace.open(workspace), Grader()
    folder.file("vector_add").write_bytes(catalog.find("vector_add").solution.read_bytes())
    item = course.exercise_item("vector_add")
    if item is None:
        raise SystemExit("the course has no item for vector_add")
    await grader.start()
    app = TritonPrepApp(Desk(course, Progress.open(None), folder, grader), warm_grader=False)
    worst, took = 0.0, 0.0
    async with app.run_test(size=(80, 24)) as pilot:
        await app.action_open_item(item.id)
        await pilot.pause(0.5)
        await pilot.press("g")
        begun = last = time.perf_counter()
        while not app.desk.progress.state(item.id).passed and last - begun < 60:
            await asyncio.sleep(TICK)
            now = time.perf_counter()
            worst, last = max(worst, now - last - TICK), now
        took = last - begun
    await grader.close()
    return worst, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=5)
    starts = parser.parse_args().starts
    sys.path.insert(0, str(REPOSITORY))
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        paint_seconds(workspace)  # writes stubs and the course's cache: a first start, not counted
        paints = [paint_seconds(workspace) for _ in range(starts)]
        pause, grade = asyncio.run(longest_pause(workspace))
    figures = {
        "first_paint_median_s": round(statistics.median(wall for wall, _ in paints), 3),
        "first_paint_best_s": round(min(wall for wall, _ in paints), 3),
        "first_paint_cpu_s": round(statistics.median(cpu for _, cpu in paints), 3),
        "longest_pause_ms": round(1000 * pause, 1),
        "grade_s": round(grade, 2),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
