"""Grade every known mistake, and hold the two bars: none passes, at least 95 % get their own name.

    python benchmarks/mistakes.py [--backend interpreter|cuda] [--servers N] [--only WORD]… [--out DIR] [--no-write]

Writes mistakes-interpreter.md, or mistakes-<device>.md on a GPU. The table
grows as verdicts come. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.side_by_side import Graders  # noqa: E402
from grader.catalog import find  # noqa: E402
from tests.grader.mistakes import KnownMistake, all_mistakes  # noqa: E402
from tutor.whole_files import write_atomically  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results"
NAMED = 0.95  # share of the mistakes that must get their own name


@dataclass(frozen=True)
class Graded:
    """A mistake and what the grader said of it."""

    mistake: KnownMistake
    source: str
    verdict: dict[str, Any]
    backend: str

    @property
    def right(self) -> bool:
        """Whether it is no mistake here."""
        return self.backend == "cuda" and self.mistake.right_on_cuda

    @property
    def diagnosis(self) -> dict[str, Any]:
        return self.verdict["diagnosis"] or {}

    @property
    def line(self) -> str | None:
        """The text of the named line."""
        number = self.diagnosis.get("line")
        return self.source.splitlines()[number - 1].strip() if number else None

    @property
    def caught(self) -> bool:
        if self.right:
            return self.verdict["status"] == "passed"
        by_chance = self.mistake.cuda_statuses if self.backend == "cuda" else ()
        wanted = {self.mistake.status, *by_chance}
        return self.verdict["status"] in (wanted if self.mistake.status == "passed" else wanted - {"passed"})

    @property
    def named(self) -> bool:
        by_chance = self.mistake.cuda_causes if self.backend == "cuda" else ()
        return self.right or self.diagnosis.get("cause") in (*self.mistake.causes, *by_chance)

    @property
    def located(self) -> bool:
        return self.right or self.mistake.line is None or self.mistake.line in (self.line or "")

    @property
    def good(self) -> bool:
        return self.caught and self.named and self.located

    @property
    def escaped(self) -> bool:
        return self.verdict["status"] == "passed" and self.mistake.status != "passed" and not self.right


def graded(graders: Graders, mistake: KnownMistake, folder: Path, backend: str) -> Graded:
    """Raises RuntimeError when the grader gives no verdict."""
    file = folder / str(threading.get_ident()) / f"{mistake.exercise}.py"
    file.parent.mkdir(exist_ok=True)
    source = mistake.text(find(mistake.exercise).solution.read_text())
    file.write_text(source)
    for attempt in range(2):
        try:
            event, _ = graders.mine().grade(mistake.exercise, file, backend=backend, time=False)
            if event["event"] == "verdict":
                return Graded(mistake, source, event["verdict"], backend)
            reason = str(event.get("message"))
        except (RuntimeError, OSError) as ended:  # the grader died: once more with a new one
            reason = str(ended)
            print(f"{mistake.id}: {reason}", file=sys.stderr, flush=True)
    raise RuntimeError(f"{mistake.id}: {reason}")


def why_not(mistake: KnownMistake, backend: str, gpus: int) -> str | None:
    """Why a mistake is not graded here; None where it is."""
    if mistake.why_not_run or not mistake.needs_cuda:
        return mistake.why_not_run
    if backend != "cuda":
        return "needs a GPU" if mistake.gpus == 1 else f"needs {mistake.gpus} GPUs"
    return f"needs {mistake.gpus} GPUs, of which {gpus} can be seen" if gpus < mistake.gpus else None


def table(rows: list[Graded], seconds: float, backend: str, gpus: int) -> str:
    versions = rows[0].verdict["versions"]
    caught, named, located = (sum(getattr(row, name) for row in rows) for name in ("caught", "named", "located"))
    passed, right = sum(row.escaped for row in rows), sum(row.right for row in rows)
    remarked = sum(row.caught and row.mistake.status == "passed" for row in rows)
    exercises = {row.mistake.exercise for row in rows}
    text = [
        f"# Known mistakes, graded on {'the interpreter' if backend == 'interpreter' else rows[0].verdict['device']}",
        "",
        f"{datetime.date.today()}, triton {versions['triton']}, torch {versions['torch']}, "
        f"Python {versions['python']}. Made by `python benchmarks/mistakes.py`.",
        "",
        f"{len(rows)} submissions in {len(exercises)} exercises, {seconds:.0f} s. Passed though wrong: {passed}. "
        f"Status as expected: {caught}. Right by name: {named} ({named / len(rows):.1%}). "
        f"Line as expected: {located}."
        + (f" Right on a GPU, and passed there: {right}." if right else "")
        + (f" Passed with a remark, as expected: {remarked}." if remarked else ""),
        "",
        "No. is the place in the list of mistakes collected from public issue trackers; D: the interpreter and the "
        "compiler disagree.",
        "",
        "| exercise | no. | mistake | status | cause | named line | smallest failing case | ✓ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [
            row.mistake.exercise,
            ", ".join(row.mistake.numbers),
            row.mistake.title,
            row.verdict["status"],
            str(row.diagnosis.get("cause")),
            f"`{row.line}`" if row.line else "",
            row.diagnosis.get("case") or "",
            "✓" if row.good else "✗",
        ]
        text.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    text += ["", "## Not run here", "", "| exercise | no. | mistake | why |", "|---|---|---|---|"]
    for mistake in all_mistakes():
        why = why_not(mistake, backend, gpus)
        if why:
            text.append(f"| {mistake.exercise} | {', '.join(mistake.numbers)} | {mistake.title} | {why} |")
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], help="mistakes whose id contains this; several times")
    parser.add_argument("--backend", choices=("interpreter", "cuda"), default="interpreter")
    parser.add_argument("--servers", type=int, default=1, help="graders side by side")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--no-write", action="store_true", help="print, and leave the results file alone")
    options = parser.parse_args()
    gpus = torch.cuda.device_count() if options.backend == "cuda" else 0
    chosen = []
    for mistake in all_mistakes():
        if not options.only or any(word in mistake.id for word in options.only):
            why = why_not(mistake, options.backend, gpus)
            chosen += [] if why else [mistake]
            if why and options.only:
                print(f"not run: {mistake.id}: {why}")
    rows: list[Graded | None] = [None] * len(chosen)
    path, started = None, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Graders(options.servers) as graders:
        for place, row in graders.each(lambda m: graded(graders, m, Path(folder), options.backend), chosen):
            rows[place] = row
            told(place, len(chosen), row)
            if not options.only and not options.no_write:
                device = "interpreter" if options.backend == "interpreter" else row.verdict["device"]
                path = options.out / f"mistakes-{device.lower().replace(' ', '-')}.md"
                text = table([r for r in rows if r], time.perf_counter() - started, options.backend, gpus)
                write_atomically(path, text.encode())
    done = [row for row in rows if row]
    escaped, named = [row.mistake.id for row in done if row.escaped], sum(row.named for row in done)
    share = f"{named / max(len(done), 1):.1%}"
    print(f"{len(done)} graded: {len(escaped)} passed though wrong, {named} right by name ({share})")
    print("per exercise:", dict(Counter(row.mistake.exercise for row in done)))
    if path:
        print(f"written: {path}")
    return 1 if escaped or named < NAMED * len(done) else 0


def told(place: int, count: int, row: Graded) -> None:
    mark = "ok " if row.good else "BAD"
    found = f"{row.verdict['status']}, {row.diagnosis.get('cause')}, {row.line!r}"
    print(f"{mark} {place + 1:3}/{count} {row.mistake.id}: {found}", flush=True)
    if not row.good:
        print(f"        {row.diagnosis.get('message')!s:.400}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
