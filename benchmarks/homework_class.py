"""A class for `benchmarks.homework`: right, wrong, cheating and hostile submissions, with what each must get."""

from __future__ import annotations

import io
import os
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.catalog import exercises, find
from tests.exploits import all_exploits
from tests.grader.mistakes import all_mistakes

SLUG = "vector_add"
# they return whatever lay in memory: no two of their grades are alike
VARIES = ("12_stale_memory_resize", "12_stale_memory_untyped_storage")
LAUNCH = "    out = torch.empty_like(x)\n"


@dataclass(frozen=True)
class Expected:
    learner: str
    exercise: str
    statuses: tuple[str, ...]
    score: float


@dataclass(frozen=True)
class Sent:
    """`make` writes it at a place in the class's folder, given without a suffix."""

    kind: str  # solution, mistake, exploit, hostile
    name: str
    exercise: str
    statuses: tuple[str, ...]
    make: Callable[[Path], None]


def make_class(folder: Path, count: int, seed: int) -> list[Expected]:
    """`count` submissions, the kinds in equal shares as far as there are enough, none twice before all have been."""
    chance = random.Random(seed)
    pools = {
        kind: [sent for sent in everything() if sent.kind == kind]
        for kind in ("solution", "mistake", "exploit", "hostile")
    }
    for pool in pools.values():
        chance.shuffle(pool)
    folder.mkdir(parents=True)
    expected = []
    for number in range(count):
        pool = pools[list(pools)[number % len(pools)]]
        sent = pool[number // len(pools) % len(pool)]
        name = f"{number:03}-{sent.kind}-{sent.name}"[:120]
        sent.make(folder / name)
        expected.append(Expected(name, sent.exercise, sent.statuses, float("passed" in sent.statuses)))
    return expected


def everything() -> list[Sent]:
    found = [_source("solution", one.slug, one.slug, ("passed",), one.solution.read_text()) for one in exercises()]
    for mistake in all_mistakes():
        if mistake.why_not_run is None and not mistake.needs_cuda:
            text = mistake.text(find(mistake.exercise).solution.read_text())
            found.append(_source("mistake", mistake.id.replace("/", "-"), mistake.exercise, (mistake.status,), text))
    for exploit in all_exploits():
        if exploit.needs != "cuda" and exploit.limit is None and exploit.name not in VARIES:
            found.append(_source("exploit", exploit.name, exploit.exercise, exploit.statuses, exploit.path.read_text()))
    return found + hostile()


def _source(kind: str, name: str, slug: str, statuses: tuple[str, ...], text: str) -> Sent:
    """In one of the forms in which homework comes, by its name."""

    def make(place: Path) -> None:
        data, form = text.encode(), len(name) % 4
        if form == 0:
            place.mkdir()
            (place / f"{slug}.py").write_bytes(data)
        elif form == 1:
            (place / "homework").mkdir(parents=True)
            (place / "homework" / f"{slug}.py").write_bytes(data)
        elif form == 2:
            _zip(place, {f"homework/{slug}.py": data})
        else:
            _tar(place, [(tarfile.TarInfo(f"{slug}.py"), data)])

    return Sent(kind, name, slug, statuses, make)


def hostile() -> list[Sent]:
    """Those that fight the runner, then those that fight whoever unpacks them."""
    solution = find(SLUG).solution.read_text()

    def launch(code: str) -> str:
        assert LAUNCH in solution
        return solution.replace(LAUNCH, "".join(f"    {line}\n" for line in code.splitlines()) + LAUNCH)

    gone = ("crashed", "runtime_error", "infrastructure_error")
    sources = {
        "hangs at import": (("timeout", "import_error"), f"while True: pass\n{solution}"),
        "hangs in the call": (("timeout",), launch("while True: pass")),
        "a crowd of processes": (("passed", "timeout", "not_triton", *gone[:2]), launch(CROWD)),
        "allocates 10 GB": (gone[:2], launch("big = bytearray(10 << 30)")),
        "prints 20 MB": (("passed",), launch("print('x' * (20 << 20))")),
        "kills its parent": (gone, launch("import os, signal; os.kill(os.getppid(), signal.SIGKILL)")),
        "kills everybody": (gone, launch("import os\nfor s in (15, 9): os.killpg(0, s)")),
        "closes every descriptor": (("timeout", *gone[:2]), launch("import os; os.closerange(0, 4096)")),
        "nested too deeply": (("import_error",), "x = " + "(" * 50_000 + ")" * 50_000),
        "a long chain": (("import_error",), "x = " + "+".join(["1"] * 5000)),
        "a deep chain": (("import_error",), "x = " + "-" * 200_000 + "1"),
        "a thousand branches": (("import_error",), solution + "if not add: pass\n" + "elif not add: pass\n" * 900),
        "writes everywhere": (("runtime_error", "passed"), launch("open('/tmp/triton-prep-was-here', 'w')")),
    }  # fmt: skip
    found = [_source("hostile", name.replace(" ", "-"), SLUG, *pair) for name, pair in sources.items()]
    good = solution.encode()
    files: dict[str, tuple[str, Callable[[Path], None]]] = {
        "climbs out of a zip": ("refused", lambda p: _zip(p, {"../../x.py": good, f"{SLUG}.py": good})),
        "absolute path in a tar": ("refused", lambda p: _tar(p, [(tarfile.TarInfo("/tmp/x.py"), good)])),
        "symbolic link in a zip": ("refused", _zip_link),
        "symbolic link in a tar": ("refused", lambda p: _tar(p, [(_special(tarfile.SYMTYPE), b"")])),
        "hard link in a tar": ("refused", lambda p: _tar(p, [(_special(tarfile.LNKTYPE), b"")])),
        "device in a tar": ("refused", lambda p: _tar(p, [(_special(tarfile.CHRTYPE), b"")])),
        "zip bomb": ("refused", lambda p: _zip(p, {f"{SLUG}.py": good, "bomb.bin": bytes(50 << 20)})),
        "tar bomb": ("refused", lambda p: _tar(p, [(tarfile.TarInfo("bomb.bin"), bytes(100 << 20))])),
        "ten thousand files": ("refused", lambda p: _zip(p, {f"{n}.py": b"" for n in range(10_000)})),
        "no zip at all": ("refused", _no_zip),
        "cut short": ("refused", _cut_short),
        "the same file twice": ("refused", _twice),
        "1 GB file": ("unreadable", _gigabyte),
        "not UTF-8": ("unreadable", lambda p: _folder(p, good + b"# \xff\xfe\n")),
        "a pipe": ("missing", _pipe),
        "a link to the solution": ("missing", _link),
        "a folder of that name": ("missing", lambda p: (p / f"{SLUG}.py").mkdir(parents=True)),
        "two of them": ("unreadable", _two),
        "nothing": ("missing", lambda p: p.mkdir()),
    }  # fmt: skip
    found += [
        Sent("hostile", n.replace(" ", "-").replace("/", "-"), SLUG, (status,), make)
        for n, (status, make) in files.items()
    ]
    return found


CROWD = """import os, time
for _ in range(150):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)"""


def _folder(place: Path, data: bytes) -> None:
    place.mkdir()
    (place / f"{SLUG}.py").write_bytes(data)


def _zip(place: Path, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(place.with_name(place.name + ".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def _zip_link(place: Path) -> None:
    link = zipfile.ZipInfo(f"{SLUG}.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(place.with_name(place.name + ".zip"), "w") as archive:
        archive.writestr(link, "/etc/passwd")


def _twice(place: Path) -> None:
    _tar(place, [(tarfile.TarInfo(f"{SLUG}.py"), b"x = 1\n"), (tarfile.TarInfo(f"./{SLUG}.py"), b"x = 2\n")])


def _tar(place: Path, members: list[tuple[tarfile.TarInfo, bytes]]) -> None:
    with tarfile.open(place.with_name(place.name + ".tar.gz"), "w:gz") as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def _special(kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(f"{SLUG}.py")
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def _cut_short(place: Path) -> None:
    _tar(place, [(tarfile.TarInfo(f"{SLUG}.py"), find(SLUG).solution.read_bytes() * 20)])
    path = place.with_name(place.name + ".tar.gz")
    path.write_bytes(path.read_bytes()[:-200])


def _no_zip(place: Path) -> None:
    place.with_name(place.name + ".zip").write_bytes(bytes(range(256)) * 16)


def _pipe(place: Path) -> None:
    place.mkdir()
    os.mkfifo(place / f"{SLUG}.py")


def _link(place: Path) -> None:
    place.mkdir()
    (place / f"{SLUG}.py").symlink_to(find(SLUG).solution)


def _gigabyte(place: Path) -> None:
    _folder(place, b"")
    os.truncate(place / f"{SLUG}.py", 1 << 30)


def _two(place: Path) -> None:
    for name in ("a", "b"):
        (place / name).mkdir(parents=True)
        (place / name / f"{SLUG}.py").write_bytes(find(SLUG).solution.read_bytes())
