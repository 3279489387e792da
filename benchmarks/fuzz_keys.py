"""Random keys and resizes over every screen of the app: no exception, no hang.

Run:  python -m benchmarks.fuzz_keys --events 10000 [--seed 1] [--course]
Each round starts the app afresh with the stand-in grader, opens a screen, and presses keys: those that are live, those
of the whole app, and any printable one, singly and in bursts. A failure prints the seed, the screen and the last keys,
with which `--seed N --round N` repeats it. With --course on the real course, otherwise on the tests' small one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import string
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
FAKE_GRADER = REPOSITORY / "tests" / "fake_grader.py"
SIZES = ((40, 12), (60, 15), (80, 24), (110, 30), (140, 40), (200, 60))
NAMED = (
    "enter", "escape", "tab", "shift+tab", "space", "backspace", "delete", "up", "down", "left", "right", "pageup",
    "pagedown", "home", "end", "ctrl+p", "ctrl+n", "ctrl+t", "ctrl+f", "ctrl+g", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u",
    "ctrl+w", "ctrl+x", "ctrl+v", "ctrl+y", "question_mark", "comma", *(f"f{number}" for number in range(1, 13)),
)  # fmt: skip
LEAVING = {"ctrl+q"}  # ends the app, as it should
STEP_LIMIT = 60.0  # seconds for one event on a busy machine
EVENTS_A_ROUND = 60
STARTS = ("home", "outline", "settings", "help", "stats", "keys", "tour", "glossary", "drill", "review", "palette")
FILES = (  # of the learner's: what the stand-in grader makes of them
    "# fake: passed\n",
    "# fake: wrong_answer\n# cause: missing_store_mask\n",
    "import torch\n# TODO\n",
    "x = (\n",
)


@dataclass
class Tally:
    events: int = 0
    screens: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


class Stuck(Exception):
    """An event was not done within its time."""


def round_random(seed: int, number: int) -> random.Random:
    return random.Random(f"{seed}-{number}")


def pick_key(draw: random.Random, app: Any) -> str:
    live = [key for key in app.screen.active_bindings if key not in LEAVING]
    chance = draw.random()
    if live and chance < 0.55:
        return draw.choice(live)
    if chance < 0.85:
        return draw.choice(NAMED)
    letter = draw.choice(string.ascii_letters + string.digits + "[](){}.,:=+-*/#\"'_ ")
    return {" ": "space"}.get(letter, letter)


async def open_start(app: Any, pilot: Any, start: str) -> None:
    from tutor.screens.outline import OutlineScreen

    if start == "outline":
        await app.push_screen(OutlineScreen(app.desk.course.modules[0]))
    elif start == "palette":
        await app.run_action("command_palette")
    elif start == "review":
        app.screen.action_review()
    elif start != "home":
        known = start in ("settings", "help", "stats", "keys", "tour", "glossary", "drill")
        await (app.run_action(start) if known else app.action_open_item(start))
    await pilot.pause()


async def press(draw: random.Random, app: Any, pilot: Any, log: list[str]) -> int:
    """One event, or a burst of keys with no pause between them. Gives their number."""
    if draw.random() < 0.06:
        size = draw.choice(SIZES)
        log.append(f"resize {size[0]}x{size[1]}")
        await pilot.resize_terminal(*size)
        return 1
    burst = draw.choice((1, 1, 1, 1, 2, 5))
    keys = [pick_key(draw, app) for _ in range(burst)]
    log += keys
    if burst > 1:
        for key in keys:
            app.simulate_key(key)
    else:
        await pilot.press(keys[0])
    await pilot.pause()
    return burst


async def one_round(draw: random.Random, desk: Any, start: str, events: int, tally: Tally, log: list[str]) -> None:
    from tutor.screens.terminal import TritonPrepApp

    app = TritonPrepApp(desk, warm_grader=False)
    async with app.run_test(size=draw.choice(SIZES), notifications=True) as pilot:
        await pilot.pause()
        await open_start(app, pilot, start)
        done = 0
        while done < events and app._exit is False:
            begun = time.monotonic()
            tally.screens[type(app.screen).__name__] += 1
            try:
                done += await asyncio.wait_for(press(draw, app, pilot, log), STEP_LIMIT)
            except TimeoutError as error:
                raise Stuck(f"{type(app.screen).__name__} after {log[-1]}") from error
            tally.slowest = max(tally.slowest, time.monotonic() - begun)
            if app._exception is not None:
                break
        tally.events += done
    await desk.grader.close()


def starts_of(course: Any) -> list[str]:
    """Every screen, and one item of every kind, in turn."""
    from tutor.course.course import kind_of

    by_kind = {kind_of(item): item.id for item in reversed(course.items())}
    return [*STARTS, *by_kind.values()]


def fuzz(events: int, seed: int, course: Any, folder: Path, only_round: int | None = None) -> Tally:
    """Raises AssertionError that says how to repeat the failure."""
    from tutor.grading import Grader
    from tutor.progress import Progress
    from tutor.widgets.desk import Desk
    from tutor.workspace import Workspace

    tally = Tally()
    starts = starts_of(course)
    number = only_round or 0
    while tally.events < events:
        draw = round_random(seed, number)
        workspace = Workspace.open(folder / f"round-{number}")
        for exercise in ("vector_add",):
            with suppress(OSError):
                workspace.file(exercise).write_text(draw.choice(FILES))
        progress = Progress.open(None)
        progress.set_setting("editor", "built-in")  # an editor of this machine would wait for a person
        desk = Desk(course, progress, workspace, Grader([sys.executable, str(FAKE_GRADER)]))
        start, log = starts[number % len(starts)], []
        size = min(EVENTS_A_ROUND, events - tally.events)
        try:
            asyncio.run(one_round(draw, desk, start, size, tally, log))
        except BaseException as error:
            how = f"seed {seed}, round {number}, from {start}, keys: {' '.join(log[-40:])}"
            raise AssertionError(f"{type(error).__name__}: {error}\n{how}") from error
        finally:
            desk.grader.kill()
            progress.close()
        number += 1
        if only_round is not None:
            break
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int)
    parser.add_argument("--course", action="store_true")
    options = parser.parse_args()
    if options.course:
        from tutor.course.loader import load

        course: Any = load()
    else:
        from tests.app.sample_course import COURSE as course  # noqa: N811
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tally = fuzz(options.events, options.seed, course, Path(folder), options.round)
    seconds = round(time.monotonic() - begun)
    print(json.dumps({"events": tally.events, "seconds": seconds, "slowest_s": round(tally.slowest, 2)}))
    print(json.dumps(dict(tally.screens.most_common())))


if __name__ == "__main__":
    main()
