"""The GPU's clock while something is timed, asked of nvidia-smi from the judge's process. No tool, no figure."""

from __future__ import annotations

import contextlib
import subprocess
import threading

COMMAND = ("nvidia-smi", "--query-gpu=clocks.sm", "--format=csv,noheader,nounits", "--id=0")
EVERY = 0.25  # seconds
PATIENCE = 5.0  # seconds that one answer may take


class Clocks:
    """`with Clocks() as clocks:` then `clocks.range()`."""

    def __init__(self, command: tuple[str, ...] = COMMAND, every: float = EVERY) -> None:
        self.command, self.every = command, every
        self.samples: list[int] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Clocks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(2 * PATIENCE)

    def range(self) -> list[int] | None:
        """Lowest and highest MHz of the multiprocessors while it ran; None when nothing could be asked."""
        return [min(self.samples), max(self.samples)] if self.samples else None

    def _sample(self) -> None:
        while True:
            try:
                said = subprocess.run(self.command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
            except (OSError, subprocess.SubprocessError):
                return
            with contextlib.suppress(ValueError, IndexError):
                self.samples.append(int(said.split()[0]))
            if self._over.wait(self.every):
                return
