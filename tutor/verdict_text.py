"""A verdict in words, shared by the plain commands and the app. The grader's JSON (schema 1) in, lines out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["plain", "good", "bad", "dim", "head", "code"]

STATUS_WORDS = {
    "passed": "passed",
    "not_started": "not started: the file is still the stub",
    "import_error": "the file cannot be imported",
    "compile_error": "the kernel does not compile",
    "runtime_error": "the call raised an error",
    "out_of_bounds": "out of bounds: the kernel touches memory that is not its own",
    "timeout": "out of time",
    "crashed": "the process crashed",
    "input_mutated": "an input was changed",
    "wrong_shape": "the result has the wrong shape",
    "wrong_dtype": "the result has the wrong dtype",
    "not_written": "part of the result was never written",
    "wrong_answer": "wrong answer",
    "nondeterministic": "not the same result twice",
    "not_triton": "the answer does not come from your kernel",
    "infrastructure_error": "the grader could not do its job",
}
LIMIT_WORDS = {"memory": "memory bandwidth", "compute": "matmul peak"}
NOT_JUDGED = ("skipped", "not_run")
SHOWS_ELEMENT = ("wrong_answer", "not_written", "nondeterministic", "input_mutated")
OUTPUT_LINES = 20
OUTPUTS = (("text", "Your file printed"), ("stdout", "Your file printed"), ("stderr", "Your file wrote to stderr"))


@dataclass(frozen=True)
class Line:
    text: str
    tone: Tone = "plain"


def passed(verdict: Mapping[str, Any]) -> bool:
    return verdict.get("status") == "passed"


def status_words(status: str) -> str:
    return STATUS_WORDS.get(status, status.replace("_", " "))


def case_line(case: Mapping[str, Any]) -> str:
    """One case in one line: a glyph and a word, its name, and what was seen."""
    status = str(case.get("status", ""))
    glyph, word = ("✓", "pass") if status == "passed" else ("–", "skip") if status in NOT_JUDGED else ("✗", "FAIL")
    text = f"{glyph} {word}  {case.get('name', '')}"
    if status == "passed":
        return text
    if status in NOT_JUDGED:
        return f"{text}: {case.get('message') or status_words(status)}"
    return f"{text}: {status_words(status)}"


def verdict_lines(verdict: Mapping[str, Any], *, width: int = 80, source: str | None = None) -> list[Line]:
    """`source` is the graded file's text: with it, the diagnosed line is quoted."""
    return [line for line in _lines(verdict, source) for line in _wrapped(line, width)]


def _lines(verdict: Mapping[str, Any], source: str | None) -> Iterator[Line]:
    good = passed(verdict)
    status = str(verdict.get("status", ""))
    glyph = "✓" if good else "·" if status == "not_started" else "✗"
    title = verdict.get("title") or verdict.get("exercise", "")
    name = verdict.get("exercise", "")
    heading = f"{glyph} {name}: {status_words(status)}"
    yield Line(heading, "good" if good else "dim" if status == "not_started" else "bad")
    device = verdict.get("device") or verdict.get("backend")
    if device:
        yield Line(f"  {title} on {device}" if title != name else f"  on {device}", "dim")
    yield from _cases(verdict)
    yield from _diagnosis(verdict, source)
    yield from _compile(verdict)
    yield from _traffic(verdict)
    yield from _timing(verdict)
    skipped = [str(case["message"]) for case in verdict.get("cases") or () if case.get("message")]
    for note in verdict.get("notes") or ():
        if not any(message in str(note) for message in skipped):  # said beside the case already
            yield Line(f"Note: {note}", "dim")
    yield from _output(verdict)


def _cases(verdict: Mapping[str, Any]) -> Iterator[Line]:
    cases = verdict.get("cases") or []
    if not cases:
        return
    judged = [case for case in cases if case.get("status") not in NOT_JUDGED]
    good = sum(case.get("status") == "passed" for case in judged)
    tail = "".join(
        f", {number} {words}"
        for status, words in (("skipped", "skipped"), ("not_run", "not run"))
        if (number := sum(case.get("status") == status for case in cases))
    )
    yield Line(f"Cases: {good} of {len(judged)} passed{tail}", "head")
    for case in cases:
        state = case.get("status")
        if state != "not_run":
            yield Line(f"  {case_line(case)}", "good" if state == "passed" else "dim" if state == "skipped" else "bad")
    failing = next((case for case in judged if case.get("status") != "passed"), None)
    if failing is None:
        return
    message = str(failing.get("message") or "")
    if message and message not in str((verdict.get("diagnosis") or {}).get("message")):
        for text in message.splitlines():
            yield Line(f"    {text}")
    if failing.get("first_bad_index") is not None and failing.get("status") in SHOWS_ELEMENT:
        yield Line(f"    first wrong element: index {_index(failing['first_bad_index'])}")
    if failing.get("program_id") is not None:
        yield Line(f"    by program {_index(failing['program_id'])}")
    if failing.get("max_error") is not None and failing.get("status") == "wrong_answer":
        allowed = failing.get("tolerance")
        limit = f"; allowed {allowed:.3g}" if isinstance(allowed, (int, float)) else ""
        yield Line(f"    largest error: {_figure(failing['max_error'])}{limit}")


def _diagnosis(verdict: Mapping[str, Any], source: str | None) -> Iterator[Line]:
    diagnosis = verdict.get("diagnosis")
    if not diagnosis:
        return
    cause = str(diagnosis.get("cause") or "").replace("_", " ")
    yield Line(f"Why: {cause}" if cause else "Why", "head")
    if diagnosis.get("message"):
        for text in str(diagnosis["message"]).splitlines():
            yield Line(f"  {text}")
    line = diagnosis.get("line")
    if line:
        text = _quoted(source, line)
        yield Line(f"  line {line}:  {text}" if text else f"  line {line}", "code")
    see = diagnosis.get("see")
    if see:
        yield Line(f"  See {see} (triton-prep show {see}).")


def _compile(verdict: Mapping[str, Any]) -> Iterator[Line]:
    rows = verdict.get("compile") or []
    if not rows:
        return
    target = rows[0].get("target", "")
    yield Line(f"Compiled for {target} (registers a thread, spilled bytes, shared bytes a program)", "head")
    width = max(6, *(len(str(row.get("kernel", ""))) for row in rows))
    names = f"  {'kernel':{width}}  warps  regs  spill  shared  vec  dots  occ"
    yield Line(names, "dim")
    told: set[str] = set()
    for row in rows:
        occupancy = row.get("occupancy")
        share = "–" if occupancy is None else f"{100 * occupancy:.0f}%"
        cells = [
            _cell(row.get(key))
            for key in ("num_warps", "registers", "spill_bytes", "shared_bytes", "vector_loads", "tensor_core_ops")
        ]
        text = f"{cells[0]:>5}  {cells[1]:>4}  {cells[2]:>5}  {cells[3]:>6}  {cells[4]:>3}  {cells[5]:>4}  {share:>4}"
        if f"{row.get('kernel')} {text}" not in told:  # the same kernel is compiled anew for other sizes
            yield Line(f"  {row.get('kernel', ''):{width}}  {text}", "code")
        told.add(f"{row.get('kernel')} {text}")
    if any(row.get("spill_bytes") for row in rows):
        yield Line("  Registers are spilled to memory: use a smaller tile or more warps.")


def _traffic(verdict: Mapping[str, Any]) -> Iterator[Line]:
    traffic = verdict.get("traffic")
    if not traffic:
        return
    yield Line(
        f"Memory traffic: {_bytes(traffic.get('loaded_bytes'))} loaded, {_bytes(traffic.get('stored_bytes'))} stored; "
        f"the task needs {_bytes(traffic.get('minimum_bytes'))}: {_figure(traffic.get('ratio'))} times the least",
        "plain",
    )


def _timing(verdict: Mapping[str, Any]) -> Iterator[Line]:
    timing = verdict.get("timing")
    if not timing:
        noted = any("timing" in str(note) for note in verdict.get("notes") or ())
        if passed(verdict) and not noted:
            why = "no GPU here" if verdict.get("backend") == "interpreter" else "it was not asked for"
            yield Line(f"Not timed: {why}.", "dim")
        return
    rank = {"too_noisy": "too noisy to rank"}.get(str(timing.get("rank")), str(timing.get("rank")))
    yield Line(f"Timing: {_micro(timing.get('median_us'))} (median), {rank}", "head")
    rows = [("eager PyTorch", "eager_us"), ("torch.compile", "compiled_us"), ("reference solution", "solution_us")]
    for name, key in rows:
        other, mine = timing.get(key), timing.get("median_us")
        if other and mine:
            yield Line(f"  {name:18}  {_micro(other):>12}   yours is {other / mine:.2f} times as fast")
    figures = []
    if timing.get("gb_per_s"):
        figures.append(f"{timing['gb_per_s']:.0f} GB/s")
    if timing.get("tflop_per_s"):
        figures.append(f"{timing['tflop_per_s']:.3g} TFLOP/s")
    if timing.get("percent_of_limit") is not None:
        limit = LIMIT_WORDS.get(str(timing.get("limit")), str(timing.get("limit")))
        figures.append(f"{timing['percent_of_limit']:.0f} % of measured {limit}")
    if figures:
        yield Line(f"  {', '.join(figures)}")
    if timing.get("p20_us") and timing.get("p80_us"):
        yield Line(f"  20th to 80th percentile: {_micro(timing['p20_us'])} to {_micro(timing['p80_us'])}", "dim")


def _output(verdict: Mapping[str, Any]) -> Iterator[Line]:
    output = verdict.get("output") or {}
    for key, title in OUTPUTS:
        text = str(output.get(key) or "").rstrip()
        if not text:
            continue
        lines = text.split("\n")
        cut = len(lines) > OUTPUT_LINES or bool(output.get("truncated"))
        yield Line(f"{title}{' (cut)' if cut else ''}:", "head")
        for line in lines[:OUTPUT_LINES]:
            yield Line(f"  {_printable(line[:500])}", "code")


def _wrapped(line: Line, width: int) -> Iterator[Line]:
    if line.tone == "code" or len(line.text) <= width:
        yield line
        return
    indent = line.text[: len(line.text) - len(line.text.lstrip())]
    parts = textwrap.wrap(
        line.text, width, subsequent_indent=indent + "  ", break_long_words=False, break_on_hyphens=False
    )
    for part in parts or [""]:
        yield Line(part, line.tone)


def _quoted(source: str | None, number: int) -> str:
    lines = (source or "").split("\n")
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _printable(text: str) -> str:
    """A learner's print must not move the cursor or clear the screen."""
    return "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in text)


def _index(value: Any) -> str:
    return (
        f"({', '.join(map(str, value))})"
        if isinstance(value, (list, tuple)) and len(value) != 1
        else str(value[0] if isinstance(value, (list, tuple)) else value)
    )


def _cell(value: Any) -> str:
    return "–" if value is None else str(value)


def _figure(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def _bytes(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    for unit in ("B", "kB", "MB"):
        if value < 10000:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def _micro(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.3f} ms"
