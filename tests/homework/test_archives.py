"""What no honest archive holds refuses it, with a text for its sender; an honest one gives its Python files."""

from __future__ import annotations

import gzip
import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tutor.homework import archives
from tutor.homework.archives import MOST_SOURCE, Refused, is_archive, read_archive, shown, stem


def zipped(path: Path, *members: tuple[str | zipfile.ZipInfo, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def tarred(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def special(kind: bytes, name: str = "a.py", **more: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = more.get("linkname", "/etc/passwd")
    return member


def zip_link() -> zipfile.ZipInfo:
    info = zipfile.ZipInfo("a.py")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


def lying_zip(path: Path) -> Path:
    """A member that says it is small, and is not."""
    zipped(path, ("a.py", b"#" * (4 << 20)))
    data = path.read_bytes()
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(mark) + at
        data = data[:start] + struct.pack("<I", 100) + data[start + 4 :]
    path.write_bytes(data)
    return path


REFUSALS: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "zip-climbs": ("../x.py: a path that leads outside", lambda f: zipped(f / "a.zip", ("../x.py", b""))),
    "zip-backslash": ("outside", lambda f: zipped(f / "a.zip", ("..\\x.py", b""))),
    "zip-absolute": ("/tmp/x.py: a path", lambda f: zipped(f / "a.zip", ("/tmp/x.py", b""))),
    "zip-drive": ("C:/x.py", lambda f: zipped(f / "a.zip", ("C:/x.py", b""))),
    "zip-link": ("a.py: a symbolic link", lambda f: zipped(f / "a.zip", (zip_link(), b"/etc/passwd"))),
    "zip-bomb": ("times larger", lambda f: zipped(f / "a.zip", ("a.py", b"x = 1\n"), ("z", bytes(20 << 20)))),
    "zip-crowd": ("more than 2000 files", lambda f: zipped(f / "a.zip", *[(f"{n}.py", b"") for n in range(2001)])),
    "zip-huge-directory": ("2000 files", lambda f: zipped(f / "a.zip", *[("d" * 200 + str(n), b"") for n in range(5000)])),
    "zip-nonsense": ("no zip file", lambda f: (f / "a.zip", (f / "a.zip").write_bytes(os.urandom(999)))[0]),
    "tar-climbs": ("../x.py", lambda f: tarred(f / "a.tgz", (tarfile.TarInfo("../x.py"), b""))),
    "tar-symlink": ("a symbolic link", lambda f: tarred(f / "a.tgz", (special(tarfile.SYMTYPE), b""))),
    "tar-hard-link": ("a hard link", lambda f: tarred(f / "a.tgz", (special(tarfile.LNKTYPE), b""))),
    "tar-device": ("neither file nor folder", lambda f: tarred(f / "a.tgz", (special(tarfile.CHRTYPE), b""))),
    "tar-pipe": ("neither file nor folder", lambda f: tarred(f / "a.tgz", (special(tarfile.FIFOTYPE), b""))),
    "tar-bomb": ("more than 64 MiB", lambda f: tarred(f / "a.tar.gz", (tarfile.TarInfo("z"), bytes(80 << 20)))),
    "tar-cut": ("cannot be read", lambda f: cut(tarred(f / "a.tgz", (tarfile.TarInfo("a.py"), os.urandom(5000))))),
    "tar-nonsense": ("cannot be read", lambda f: (f / "a.tgz", (f / "a.tgz").write_bytes(gzip.compress(b"no" * 999)))[0]),
    "twice": ("a.py twice", lambda f: tarred(f / "a.tgz", *[(tarfile.TarInfo(n), b"") for n in ("a.py", "./a.py")])),
}  # fmt: skip


def cut(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-300])
    return path


@pytest.mark.parametrize("name", REFUSALS)
def test_the_whole_archive_is_refused(name: str, tmp_path: Path) -> None:
    text, make = REFUSALS[name]
    path = make(tmp_path)
    with pytest.raises(Refused) as refused:
        read_archive(path)
    assert text in str(refused.value)
    assert list(tmp_path.iterdir()) == [path]  # nothing was unpacked


def test_an_honest_archive_gives_its_python_files(tmp_path: Path) -> None:
    members = [("hw/a.py", b"a = 1\n"), ("hw/notes.txt", b"text"), ("hw/", b""), ("hw/ü.py", b"u = 1\n")]
    expected = {"hw/a.py": b"a = 1\n", "hw/ü.py": b"u = 1\n"}
    assert read_archive(zipped(tmp_path / "a.zip", *members)) == expected
    tar = tarred(tmp_path / "a.tar.gz", *[(tarfile.TarInfo(f"./{name}"), data) for name, data in members if data])
    assert read_archive(tar) == expected


def test_a_member_that_lies_about_its_size_is_not_read_to_its_end(tmp_path: Path) -> None:
    try:
        found = read_archive(lying_zip(tmp_path / "a.zip"))
    except Refused:
        return  # Python's own check of the sum
    assert all(len(data) <= MOST_SOURCE + 1 for data in found.values())


def test_a_file_too_large_for_a_kernel_is_given_as_too_large(tmp_path: Path) -> None:
    found = read_archive(tarred(tmp_path / "a.tgz", (tarfile.TarInfo("a.py"), os.urandom(3 << 20))))
    assert len(found["a.py"]) == MOST_SOURCE + 1


def test_an_archive_too_large_is_not_even_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "a.zip", ("a.py", b"a = 1\n"))
    os.truncate(path, archives.MOST_ARCHIVE + 1)
    monkeypatch.setattr(zipfile, "ZipFile", None)
    with pytest.raises(Refused, match="larger than 32 MiB"):
        read_archive(path)


def test_names_of_archives_and_of_what_is_in_them() -> None:
    assert is_archive("Ana.ZIP")
    assert is_archive("a.tar.gz")
    assert not is_archive("a.tar")
    assert stem("ana.tar.gz") == "ana"
    assert shown("a\x1b[2Jb\udcff") == "a\N{REPLACEMENT CHARACTER}[2Jb" + "\N{REPLACEMENT CHARACTER}"
    assert len(shown("x" * 500)) == 118
