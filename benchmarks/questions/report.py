"""The record as JSON and as Markdown."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.questions.question import Question
from grader.ranking import MOST, apart, wide

COLUMNS = ("variant", "median", "p20–p80", "time over the first's", "rate", "registers", "spilled bytes",
           "shared bytes", "allocated")  # fmt: skip
INTRODUCTION = """\
Medians. Unless a variant says otherwise (its clock is in brackets): µs of the GPU's events, cold L2, all variants of a
question interleaved in one run, each compared with PyTorch's answer before. What an event pair around one launch adds
is measured as event-floor. A rate counts the least bytes, or the FLOPs; where both matter, the bytes. A copy reads as
much as it writes; reading alone may be faster, so what hardly writes may reach more than 100 % of a copy without any
help of L2 (one-sum). Registers, spills and shared memory are those of each kernel that a variant launches, in turn.
Allocated: at most, during one call.
"""


def rate(row: dict[str, Any], copy: float | None) -> str:
    """GB/s, with its share of a copy's where that was measured, or TFLOP/s."""
    if row["bytes"] and row["clock"] not in ("host", "process"):
        gb = row["bytes"] / row["median_us"] / 1e3
        if not copy:
            return f"{gb:.0f} GB/s"
        doubt = ", more than the memory has" if gb / copy > MOST["memory"] and row["clock"] == "cold" else ""
        return f"{gb:.0f} GB/s, {100 * gb / copy:.0f} % of a copy{doubt}"
    return f"{row['flops'] / row['median_us'] / 1e6:.0f} TFLOP/s" if row["flops"] else "–"


def against(first: dict[str, Any] | None, row: dict[str, Any]) -> str:
    """`2.10 ×`; where the spreads overlap or a time is noisy, that too."""
    if first is None or first is row or not first.get("median_us"):
        return "–"
    text = f"{row['median_us'] / first['median_us']:.2f} ×"
    if any(wide([r["median_us"], r["p20_us"], r["p80_us"]]) for r in (first, row)):
        return f"{text}, noisy"
    return text if apart(*(_spread(r) for r in (first, row))) else f"{text}, within the spread"


def _spread(row: dict[str, Any]) -> list[float]:
    return [row["median_us"], row["p20_us"], row["p80_us"]]


def _time(us: float) -> str:
    return f"{us:.2f}" if us < 10 else f"{us:.1f}" if us < 1000 else f"{us:,.0f}"


def line(
    name: str, row: dict[str, Any], first: dict[str, Any] | None, kernels: list[dict[str, Any]], copy: float | None
) -> list[str]:
    title = name if row["clock"] == "cold" else f"{name} ({row['clock']})"
    built = [" / ".join(str(k[key]) for k in kernels) or "–" for key in ("registers", "spill_bytes", "shared_bytes")]
    if "median_us" not in row:
        return [title, row.get("says") or "right, not timed", "–", "–", "–", *built, "–"]
    spread = f"{_time(row['p20_us'])}–{_time(row['p80_us'])}"
    peak = f"{row['peak_bytes'] / 1e6:.1f} MB" if "peak_bytes" in row else "–"
    return [title, _time(row["median_us"]), spread, against(first, row), rate(row, copy), *built, peak]


def section(question: Question, result: dict[str, Any], copy: float | None) -> list[str]:
    lines = [f"## {question.name} ({question.module})", "", question.asks, "", f"Why: {question.why}."]
    if question.options:
        lines.append(f"Options: {' · '.join(question.options)}.")
    if result.get("skipped"):
        return [*lines, "", f"Not run: {result['skipped']}."]
    head = " | ".join(COLUMNS).replace("median", f"median, {question.unit}")
    lines += ["", f"| {head} |", "|---" * len(COLUMNS) + "|"]
    rows, kernels, failed = result.get("rows", {}), result.get("kernels", {}), result.get("failed", {})
    for variant in question.variants:
        if variant in rows:
            first = rows.get(question.first(variant))
            cells = line(variant, rows[variant], first, kernels.get(variant, []), copy)
        else:
            why = failed.get(variant) or failed.get("") or {"why": "not measured"}
            cells = [variant, why["why"], *["–"] * (len(COLUMNS) - 2)]
        lines.append("| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |")
    lines += [f"\n{v or 'the question'}: {w['why']}" for v, w in failed.items() if v in rows or not v]
    if note := result.get("note"):
        lines += ["", note]
    return lines


def markdown(record: dict[str, Any], questions: dict[str, Question]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    where = f"{record['device']}, {versions}, {record['date']}. Written by `python -m benchmarks.questions`."
    lines = ["# Answers to questions about speed", "", where, "", INTRODUCTION.rstrip()]
    copy = record.get("copy_gb_per_s")
    if copy:
        lines += ["", f"A copy of 1 GiB by PyTorch in this run: {copy:.0f} GB/s."]
    if clocks := record.get("sm_mhz"):
        lines += ["", f"Clock of the multiprocessors while it ran: {clocks[0]} to {clocks[1]} MHz."]
    for name, result in record["questions"].items():
        lines += ["", *section(questions[name], result, copy)]
    return "\n".join(lines) + "\n"


def write(record: dict[str, Any], questions: dict[str, Question], stem: Path) -> None:
    """Both files, each at once: a run that is killed leaves the last whole one."""
    for suffix, text in ((".json", json.dumps(record, indent=1) + "\n"), (".md", markdown(record, questions))):
        half = stem.with_suffix(suffix + ".part")
        half.write_text(text, encoding="utf-8")
        os.replace(half, stem.with_suffix(suffix))
