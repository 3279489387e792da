"""Grade every known mistake on the interpreter, and hold the two bars: none passes, at least 95 % get their own name.

    python benchmarks/mistakes.py [--only WORD] [--no-write]

Writes benchmarks/results/mistakes-interpreter.md. Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import datetime
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.server import GraderServer  # noqa: E402
from grader.catalog import find  # noqa: E402
from tests.grader.mistakes import KnownMistake, all_mistakes  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "mistakes-interpreter.md"
NAMED = 0.95  # share of the mistakes that must get their own name


@dataclass(frozen=True)
class Graded:
    """A mistake and what the grader said of it."""

    mistake: KnownMistake
    source: str
    verdict: dict[str, Any]

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
        return self.verdict["status"] == self.mistake.status != "passed"

    @property
    def named(self) -> bool:
        return self.diagnosis.get("cause") in self.mistake.causes

    @property
    def located(self) -> bool:
        return self.mistake.line is None or self.mistake.line in (self.line or "")


def graded(server: GraderServer, mistake: KnownMistake, folder: Path) -> Graded:
    """Raises RuntimeError when the grader gives no verdict, or has ended."""
    file = folder / f"{mistake.exercise}.py"
    source = mistake.text(find(mistake.exercise).solution.read_text())
    file.write_text(source)
    event, _ = server.grade(mistake.exercise, file, backend="interpreter")
    if event["event"] != "verdict":
        raise RuntimeError(str(event.get("message")))
    return Graded(mistake, source, event["verdict"])


def table(rows: list[Graded], seconds: float) -> str:
    versions = rows[0].verdict["versions"]
    caught, named, located = (sum(getattr(row, name) for row in rows) for name in ("caught", "named", "located"))
    passed = sum(row.verdict["status"] == "passed" for row in rows)
    exercises = {row.mistake.exercise for row in rows}
    text = [
        "# Known mistakes, graded on the interpreter",
        "",
        f"{datetime.date.today()}, triton {versions['triton']}, torch {versions['torch']}, "
        f"Python {versions['python']}. Made by `python benchmarks/mistakes.py`.",
        "",
        f"{len(rows)} submissions in {len(exercises)} exercises, {seconds:.0f} s. Passed: {passed}. "
        f"Status as expected: {caught}. Right by name: {named} ({named / len(rows):.1%}). "
        f"Line as expected: {located}.",
        "",
        "No. is the place in the list of mistakes collected from public issue trackers; D: the interpreter and the "
        "compiler disagree.",
        "",
        "| exercise | no. | mistake | status | cause | named line | smallest failing case | ✓ |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        good = "✓" if row.caught and row.named and row.located else "✗"
        cells = [
            row.mistake.exercise,
            ", ".join(row.mistake.numbers),
            row.mistake.title,
            row.verdict["status"],
            str(row.diagnosis.get("cause")),
            f"`{row.line}`" if row.line else "",
            row.diagnosis.get("case") or "",
            good,
        ]
        text.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    text += ["", "## Not run here", "", "| exercise | no. | mistake | why |", "|---|---|---|---|"]
    for mistake in all_mistakes():
        if mistake.why_not_run:
            text.append(
                f"| {mistake.exercise} | {', '.join(mistake.numbers)} | {mistake.title} | {mistake.why_not_run} |"
            )
    return "\n".join(text) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only mistakes whose id contains this")
    parser.add_argument("--no-write", action="store_true", help="print, and leave the results file alone")
    options = parser.parse_args()
    chosen = [m for m in all_mistakes() if not m.why_not_run and options.only in m.id]
    server, rows, started = GraderServer(), [], time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for number, mistake in enumerate(chosen, 1):
                try:
                    row = graded(server, mistake, Path(folder))
                except RuntimeError:  # the grader's own files changed under it, or it died: once more with a new one
                    server.close()
                    server = GraderServer()
                    row = graded(server, mistake, Path(folder))
                rows.append(row)
                good = row.caught and row.named and row.located
                print(
                    f"{'ok ' if good else 'BAD'} {number:3}/{len(chosen)} {mistake.id}: {row.verdict['status']}, "
                    f"{row.diagnosis.get('cause')}, {row.line!r}",
                    flush=True,
                )
                if not good:
                    print(f"        {row.diagnosis.get('message')!s:.400}", flush=True)
    finally:
        server.close()
    passed = [row.mistake.id for row in rows if row.verdict["status"] == "passed"]
    named = sum(row.named for row in rows)
    print(f"{len(rows)} graded: {len(passed)} passed, {named} right by name ({named / max(len(rows), 1):.1%})")
    print("per exercise:", dict(Counter(row.mistake.exercise for row in rows)))
    if not options.only and not options.no_write:
        RESULTS.write_text(table(rows, time.perf_counter() - started))
        print(f"written: {RESULTS.relative_to(ROOT)}")
    return 1 if passed or named < NAMED * len(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
