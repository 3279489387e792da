"""bench: every size of some exercises on this device, or in the model; reports, and what got slower."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader import catalog
from tutor import batch
from tutor.bench.compare import Comparison, NotComparable, compare
from tutor.bench.record import NotARecord, Record, read, record_of
from tutor.bench.report import comparison_lines, heading, markdown, page, table, without_figures
from tutor.commands.session import Session, open_session
from tutor.commands.terminal import CANNOT, FELL_SHORT, PASSED, USAGE, Stop, note, say, say_json
from tutor.grading import Answer, Event, Failed, Progressed
from tutor.html_page import left_out_words
from tutor.progress import exercise_id
from tutor.whole_files import write_atomically


@dataclass(frozen=True)
class Options:
    mine: bool = False
    model: bool = False
    device: str = ""  # of the model
    compiled: bool = True
    out: Path | None = None
    compare: Path | None = None
    as_json: bool = False


def bench(names: Sequence[str], options: Options, folder: Path | None) -> int:
    """0, or 1 when an exercise has no figure or got slower than in the earlier run, or 3 without a GPU."""
    if options.device and not options.model:
        raise Stop("--device is the model's: give --model too.", USAGE)
    earlier = _earlier(options)
    session = open_session(folder, create=False, course_needed=False)
    slugs = list(dict.fromkeys(session.slug(name) for name in names)) or _all(session, options.mine)
    if not slugs:
        raise Stop("No exercise of yours has passed yet: name one, or leave out --mine.", USAGE)
    files = [session.workspace.file(slug) if options.mine else catalog.find(slug).solution for slug in slugs]
    events = _run(slugs, files, options)
    unable = next((e for e in events if isinstance(e, Failed) and e.kind == "infrastructure"), None)
    if unable is not None and not any(isinstance(e, Answer) for e in events):
        note(unable.message)
        return CANNOT
    answers = [(slug, _data(event)) for slug, event in zip(slugs, events, strict=True)]
    record = record_of(answers, _whose(options))
    comparison = _compared(earlier, record)
    _tell(record, comparison, options)
    if comparison is not None and comparison.of("slower"):
        return FELL_SHORT
    return FELL_SHORT if without_figures(record) and not options.model else PASSED


def _all(session: Session, mine: bool) -> list[str]:
    slugs = [files.slug for files in catalog.exercises()]
    if mine:
        return [slug for slug in slugs if session.progress.state(exercise_id(session.course, slug)).passed]
    return slugs


def _earlier(options: Options) -> Record | None:
    if options.compare is None:
        return None
    if options.model:
        raise Stop("--compare is of measured runs: leave out --model.", USAGE)
    try:
        return read(options.compare)
    except NotARecord as error:
        raise Stop(str(error), USAGE) from error
    except OSError as error:
        raise Stop(f"{options.compare} cannot be read: {error.strerror}", USAGE) from error


def _run(slugs: Sequence[str], files: Sequence[Path], options: Options) -> list[Event]:
    """One after another: a timing run must be alone on its GPU."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    fields: dict[str, Any] = {"model": options.model, "compiled": options.compiled}
    if options.device:
        fields["device"] = options.device
    shown = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not shown) as bar:
        task = bar.add_task("starting the grader", total=len(slugs))

        def heard(index: int, event: Event) -> None:
            if isinstance(event, Progressed):
                done = index + event.done / max(event.total, 1)
                bar.update(task, completed=done, description=f"{slugs[index]}: {event.words}")

        def job(slug: str, file: Path) -> batch.Job:
            return lambda grader: grader.ask("bench", slug, file, **fields)

        ended: list[tuple[str, dict[str, Any] | str]] = []

        def keep(index: int, event: Event) -> None:
            """What has been measured outlives a run that is ended early."""
            ended.append((slugs[index], _data(event)))
            if options.out is not None and isinstance(event, Answer):
                record = record_of(ended, _whose(options))
                _save(options.out, {f"{_stem(record)}.json": json.dumps(record.as_json(), indent=1) + "\n"})

        jobs = [job(slug, file) for slug, file in zip(slugs, files, strict=True)]
        return batch.run(jobs, on_event=heard, on_result=keep)


def _whose(options: Options) -> str:
    return "mine" if options.mine else "solutions"


def _data(event: Event) -> dict[str, Any] | str:
    if isinstance(event, Answer):
        return event.data
    return event.message if isinstance(event, Failed) else "the grader gave no answer"


def _compared(earlier: Record | None, record: Record) -> Comparison | None:
    try:
        return compare(earlier, record) if earlier is not None else None
    except NotComparable as error:
        raise Stop(f"The two runs cannot be compared: {error}.", USAGE) from error


def _tell(record: Record, comparison: Comparison | None, options: Options) -> None:
    if options.out is not None:
        _write(record, comparison, options.out)
    if options.as_json:
        say_json(record.as_json() | ({"comparison": _json(comparison)} if comparison is not None else {}))
        return
    for line in heading(record):
        say(line)
    head, rows = table(record)
    if rows:
        widths = [max(len(cell) for cell in column) for column in zip(head, *rows, strict=True)]
        for row in (head, *rows):
            say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    for text in without_figures(record):
        say(f"No figure: {text}")
    for line in comparison_lines(comparison) if comparison is not None else ():
        say(line)


def _json(comparison: Comparison) -> dict[str, Any]:
    changes = [vars(change) | {"ratio": change.ratio} for change in comparison.changes]
    return {"changes": changes, "missing": list(comparison.missing), "notes": list(comparison.notes)}


def _write(record: Record, comparison: Comparison | None, out: Path) -> None:
    """Three files of one name: JSON for the next comparison, Markdown, HTML; the first two need no other package."""
    stem = _stem(record)
    texts = {"json": json.dumps(record.as_json(), indent=1) + "\n", "md": markdown(record, comparison)}
    _save(out, {f"{stem}.{ending}": text for ending, text in texts.items()})
    try:
        html = page(record, comparison)
    except ImportError as error:
        note(f"Written: {out / stem}.json, .md. {left_out_words('The HTML page', error)}")
        return
    _save(out, {f"{stem}.html": html})
    note(f"Written: {out / stem}.json, .md, .html")


def _stem(record: Record) -> str:
    return f"bench-{'model-' if record.model else ''}{record.device.lower().replace(' ', '-')}"


def _save(out: Path, texts: dict[str, str]) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            write_atomically(out / name, text.encode())
    except OSError as error:
        raise Stop(f"{out} cannot be written: {error.strerror}", CANNOT) from error
