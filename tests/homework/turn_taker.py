"""A process that takes turns on a GPU as it is told, a word a line, and says what came of each. Imports no torch.

share, alone: enters the block; end: leaves the innermost one; cancel: ends the wait under way; rounds N: takes turns of
both kinds by itself, and says when it had each.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from contextlib import AbstractContextManager

from grader.failures import Cancelled
from grader.gpu_turns import Turns
from grader.protocol import Lost


def main() -> None:
    turns = Turns.of_environment()
    words: queue.Queue[str] = queue.Queue()
    cancelled = threading.Event()

    def read() -> None:
        for line in sys.stdin:
            if line.strip() == "cancel":
                cancelled.set()
            else:
                words.put(line.strip())
        words.put("")

    threading.Thread(target=read, daemon=True).start()
    blocks: list[AbstractContextManager[None]] = []
    while word := words.get():
        if word == "end":
            blocks.pop().__exit__(None, None, None)
            print("ended", flush=True)
        elif word.startswith("rounds"):
            _rounds(turns, int(word.split()[1]))
        else:
            cancelled.clear()
            block = (turns.sharing if word == "share" else turns.alone)(cancelled.is_set)
            try:
                block.__enter__()
                blocks.append(block)
                print(f"holds {turns.holds.name}", flush=True)
            except Cancelled:
                print("cancelled", flush=True)
            except Lost:
                print("lost", flush=True)


def _rounds(turns: Turns, count: int) -> None:
    """Says of each turn when it began and ended, on the clock that all processes of a machine have together."""
    for number in range(count):
        for name, turn in (("SHARED", turns.sharing), ("ALONE", turns.alone)):
            with turn():
                began = time.monotonic()
                time.sleep(0.002)
                print(name, began, time.monotonic(), flush=True)
        if number % 3 == 0:
            with turns.sharing(), turns.alone():
                began = time.monotonic()
                time.sleep(0.001)
                print("ALONE", began, time.monotonic(), flush=True)
    print("done", turns.waited, 0, flush=True)


if __name__ == "__main__":
    main()
