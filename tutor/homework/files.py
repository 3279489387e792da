"""Files of results: whole or not there, whenever the command is ended."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from tutor.whole_files import write_atomically

MOST_NAME = 200  # bytes; file systems take 255


def write(path: Path, content: str | bytes) -> None:
    """Makes the folder, writes beside the place and moves there; a file that is the same already is left alone."""
    # what a learner chose (a name, a message) may hold half of a surrogate pair
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    with contextlib.suppress(OSError):
        if path.stat().st_size == len(data) and path.read_bytes() == data:
            return
    write_atomically(path, data, synced=False)  # what is lost with the power is made again


def folder_name(learner: str) -> str:
    """A folder for somebody's results; names are as given, but cannot lead elsewhere, be hidden or be too long."""
    name = learner.replace("/", "_").replace("\0", "_").strip()
    name = f"_{name}" if not name or name.startswith(".") else name
    data = name.encode("utf-8", "replace")
    if len(data) <= MOST_NAME:
        return name
    return f"{data[:MOST_NAME].decode('utf-8', 'ignore')}-{hashlib.sha256(data).hexdigest()[:8]}"
