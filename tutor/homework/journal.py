"""What has been graded, one JSON line each, on the disk before it counts: an ended command goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tutor.homework.work import Graded


class InUse(Exception):
    """Another run writes there; the text says where."""


class Journal:
    """Raises InUse."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._stream = open(file, "a+b")
        try:
            fcntl.flock(self._stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._stream.close()
            raise InUse(
                f"another homework run is writing to {file.parent}: wait for it, or choose another --out"
            ) from error
        self.graded: dict[str, Graded] = {}
        self._read()

    def _read(self) -> None:
        """A line that was not written to its end is taken off, with whatever follows it."""
        self._stream.seek(0)
        good = 0
        for line in self._stream:
            try:
                graded = _graded(json.loads(line)) if line.endswith(b"\n") else None
            except (ValueError, KeyError, TypeError, AttributeError):
                graded = None
            if graded is None:
                break
            self.graded[graded.key] = graded
            good += len(line)
        self._stream.truncate(good)

    def add(self, graded: Graded) -> None:
        """On the disk when this returns. A grade that was lost is not kept: the next run tries again."""
        if graded.verdict is None:
            return
        times = {"ended": round(time.time(), 3), "seconds": round(graded.seconds, 3), "waited": round(graded.waited, 3)}
        line = {"key": graded.key, **times, "gpu": graded.gpu, "verdict": graded.verdict}
        self._stream.write(json.dumps(line).encode() + b"\n")
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self.graded[graded.key] = graded

    def close(self) -> None:
        self._stream.close()


def _graded(line: Mapping[str, Any]) -> Graded:
    verdict = line["verdict"]
    if not isinstance(verdict, dict) or "status" not in verdict:
        raise ValueError("no verdict")
    waited, gpu = float(line.get("waited", 0.0)), str(line.get("gpu", ""))  # journals of older versions have neither
    return Graded(str(line["key"]), verdict, None, float(line["seconds"]), waited, gpu)
