"""Do many grades in a row against one grader leave memory, processes, threads or files behind?

    python benchmarks/leaks.py [--grades 1000] [--every 50] [--out FOLDER]

The grades are a mix of all ways in which one can end: right, wrong, out of bounds, refused by the compiler, crashed,
hung, unreadable, cancelled half-way, a flood of output, a subprocess left behind. The bar: from the first fifth of the
run to its end no process grows by more than 8 MB (RSS) or 5 %, whichever is more, and the counts of processes, threads,
open files, mapped buffers and temporary files are what they were.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.server import GraderServer, Held, held  # noqa: E402
from grader.catalog import find  # noqa: E402
from grader.process_tree import children, descendants  # noqa: E402

MOST_MB, MOST_SHARE = 8.0, 0.05
CALL_LIMIT = 0.5  # seconds: a hang ends after this


@dataclass(frozen=True)
class Submission:
    name: str
    exercise: str
    change: Callable[[str], str]
    expected: str  # status, or "cancelled"
    cancel_at: str | None = None


def in_launcher(line: str) -> Callable[[str], str]:
    """`line` runs in vector_add's launcher, before anything else."""
    return lambda text: text.replace("    out = torch.empty_like(x)\n", f"    {line}\n    out = torch.empty_like(x)\n")


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert old in text, f"{old!r} is not in the solution any more"
        return text.replace(old, new)

    return change


MIX = (
    Submission("right", "vector_add", lambda text: text, "passed"),
    Submission("wrong", "vector_add", replaced("x + y,", "x - y,"), "wrong_answer"),
    Submission("right, two axes", "block_copy_2d", lambda text: text, "passed"),
    Submission("out of bounds", "vector_add", replaced("x_ptr + offs, mask=mask)", "x_ptr + offs)"), "out_of_bounds"),
    Submission("dies", "vector_add", in_launcher("import os; os.abort()"), "crashed"),
    Submission("hangs", "vector_add", in_launcher("while True: pass"), "timeout"),
    Submission("cannot be parsed", "vector_add", lambda text: text + "\ndef (:\n", "import_error"),
    Submission("cancelled", "softmax", lambda text: text, "cancelled", cancel_at="case"),
    Submission("refused by the compiler", "vector_add", replaced("BLOCK=1024)", "BLOCK=1000)"), "compile_error"),
    Submission("prints a megabyte", "vector_add", in_launcher("print('x' * (1 << 20))"), "passed"),
    Submission(
        "leaves a process", "vector_add", in_launcher("import subprocess; subprocess.Popen(['sleep', '600'])"), "passed"
    ),
    Submission("fails on import", "row_max", lambda text: text + "\nraise ValueError('no')\n", "import_error"),
)


@dataclass(frozen=True)
class Sample:
    grades: int
    judge: Held
    warm: tuple[Held, ...]
    processes: int
    files: int  # in the temporary folder


def sample(grades: int, server: GraderServer, folder: Path) -> Sample:
    judge = held(server.pid)
    assert judge is not None
    warm = tuple(h for h in map(held, sorted(children(server.pid))) if h is not None)
    return Sample(grades, judge, warm, len(descendants(server.pid)), sum(1 for _ in folder.rglob("*")))


def run(grades: int, every: int) -> tuple[list[Sample], Counter[str], list[str]]:
    """The samples, how often each way of ending came, and what ended in another way than it should."""
    samples, ends, surprises = [], Counter[str](), []
    stopped: list[int] = []  # what was measured until then is kept
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    with tempfile.TemporaryDirectory(prefix="triton-prep-leaks-") as name:
        sources, temporary = Path(name) / "sources", Path(name) / "tmp"
        sources.mkdir()
        temporary.mkdir()
        files = {}
        for number, one in enumerate(MIX):
            files[one.name] = sources / f"{number}.py"
            files[one.name].write_text(one.change(find(one.exercise).solution.read_text()))
        with GraderServer(TMPDIR=str(temporary)) as server:
            for number in range(grades):
                if stopped:
                    break
                one = MIX[number % len(MIX)]
                limit = {"call_limit": CALL_LIMIT} if one.expected == "timeout" else {}
                event, _ = server.grade(one.exercise, files[one.name], one.cancel_at, backend="interpreter", **limit)
                end = event["verdict"]["status"] if event["event"] == "verdict" else event["kind"]
                ends[one.name] += 1
                if end != one.expected:
                    surprises.append(f"grade {number + 1}, {one.name}: {end}, not {one.expected}")
                if (number + 1) % every == 0:
                    time.sleep(0.3)  # what was killed is reaped
                    samples.append(sample(number + 1, server, temporary))
                    print(row(samples[-1]), flush=True)
    return samples, ends, surprises


def growth(samples: list[Sample]) -> list[str]:
    """What grew from the first fifth of the run to its end, in words."""
    first, last = samples[max(len(samples) // 5 - 1, 0)], samples[-1]
    found = []
    names = ["judge", *(f"warm process {n}" for n in range(1, len(first.warm) + 1))]
    for name, old, new in zip(names, (first.judge, *first.warm), (last.judge, *last.warm), strict=False):
        if new.rss_mb - old.rss_mb > max(MOST_MB, MOST_SHARE * old.rss_mb):
            found.append(f"{name}: {old.rss_mb:.0f} MB grew to {new.rss_mb:.0f} MB")
        for what in ("threads", "open_files", "shared_mappings"):
            if getattr(new, what) != getattr(old, what):
                found.append(f"{name}: {what.replace('_', ' ')} went from {getattr(old, what)} to {getattr(new, what)}")
    for what in ("processes", "files"):
        if getattr(last, what) != getattr(first, what):
            found.append(f"{what} went from {getattr(first, what)} to {getattr(last, what)}")
    return found


HEADER = (
    "| grades | judge RSS MB | warm RSS MB | PSS MB, all | processes | threads | open files | mapped buffers | "
    "temporary files |\n"
    "|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)


def row(one: Sample) -> str:
    everyone = (one.judge, *one.warm)

    def counts(what: str) -> str:
        return " + ".join("–" if (n := getattr(h, what)) is None else str(n) for h in everyone)

    pss = [h.pss_mb for h in everyone]
    return (
        f"| {one.grades} | {one.judge.rss_mb:.0f} | {' + '.join(f'{h.rss_mb:.0f}' for h in one.warm)} | "
        f"{'–' if None in pss else f'{sum(p or 0 for p in pss):.0f}'} | {one.processes} | {counts('threads')} | "
        f"{counts('open_files')} | {counts('shared_mappings')} | {one.files} |"
    )


def page(samples: list[Sample], ends: Counter[str], found: list[str], seconds: float) -> str:
    import torch
    import triton

    verdict = "Nothing grew." if not found else "**Grew:** " + "; ".join(found) + "."
    return (
        f"# {samples[-1].grades} grades in a row against one grader\n\n"
        f"{date.today()}, interpreter, torch {torch.__version__}, triton {triton.__version__}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores; {seconds:.0f} s. Made by "
        f"`python benchmarks/leaks.py --grades {samples[-1].grades}`. "
        "Sums are the judge and its warm processes, in the order in which they were started.\n\n"
        f"The mix, in turn: {', '.join(f'{name} ({count})' for name, count in ends.items())}.\n\n"
        f"{HEADER}\n" + "\n".join(row(one) for one in samples) + "\n\n"
        f"The bar: from the first fifth on, at most {MOST_MB:g} MB or {MOST_SHARE:.0%} more RSS a process, and equal "
        f"counts. {verdict}\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--grades", type=int, default=1000)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    started = time.perf_counter()
    print(HEADER)
    samples, ends, surprises = run(options.grades, options.every)
    found = growth(samples)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "leaks.md").write_text(page(samples, ends, found, time.perf_counter() - started))
    for line in [*surprises[:20], *found]:
        print(line)
    return 1 if found or surprises else 0


if __name__ == "__main__":
    sys.exit(main())
