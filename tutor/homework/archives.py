"""Python files out of a .zip or .tar.gz that somebody else made. Nothing of it is ever written under its own name.

Members are read into memory, within limits on their number, their bytes and how much larger they are than the archive;
what no honest archive of homework holds refuses the whole of it.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

SUFFIXES = (".zip", ".tar.gz", ".tgz")
MOST_ARCHIVE = 32 << 20  # bytes on disk
MOST_UNPACKED = 64 << 20  # bytes of all members
MOST_MEMBERS = 2000
MOST_RATIO = 200  # of a member's bytes to what it takes in the archive: text shrinks to a fifth, seldom to a fiftieth
RATIO_FROM = 1 << 20  # bytes: below them the ratio says nothing
MOST_DIRECTORY = 1 << 20  # bytes of a zip file's list of members
MOST_SOURCE = 1 << 20  # bytes of one Python file, as the grader has it
KEPT = (".py",)


class Refused(ValueError):
    """The archive is not read; the text says why, for its sender."""


def is_archive(name: str) -> bool:
    return name.lower().endswith(SUFFIXES)


def stem(name: str) -> str:
    """ana.tar.gz → ana"""
    suffix = next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")
    return name[: len(name) - len(suffix)] if suffix else name


def read_archive(path: Path) -> dict[str, bytes]:
    """The Python files in it, by their path inside; of files that are too large, one byte more than may be.

    Raises Refused.
    """
    try:
        with _opened(path) as stream:
            members = _zip(stream) if path.name.lower().endswith(".zip") else _tar(stream)
            found: dict[str, bytes] = {}
            for name, data in members:
                if name in found:
                    raise Refused(f"the archive holds {shown(name)} twice")
                found[name] = data
            return found
    except Refused:
        raise
    # a damaged archive can fail in any way that zipfile, tarfile or zlib know
    except Exception as error:
        raise Refused(f"the archive cannot be read: {type(error).__name__}: {shown(str(error))}") from error


def shown(name: str) -> str:
    """A name that somebody chose, safe to print."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return text if len(text) <= 120 else f"{text[:117]}…"


def _opened(path: Path) -> IO[bytes]:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_ARCHIVE:
        os.close(descriptor)
        size = f"is larger than {MOST_ARCHIVE >> 20} MiB" if stat.S_ISREG(facts.st_mode) else "is no plain file"
        raise Refused(f"the archive {size}")
    return os.fdopen(descriptor, "rb")


def _checked(name: str) -> str:
    """The path inside, normalised. Raises Refused for one that leads outside."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or (len(plain) > 1 and plain[1] == ":") or ".." in parts or "\0" in plain:
        raise Refused(f"the archive holds {shown(name)}: a path that leads outside of it")
    return "/".join(part for part in parts if part != ".")


def _zip(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    _check_zip_directory(stream)
    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
        if len(infos) > MOST_MEMBERS:
            raise Refused(f"the archive holds more than {MOST_MEMBERS} files")
        for info in infos:
            _check_zip_member(info)
        if sum(info.file_size for info in infos) > MOST_UNPACKED:
            raise Refused(f"the archive unpacks to more than {MOST_UNPACKED >> 20} MiB")
        for info in infos:
            name = _checked(info.filename)
            if not info.is_dir() and name.lower().endswith(KEPT):
                with archive.open(info) as member:  # what the header says of its size need not be true
                    yield name, member.read(MOST_SOURCE + 1)


def _check_zip_directory(stream: IO[bytes]) -> None:
    """A zip file's list of members is read into memory as a whole: not if it is huge."""
    size = stream.seek(0, io.SEEK_END)
    stream.seek(max(0, size - 65_557))
    tail = stream.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < 22:
        raise Refused("the archive cannot be read: it is no zip file, or cut short")
    if struct.unpack_from("<I", tail, at + 12)[0] > MOST_DIRECTORY:
        raise Refused(f"the archive holds more than {MOST_MEMBERS} files")
    stream.seek(0)


def _check_zip_member(info: zipfile.ZipInfo) -> None:
    _checked(info.filename)
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind == stat.S_IFLNK:
        raise Refused(f"the archive holds {shown(info.filename)}: a symbolic link")
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise Refused(f"the archive holds {shown(info.filename)}: neither file nor folder")
    if info.flag_bits & 1:
        raise Refused(f"the archive holds {shown(info.filename)}: encrypted")
    if info.file_size > RATIO_FROM and info.file_size > MOST_RATIO * max(info.compress_size, 1):
        raise Refused(f"the archive holds {shown(info.filename)}: {info.file_size // max(info.compress_size, 1)} times "
                      "larger than in the archive")  # fmt: skip


class _Bounded(io.RawIOBase):
    """A decompressed stream that ends with Refused instead of filling memory or time."""

    def __init__(self, stream: gzip.GzipFile) -> None:
        self._stream, self._left = stream, MOST_UNPACKED

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(min(size, 1 << 20) if size >= 0 else 1 << 20)
        self._left -= len(data)
        if self._left < 0:
            raise Refused(f"the archive unpacks to more than {MOST_UNPACKED >> 20} MiB")
        return data


def _tar(stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    with gzip.GzipFile(fileobj=stream) as unpacked:
        with tarfile.open(fileobj=_Bounded(unpacked), mode="r|") as archive:
            for count, member in enumerate(archive):
                if count >= MOST_MEMBERS:
                    raise Refused(f"the archive holds more than {MOST_MEMBERS} files")
                name = _checked(member.name)
                if member.issym() or member.islnk():
                    kind = "symbolic" if member.issym() else "hard"
                    raise Refused(f"the archive holds {shown(member.name)}: a {kind} link")
                if member.issparse() or not (member.isreg() or member.isdir()):
                    raise Refused(f"the archive holds {shown(member.name)}: neither file nor folder")
                if member.isreg() and name.lower().endswith(KEPT):
                    data = archive.extractfile(member)
                    yield name, data.read(MOST_SOURCE + 1) if data else b""
