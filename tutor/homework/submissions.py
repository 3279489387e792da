"""Who handed in what: a folder of learners' folders, archives and files, read without trusting any of them."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from grader.catalog import ExerciseFiles, exercises
from tutor.homework.archives import MOST_SOURCE, MOST_UNPACKED, Refused, is_archive, read_archive, shown, stem
from tutor.homework.files import write
from tutor.homework.matching import match

MOST_ENTRIES = 5000  # of one learner's folder
DEPTH = 4  # folders below a learner's
IGNORED = ("__MACOSX", "__pycache__", "node_modules", "venv", "env", "site-packages")
ATTEMPT = re.compile(r"attempt[-_ ]?(\d+)", re.IGNORECASE)
RESULTS_MARK = "journal.jsonl"
TIMES_FILE = "submitted_at"  # in a learner's folder; submitted_at.csv beside the learners comes first


class NoSubmissions(ValueError):
    """There is nothing to grade there; the text says what was expected."""


@dataclass(frozen=True)
class Content:
    """One file that was handed in, kept by what is in it."""

    sha256: str
    name: str  # its path in the submission
    path: Path


@dataclass(frozen=True)
class Attempt:
    name: str  # "attempt-2"; empty where a learner has but one
    submitted: datetime
    files: Mapping[str, Content]  # by exercise
    problems: Mapping[str, str] = field(default_factory=dict)  # by exercise: why its file is not graded
    refused: str | None = None  # why nothing of it is graded
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Learner:
    name: str
    attempts: tuple[Attempt, ...]  # in the order of time


class Store:
    """Files by their content, so that a grade means the same wherever and whenever it runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> tuple[str, Path]:
        name = hashlib.sha256(data).hexdigest()
        path = self.folder / f"{name}.py"
        if not path.exists() or path.stat().st_size != len(data):
            self.folder.mkdir(parents=True, exist_ok=True)
            write(path, data)
        return name, path


def read_submissions(folder: Path, asked: Sequence[ExerciseFiles], store: Store) -> tuple[Learner, ...]:
    """Everybody's attempts, by name. What cannot be read is in the attempt, never an error here.

    Raises NoSubmissions.
    """
    if not folder.exists():
        raise NoSubmissions(f"{folder} does not exist: name a folder of submissions, an archive or a file")
    places = [folder] if not folder.is_dir() or _is_one_learners(folder) else _entries(folder)
    times = _given_times(folder / f"{TIMES_FILE}.csv")
    learners = []
    for name, place in _named(places):
        found = [_attempt(label, path, asked, store, times.get((name, label))) for label, path in _attempts(place)]
        learners.append(Learner(name, tuple(sorted(found, key=lambda one: (one.submitted, one.name)))))
    if not learners:
        raise NoSubmissions(f"{folder} holds no submission: a folder, a .zip, a .tar.gz or a .py file for each learner")
    return tuple(learners)


def _is_one_learners(folder: Path) -> bool:
    """A workspace, or a folder with the exercises' files themselves."""
    slugs = {f"{one.slug}.py" for one in exercises()}
    modules = {one.module for one in exercises()}
    names = set(os.listdir(folder))
    return bool(names & slugs) or (folder / ".triton-prep").is_dir() or bool(names & modules)


def _entries(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.iterdir(), key=lambda path: os.fsencode(path.name))
        if not path.name.startswith(".")
        and path.name not in IGNORED
        and _may_be_submission(path)
        and not _is_results(path)
    ]


def _may_be_submission(path: Path) -> bool:
    return path.is_symlink() or path.is_dir() or is_archive(path.name) or path.suffix.lower() == ".py"


def _is_results(path: Path) -> bool:
    """Results of an earlier run, put beside the submissions."""
    return (path / RESULTS_MARK).is_file()


def _named(places: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Learners are called like their folder or file; those whose names would be alike keep the whole file name."""

    def short(path: Path) -> str:
        name = path.absolute().name
        return shown(stem(name) if is_archive(name) else name if path.is_dir() else name.removesuffix(".py"))

    # two that differ in case only would be one folder of results on some systems
    seen: dict[str, int] = {}
    for path in places:
        seen[short(path).casefold()] = seen.get(short(path).casefold(), 0) + 1
    taken: set[str] = set()
    for path in places:
        name = short(path) if seen[short(path).casefold()] == 1 else shown(path.absolute().name)
        number, unique = 2, name
        while unique.casefold() in taken:
            unique, number = f"{name} ({number})", number + 1
        taken.add(unique.casefold())
        yield unique, path


def _attempts(place: Path) -> list[tuple[str, Path]]:
    """The attempts in a learner's folder, when everything in it is called attempt-N; else the place itself."""
    if place.is_symlink() or not place.is_dir():
        return [("", place)]
    inside = _entries(place)
    numbered = [
        (ATTEMPT.fullmatch(stem(p.name) if is_archive(p.name) else p.name.removesuffix(".py")), p) for p in inside
    ]
    if not inside or not all(found for found, _ in numbered):
        return [("", place)]
    return [(f"attempt-{int(found[1])}", path) for found, path in numbered if found]


def _attempt(name: str, place: Path, asked: Sequence[ExerciseFiles], store: Store, given: datetime | None) -> Attempt:
    submitted = given or _moment(place)
    try:
        if place.is_symlink():
            raise Refused("the submission is a symbolic link: hand in the files themselves")
        files, notes = _files(place)
    except Refused as refused:
        return Attempt(name, submitted, {}, refused=str(refused))
    except OSError as error:
        return Attempt(name, submitted, {}, refused=f"the submission cannot be read: {error.strerror}")
    found, problems = match(files, asked)
    contents: dict[str, Content] = {}
    for slug, path in found.items():
        problem = _unfit(path, files[path])
        if problem:
            problems[slug] = problem
        else:
            contents[slug] = Content(*_kept(store, files[path], path))
    if given is None and place.is_dir():
        submitted = _folder_moment(place, list(found.values()), submitted)
    return Attempt(name, submitted, contents, problems, None, tuple(notes))


def _kept(store: Store, data: bytes, name: str) -> tuple[str, str, Path]:
    sha256, path = store.put(data)
    return sha256, shown(name), path


def _unfit(name: str, data: bytes) -> str | None:
    if len(data) > MOST_SOURCE:
        return f"{shown(name)} is larger than {MOST_SOURCE >> 20} MiB: that is no kernel"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return f"{shown(name)}:{line}: not UTF-8 (byte {error.start}): save the file as UTF-8"
    return None


def _files(place: Path) -> tuple[dict[str, bytes], list[str]]:
    """The Python files of a submission by their path in it, and what was left out. Raises Refused."""
    if not place.is_dir():
        files = read_archive(place) if is_archive(place.name) else {place.name: _read(place)}
        return {name: data for name, data in files.items() if _counts(name)}, []
    found: dict[str, bytes] = {}
    archives: list[Path] = []
    notes: list[str] = []
    total = 0
    for path in _walk(place, notes):
        name = path.relative_to(place).as_posix()
        if is_archive(path.name):
            archives.append(path)
        elif path.suffix.lower() == ".py":
            found[name] = _read(path)
            total += len(found[name])
            if total > MOST_UNPACKED:
                raise Refused(f"the folder holds more than {MOST_UNPACKED >> 20} MiB of Python files")
    if not found and len(archives) > 1:
        raise Refused("the folder holds several archives: " + ", ".join(sorted(shown(p.name) for p in archives)[:5]))
    if not found and archives:
        found = {name: data for name, data in read_archive(archives[0]).items() if _counts(name)}
    return found, notes


def _walk(folder: Path, notes: list[str], depth: int = 0) -> Iterator[Path]:
    with os.scandir(folder) as entries:
        listed = sorted(
            (entry for _, entry in zip(range(MOST_ENTRIES + 1), entries, strict=False)), key=lambda e: e.name
        )
    if len(listed) > MOST_ENTRIES:
        raise Refused(f"the folder holds more than {MOST_ENTRIES} files")
    for entry in listed:
        if entry.name.startswith(".") or entry.name in IGNORED:
            continue
        if _is_results(Path(entry.path)):
            continue
        if entry.is_symlink():
            notes.append(f"{shown(entry.name)} is a symbolic link: not read")
        elif entry.is_dir(follow_symlinks=False):
            if depth < DEPTH:
                yield from _walk(Path(entry.path), notes, depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield Path(entry.path)
        else:
            notes.append(f"{shown(entry.name)} is no plain file: not read")


def _counts(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= DEPTH + 1 and not any(part.startswith(".") or part in IGNORED for part in parts)


def _read(path: Path) -> bytes:
    """At most one byte more than a source may have: a file may be a terabyte of nothing, or a pipe without a writer."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused(f"{shown(path.name)} is no plain file")
        return stream.read(MOST_SOURCE + 1)


def _moment(path: Path) -> datetime:
    try:
        return datetime.fromtimestamp(int(path.lstat().st_mtime), UTC)
    except (OSError, ValueError, OverflowError):
        return datetime.fromtimestamp(0, UTC)


def _folder_moment(folder: Path, files: Sequence[str], otherwise: datetime) -> datetime:
    """What the folder's own file says, else the newest of the files that count."""
    try:
        return _parsed(_read(folder / TIMES_FILE).decode("utf-8").strip())
    except (OSError, ValueError):
        return max((_moment(folder / name) for name in files if (folder / name).exists()), default=otherwise)


def _given_times(file: Path) -> dict[tuple[str, str], datetime]:
    """learner,time[,attempt] a row, a heading allowed. Raises NoSubmissions for a time that is none."""
    if not file.is_file():
        return {}
    found = {}
    for number, row in enumerate(csv.reader(file.read_text(encoding="utf-8").splitlines()), start=1):
        if len(row) < 2 or (number == 1 and row[0].strip().casefold() == "learner"):
            continue
        try:
            found[row[0].strip(), row[2].strip() if len(row) > 2 else ""] = _parsed(row[1].strip())
        except ValueError as error:
            raise NoSubmissions(f"{file}:{number}: {error}") from error
    return found


def _parsed(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"{text[:40]!r} is no time: write 2026-12-01T23:59:00+01:00") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
