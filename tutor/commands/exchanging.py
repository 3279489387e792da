"""export and import: progress as JSON, questions as an Anki deck."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from tutor.commands.session import open_session, say_unkept
from tutor.commands.terminal import CANNOT, PASSED, USAGE, Stop, note, say
from tutor.exchange import BadDocument, decoded, exported, merge
from tutor.whole_files import write_atomically


def export(what: str, file: Path | None, folder: Path | None) -> int:
    if what == "progress":
        return _export_progress(file, folder)
    if what == "anki":
        return _export_anki(file, folder)
    raise Stop(f"export {what}: write `export progress [FILE]` or `export anki FILE`.", USAGE)


def _export_progress(file: Path | None, folder: Path | None) -> int:
    session = open_session(folder, create=False)
    document = exported(session.progress)
    content = msgspec.json.format(msgspec.json.encode(document), indent=1)
    if file is None:
        say(content.decode())
        return PASSED
    _write(file, content + b"\n")
    note(f"{len(document.attempts)} attempts at {len(document.states)} items: {file}")
    return PASSED


def _export_anki(file: Path | None, folder: Path | None) -> int:
    if file is None:
        raise Stop("An Anki deck is a file: triton-prep export anki triton-prep.apkg", USAGE)
    from tutor.anki import NoGenanki, write_deck

    session = open_session(folder, create=False)
    try:
        count = write_deck(session.course, file)
    except NoGenanki as missing:
        raise Stop(str(missing), CANNOT) from missing
    except OSError as error:
        raise Stop(f"{file} cannot be written ({error.strerror or error}).", USAGE) from error
    note(f"{count} cards: {file}. In Anki: File, Import. Importing a later export updates them.")
    return PASSED


def import_(file: Path, folder: Path | None) -> int:
    try:
        content = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    except OSError as error:
        raise Stop(f"{file} cannot be read ({error.strerror}).", USAGE) from error
    try:
        document = decoded(content)
    except BadDocument as bad:
        raise Stop(f"{file}: {bad}. Nothing was imported.", USAGE) from bad
    session = open_session(folder, create=True)
    merged = merge(session.progress, document)
    say_unkept(session.progress)
    if session.progress.path is None:
        raise Stop("The progress file cannot be written: nothing was imported.", CANNOT)
    if not (merged.attempts or merged.states or merged.settings):
        say(f"Everything in it was here already ({len(document.attempts)} attempts).")
        return PASSED
    say(f"{merged.attempts} of {len(document.attempts)} attempts were new; {merged.states} items changed.")
    return PASSED


def _write(file: Path, content: bytes) -> None:
    try:
        write_atomically(file, content)
    except OSError as error:
        raise Stop(f"{file} cannot be written ({error.strerror}).", USAGE) from error
