"""The GPU's clock while something is timed, asked of nvidia-smi from the judge's process. No tool, no figure."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import threading
import time

QUERY = ("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits")
EVERY = 0.25  # seconds
PATIENCE = 5.0  # seconds that one answer may take


def command() -> tuple[str, ...]:
    """For the device that CUDA calls 0: nvidia-smi counts all of them, whatever CUDA_VISIBLE_DEVICES leaves over."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    return (*QUERY, f"--id={first or 0}")


class Clocks:
    """`with Clocks() as clocks:` then `clocks.range()`."""

    def __init__(self, asked: tuple[str, ...] | None = None, every: float = EVERY) -> None:
        self.command, self.every = asked or command(), every
        self.samples: list[tuple[float, int]] = []  # when it was asked, MHz
        self.ended = math.inf
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Clocks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = time.monotonic()
        self._over.set()
        self._thread.join(2 * PATIENCE)

    def range(self, last: float = math.inf) -> list[int] | None:
        """Lowest and highest MHz of the multiprocessors in the block's last seconds; None when nothing was heard.

        A GPU that waits for a compiler lowers its clock: only what was asked while it worked says anything.
        """
        found = [mhz for when, mhz in self.samples if self.ended - last <= when]
        return [min(found), max(found)] if found else None

    def _sample(self) -> None:
        while True:
            when = time.monotonic()
            try:
                said = subprocess.run(self.command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
            except (OSError, subprocess.SubprocessError):
                return
            with contextlib.suppress(ValueError, IndexError):
                self.samples.append((when, int(said.split()[0])))
            if self._over.wait(self.every):
                return
