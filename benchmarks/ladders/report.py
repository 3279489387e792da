"""The record as JSON and as Markdown: what each rung gained over the one below, and what is left to the limit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from benchmarks.ladders.settings import SETTINGS, Setting
from grader.ranking import MOST, apart, wide

COLUMNS = "candidate, median, p20–p80, gain over the rung below, rate, % of limit, × best library call".split(", ")


def best_library(setting: Setting, rows: dict[str, Any]) -> float | None:
    """Microseconds of the fastest call of PyTorch."""
    names = {rung.label for rung in setting.rungs()}
    times = [row["median_us"] for name, row in rows.items() if name not in names and usable(row)]
    return min(times, default=None)


def usable(row: dict[str, Any]) -> bool:
    return bool(row.get("median_us")) and row["wrong"] is None


def gain(below: dict[str, Any] | None, row: dict[str, Any]) -> str:
    """`2.10 ×`; where the spreads overlap or a time is noisy, that and no number."""
    if below is None:
        return "–"
    if any(wide([r["median_us"], r["p20_us"], r["p80_us"]]) for r in (below, row)):
        return "too noisy"
    if not apart(*([r["median_us"], r["p20_us"], r["p80_us"]] for r in (below, row))):
        return "within the spread"
    return f"{below['median_us'] / row['median_us']:.2f} ×"


def share(setting: Setting, result: dict[str, Any], row: dict[str, Any]) -> tuple[str, str]:
    """Rate and percentage of the measured limit."""
    limits = result["limits"]
    if setting.limit == "memory":
        rate, unit, limit = result["bytes"] / row["median_us"] / 1e3, "GB/s", limits.get("copy_gb_per_s")
    else:
        rate, unit, limit = result["flops"] / row["median_us"] / 1e6, "TFLOP/s", limits.get("matmul_tflop_per_s")
    percent = f"{100 * rate / limit:.0f}" if limit else "–"
    if limit and rate / limit > MOST[setting.limit]:
        percent += ", not believed"  # more than the data sheet allows
    return f"{rate:.0f} {unit}", percent


def table(setting: Setting, result: dict[str, Any]) -> list[str]:
    rows, failed = result["rows"], {**result["failed"], **result.get("skipped", {})}
    best = best_library(setting, rows)
    rung_names = [rung.label for rung in setting.rungs()]
    lines = ["| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    below = None
    for name in [n for n in [*rows, *failed] if n not in rung_names] + rung_names:
        row = rows.get(name)
        if row is None or not usable(row):
            lines.append(f"| {name} | {_untimed(row, failed.get(name))} |" + " – |" * (len(COLUMNS) - 2))
            continue
        rate, percent = share(setting, result, row)
        step = gain(below, row) if name in rung_names else "–"
        below = row if name in rung_names else below
        ratio = f"{best / row['median_us']:.2f}" if best else "–"
        spread = f"{row['p20_us']:.1f}–{row['p80_us']:.1f}"
        lines.append("| " + " | ".join([name, f"{row['median_us']:.1f}", spread, step, rate, percent, ratio]) + " |")
    lines += [f"\nRung {number}: {why}." for number, why in setting.left_out.items()]
    if limits := result["limits"]:
        copy, peak = limits["copy_gb_per_s"], limits["matmul_tflop_per_s"]
        lines.append(f"\nLimits in this run: {copy:.0f} GB/s copied, {peak:.0f} TFLOP/s multiplied.")
    return lines


def _untimed(row: dict[str, Any] | None, failed: str | None) -> str:
    why = failed or (row or {}).get("wrong") or ("right, not timed" if row else "–")
    return why.replace("|", "/").replace("\n", " ")


INTRODUCTION = """\
Float16, unless the heading names another type. Medians in µs, cold L2, all candidates of a size interleaved in one run,
on values that change from round to round; every output is compared with PyTorch's, before and in the last round. The
limit is measured in the same process: copy bandwidth for softmax and rms_norm, an 8192³ matmul for the others. A rate
counts the least bytes, or the FLOPs of the products.
The last column is the time of PyTorch's fastest call over the candidate's.
"""


def markdown(record: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in record["versions"].items())
    where = f"{record['device']}, {versions}, {record['date']}. Written by `python -m benchmarks.ladders`."
    lines = ["# The ladders", "", where, "", INTRODUCTION.rstrip()]
    for setting in SETTINGS:
        result = record["settings"].get(setting.name)
        lines += ["", f"## {setting.ladder}: {setting.name}", ""]
        lines += table(setting, result) if result else ["Not measured."]
    return "\n".join(lines) + "\n"


def write(record: dict[str, Any], stem: Path) -> None:
    """Both files, each at once: a run that is killed leaves the last whole one."""
    for suffix, text in ((".json", json.dumps(record, indent=1) + "\n"), (".md", markdown(record))):
        half = stem.with_suffix(suffix + ".part")
        half.write_text(text, encoding="utf-8")
        os.replace(half, stem.with_suffix(suffix))
