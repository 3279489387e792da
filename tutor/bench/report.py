"""A bench run as Markdown, and as one HTML page that needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from tutor.bench.compare import Comparison
from tutor.bench.record import Record
from tutor.figures import MODEL
from tutor.html_page import html_page
from tutor.verdict_text import RANK_WORDS

MEASURED = "exercise,timed at,median µs,p20–p80,eager,compiled,solution,GB/s,TFLOP/s,% of limit,rank".split(",")
MODELLED = "exercise,size,model µs,limit µs,% of limit,waits for,memory,compute,issue,l2,starts,launches".split(",")
MEASURED_HOW = (
    "Medians in µs, cold L2, candidates interleaved in one run on values that change from round to round, outputs",
    "verified. The limit is measured in the same run: copy bandwidth, or an 8192³ matmul of the same dtype.",
)
STYLE = """\
body { max-width: 72rem; }
table { font-size: 14px; }
td, th { padding: .2rem .6rem; white-space: nowrap; }
.wide { overflow-x: auto; } figure { margin: 1rem 0; }
"""
WHOSE = {"solutions": "The course's reference solutions", "mine": "Your files"}


def heading(record: Record) -> list[str]:
    """Where and how the figures came about."""
    versions = ", ".join(f"{name} {value}" for name, value in record.versions.items() if value)
    lines = [f"{WHOSE[record.whose]}. {record.device}, {versions}, {record.date}."]
    if record.model:
        lines.append(f"A {MODEL}: counted bytes, FLOPs and the offline compile, put against the data sheet.")
    else:
        lines += MEASURED_HOW
    return lines


def cells(exercise: str, row: dict[str, Any]) -> list[str]:
    """One row of a table, measured or modelled."""
    if row.get("model"):
        # a record written before the model knew of issue has none
        parts = [_number(row.get(f"{part}_us")) for part in ("memory", "compute", "issue", "l2", "starts", "launch")]
        share = f"{row['percent_of_limit']:.0f}"
        return [exercise, row["case"], f"{row['time_us']:.1f}", f"{row['limit_us']:.1f}", share, row["limit"], *parts]
    rank = RANK_WORDS.get(str(row["rank"]), str(row["rank"])) + (", in L2" if row.get("in_l2") else "")
    others = [_number(row.get(name)) for name in ("eager_us", "compiled_us", "solution_us")]
    return [
        exercise, row["case"], f"{row['median_us']:.1f}", f"{row['p20_us']:.1f}–{row['p80_us']:.1f}", *others,
        f"{row['gb_per_s']:.0f}", f"{row['tflop_per_s']:.1f}", f"{row['percent_of_limit']:.0f} ({row['limit']})", rank,
    ]  # fmt: skip


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def table(record: Record) -> tuple[list[str], list[list[str]]]:
    return (MODELLED if record.model else MEASURED), [cells(name, row) for name, row in record.rows()]


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(head)} |", "|" + "---|" * len(head), *(f"| {' | '.join(row)} |" for row in rows)]


def without_figures(record: Record) -> list[str]:
    found = [f"{result.exercise}: {result.reason}" for result in record.results if result.reason]
    for result in record.results:
        found += [f"{result.exercise}, {row['case']}: {row['reason']}" for row in result.rows if row.get("reason")]
    return found


def markdown(record: Record, comparison: Comparison | None = None) -> str:
    lines = [f"# Bench: {'model' if record.model else 'measured'}", "", *heading(record), ""]
    lines += markdown_table(*table(record))
    if missing := without_figures(record):
        lines += ["", "No figure:", "", *(f"- {text}" for text in missing)]
    if comparison is not None:
        lines += ["", "## Beside the earlier run", "", *comparison_lines(comparison)]
    return "\n".join(lines) + "\n"


def comparison_lines(comparison: Comparison) -> list[str]:
    """Slower first: by more than the noise means that the spreads of the two runs do not overlap."""
    lines = [f"Note: {note}." for note in comparison.notes]
    for state in ("slower", "faster"):
        found = comparison.of(state)
        lines.append(f"{len(found)} {state} by more than the noise{':' if found else '.'}")
        lines += [
            f"- {c.exercise}, {c.case}: {c.old_us:.1f} to {c.new_us:.1f} µs ({100 * (c.ratio - 1):+.1f} %)"
            for c in found
        ]
    lines.append(f"{len(comparison.of('same'))} the same within the noise.")
    lines += [f"Too noisy to say: {c.exercise}, {c.case}." for c in comparison.of("too_noisy")]
    lines += [f"No figure any more: {text}." for text in comparison.missing]
    return lines


def page(record: Record, comparison: Comparison | None = None) -> str:
    """Self-contained: tables and SVG, no script, nothing fetched."""
    from tutor.bench.plots import plots

    head, rows = table(record)
    title = f"Bench: {record.device}, {MODEL if record.model else 'measured'}"
    parts = [f"<h1>{_text(title)}</h1>", *(f"<p>{_text(line)}</p>" for line in heading(record))]
    parts += [f"<figure>{svg}</figure>" for svg in plots(record)]
    parts.append("<div class=wide><table><tr>" + "".join(f"<th>{_text(name)}</th>" for name in head) + "</tr>")
    parts += ["<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    parts.append("</table></div>")
    for name, lines in (
        ("No figure", without_figures(record)),
        ("Beside the earlier run", comparison and comparison_lines(comparison)),
    ):
        if lines:
            parts.append(
                f"<h2>{name}</h2><ul>"
                + "".join(f"<li>{_text(line.removeprefix('- '))}</li>" for line in lines)
                + "</ul>"
            )
    return html_page(title, STYLE, "\n".join(parts))


def _text(value: object) -> str:
    return html.escape(str(value))
