"""Files that are whole or not there, and as they were until they are whole, whenever this process is ended."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path, like: os.stat_result | None = None, synced: bool = True) -> Iterator[Path]:
    """A file beside `path` to be written in the block, and then `path` itself. Nothing changes when the block raises.

    `like` gives it the permissions and, where allowed, the owner of an older file. `synced`: on the disk before it
    takes its place, for what may not be lost with the power.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
    try:
        with os.fdopen(handle, "rb") as stream:
            yield Path(temporary)
            if synced:
                os.fsync(stream.fileno())
        if like is None:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
        else:
            with contextlib.suppress(PermissionError):
                os.chown(temporary, like.st_uid, like.st_gid)
            os.chmod(temporary, stat.S_IMODE(like.st_mode))
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_atomically(path: Path, content: bytes, like: os.stat_result | None = None, synced: bool = True) -> None:
    """Either the old file or the whole new one is there, whatever happens in between."""
    with replacing(path, like, synced) as beside:
        beside.write_bytes(content)
