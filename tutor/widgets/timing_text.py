"""Times in words and bars: what stands beside the plots of the result view. Measured or modelled, and it says which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tutor.figures import MODEL, Bar, Roofline, bar_rows, flop_rate, known, measured_bars, micro
from tutor.verdict_text import LIMIT_WORDS, RANK_WORDS, condition_lines
from tutor.widgets.content import DIM_STYLE, Content, columns, plain, stack

PARTS = {
    "memory": "memory bandwidth",
    "latency": "the latency of memory: too few loads are under way",
    "compute": "arithmetic",
    "issue": "instructions: a multiprocessor takes only so many of a kind in a clock",
    "l2": "the L2 cache: its tiles are small, so that the same data is loaded many times",
    "starts": "the starts of programs: each does too little",
    "launch": "the launches themselves",
}


def bars_text(
    bars: Sequence[Bar],
    timing: Mapping[str, Any] | None,
    mine: Mapping[str, Any] | None,
    solution: Mapping[str, Any] | None,
    width: int,
) -> Content:
    """Bars with their figures, under a line that says where they come from."""
    parts: list[Content] = []
    if timing is not None:
        rank = RANK_WORDS.get(str(timing.get("rank")), str(timing.get("rank")))
        parts.append(plain(f"Measured, {timing.get('case')}: {rank}", "bold"))
    else:
        row = mine if known(mine) else solution
        of = f", {row['device']}, {row['case']}" if row is not None and known(row) else ""
        parts.append(plain(f"{MODEL[0].upper()}{MODEL[1:]}{of}", "bold"))
    if bars:
        parts += [plain(""), bar_lines(bars, width), plain("")]
    parts += [plain(line) for line in (_measured_words(timing) if timing is not None else _model_words(mine))]
    if timing is None and solution is not None and not known(solution):
        parts.append(plain(f"No estimate of the reference solution: {solution.get('reason')}."))
    return stack(parts)


def bar_lines(bars: Sequence[Bar], width: int) -> Content:
    rows = bar_rows(bars, width)
    if not width:
        return columns([(plain(name), plain(words)) for name, _, words in rows])
    return columns([(plain(name), plain(bar, "$primary"), plain(words)) for name, bar, words in rows])


def _measured_words(timing: Mapping[str, Any]) -> list[str]:
    limit = LIMIT_WORDS.get(str(timing.get("limit")), str(timing.get("limit")))
    lines = [
        f"{timing.get('percent_of_limit'):.0f} % of measured {limit}. Medians; in brackets, 20th to 80th percentile."
    ]
    return lines + condition_lines(timing)


def _model_words(mine: Mapping[str, Any] | None) -> list[str]:
    if mine is None or not known(mine):
        return [f"No estimate of your file: {(mine or {}).get('reason', 'the model was not asked')}."]
    lines = [
        f"What it waits for: {PARTS.get(mine['limit'], mine['limit'])}.",
        f"Memory {micro(mine['memory_us'])}, arithmetic {micro(mine['compute_us'])}, "
        f"instructions {micro(mine['issue_us'])}, L2 {micro(mine['l2_us'])}, starts {micro(mine['starts_us'])}: "
        f"the largest counts, and {micro(mine['launch_us'])} of launches.",
        f"Bytes counted in the interpreter, case {mine['counted']}, and scaled to this size.",
    ]
    return lines + ([str(mine["advice"])] if mine.get("advice") else [])


def roofline_text(shown: Roofline | None) -> Content:
    if shown is None:
        return plain("No roofline: nothing is computed that counts as FLOPs, or there is no figure yet.", DIM_STYLE)
    origin = f"Roofline, {MODEL}" if shown.model else "Roofline, measured"
    peak = f", {shown.tflops:.0f} TFLOP/s" if shown.tflops else "; the peak of arithmetic was not measured"
    lines = [plain(f"{origin}: {shown.gb_per_s:.0f} GB/s{peak}. GFLOP/s upwards.", "bold")]
    seen: dict[str, int] = {}
    for point in reversed(shown.points):
        seen[point.sign] = seen.get(point.sign, 0) + 1
        if seen[point.sign] == 1:
            share = 100 * point.gflops / shown.height(point.intensity)
            intensity = f"{point.intensity:,.0f}" if point.intensity >= 100 else f"{point.intensity:.2g}"
            words = f"{flop_rate(point.gflops)} at {intensity} FLOP a byte, {share:.0f} % of the roof"
            lines.append(plain(f"{point.sign} {point.name}: {words}"))
    if seen.get("e", 0) > 1:
        lines.append(plain(f"e stands for {seen['e']} earlier attempts; the words are of the last of them.", DIM_STYLE))
    return stack(lines)


def sweep_text(data: Mapping[str, Any], width: int) -> Content:
    """A block for each size: bars of its times, or why there is none."""
    origin = MODEL if data.get("model") else "measured"
    parts = [plain(f"Sizes on {data.get('device')}, {origin}", "bold")]
    for row in data.get("rows") or ():
        parts.append(plain(""))
        if row.get("reason"):
            parts.append(plain(f"{row['case']}: no figure: {row['reason']}"))
            continue
        share = f"{row['percent_of_limit']:.0f} % of the limit"
        if data.get("model"):
            bars: tuple[Bar, ...] = (Bar("yours", row["time_us"]), Bar("the limit", row["limit_us"]))
            parts.append(plain(f"{row['case']}: {share}, {row['limit']}", "bold"))
        else:
            bars = measured_bars(row)
            rank = RANK_WORDS.get(str(row["rank"]), str(row["rank"]))
            parts.append(plain(f"{row['case']}: {share}, {rank}", "bold"))
        parts.append(bar_lines(bars, width))
    return stack(parts)


def left_words(elapsed: float, done: int, total: int) -> str:
    """The time left, once one part in three or one step is done."""
    if not done or done >= total:
        return ""
    seconds = elapsed / done * (total - done)
    return f"About {seconds:.0f} s left." if seconds < 90 else f"About {seconds / 60:.0f} min left."
