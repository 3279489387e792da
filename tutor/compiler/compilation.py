"""What the grader's `stages` tells of a compile, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

TARGETS = {
    "sm_80": "A100",
    "sm_89": "L4, L40S, RTX 4090",
    "sm_90": "H100, H200",
    "sm_100": "B200",
    "gfx942": "MI300X, from AMD",
}
STAGE_PURPOSE = {
    "TTIR": "your kernel as whole-tensor operations, for no particular GPU",
    "TTGIR": "the same with layouts: which thread holds which element, what goes through shared memory",
    "LLIR": "what one thread does, in LLVM's language",
    "PTX": "NVIDIA's portable assembly: the compiler's last word before ptxas assigns registers",
    "SASS": "the machine code that the GPU runs",
    "AMDGCN": "AMD's assembly: what the GPU runs",
}


@dataclass(frozen=True)
class Mark:
    """A line that matters for speed. `row` counts from 0."""

    row: int
    kind: str
    words: str


@dataclass(frozen=True)
class StageText:
    """`lines[row]` are the learner's lines (from 1) that a row comes from, the innermost call first."""

    name: str
    rows: tuple[str, ...]
    lines: tuple[tuple[int, ...], ...]
    library: Mapping[int, str] = field(default_factory=dict)
    marks: Mapping[int, Mark] = field(default_factory=dict)

    @cached_property
    def rows_of(self) -> dict[int, tuple[int, ...]]:
        """The rows that come from each of the learner's lines."""
        found: dict[int, list[int]] = {}
        for row, lines in enumerate(self.lines):
            for line in lines:
                found.setdefault(line, []).append(row)
        return {line: tuple(rows) for line, rows in found.items()}


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel. A stage without text has to be asked for: `stages[name] is None`."""

    name: str
    label: str  # what tells it from the submission's other kernels
    numbers: Mapping[str, Any]
    counted_in: str
    counts: tuple[tuple[str, int], ...]
    note: str
    stages: Mapping[str, StageText | None]


@dataclass(frozen=True)
class Compilation:
    target: str
    num_warps: int | None  # forced; None: as the launches say
    source: str
    called: str  # with which sizes, in words
    kernels: tuple[Kernel, ...]
    total: int
    error: str = ""
    error_line: int | None = None

    @property
    def stopped(self) -> str:
        """In words, what ended the call when it had compiled kernels already; empty: nothing did."""
        if not (self.kernels and self.error):
            return ""
        line = f"line {self.error_line}: " if self.error_line else ""
        return f"Stopped after compiling {_counted(self.total, 'kernel')}: {line}{self.error}"


@dataclass(frozen=True)
class Version:
    """What is compiled: a file for a target."""

    title: str
    file: Path
    target: str
    num_warps: int | None = None
    sizes: str = "timed"  # or "case": the largest case

    @property
    def fields(self) -> dict[str, Any]:
        """Of the request."""
        warps = {"num_warps": self.num_warps} if self.num_warps else {}
        return {"target": self.target, "sizes": self.sizes, **warps}


def parse(data: Mapping[str, Any]) -> Compilation:
    error = data.get("error") or {}
    return Compilation(
        target=data["target"],
        num_warps=data.get("num_warps"),
        source=data["source"],
        called=_called(data),
        kernels=tuple(_kernel(kernel) for kernel in data["kernels"]),
        total=data["total"],
        error=str(error.get("message") or ""),
        error_line=error.get("line"),
    )


def _called(data: Mapping[str, Any]) -> str:
    if data.get("sizes") == "timed":
        return f"called with {data['case']}, the size that is timed"
    return f"called as in case {data['case']}"


def _kernel(data: Mapping[str, Any]) -> Kernel:
    numbers = data["numbers"]
    fixed = [f"{name}={value}" for name, value in data["constexprs"].items() if name.isupper()]
    label = ", ".join([*fixed, f"{numbers['num_warps']} warps", f"{numbers['num_stages']} stages"])
    return Kernel(
        data["name"],
        label,
        numbers,
        data["counted_in"],
        tuple((words, number) for words, number in data["counts"]),
        data.get("note") or "",
        {stage["name"]: stage_text(stage) for stage in data["stages"]},
    )


def stage_text(data: Mapping[str, Any]) -> StageText | None:
    if data.get("text") is None:
        return None
    return StageText(
        data["name"],
        tuple(data["text"].split("\n")),
        tuple(tuple(lines) for lines in data["lines"]),
        {int(row): name for row, name in data["library"].items()},
        {row: Mark(row, kind, words) for row, kind, words in data["marks"]},
    )


# numbers


def numbers_words(kernel: Kernel) -> str:
    """The figures that decide how many programs run at a time, on one line."""
    numbers = kernel.numbers
    parts = []
    if numbers.get("registers") is not None:
        parts.append(f"{numbers['registers']} registers")
    if numbers.get("spill_bytes") is not None:
        parts.append(f"{numbers['spill_bytes']} B spilled" if numbers["spill_bytes"] else "no spills")
    parts.append(f"{_bytes(numbers['shared_bytes'])} shared")
    if numbers.get("occupancy") is not None:
        parts.append(f"occupancy {100 * numbers['occupancy']:.3g}%")
    parts += [_counted(numbers["num_warps"], "warp"), _counted(numbers["num_stages"], "stage")]
    parts.append(f"{_counted(numbers['instructions'], 'instruction')} of {kernel.counted_in}")
    return " · ".join(parts)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _bytes(number: int) -> str:
    return f"{number / 1024:.0f} KiB" if number >= 10240 else f"{number} B"
