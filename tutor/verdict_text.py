"""A verdict in words, shared by the plain commands and the app. The grader's JSON (schema 1) in, lines out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["plain", "good", "bad", "dim", "head", "code"]
TitleOf = Callable[[str], str]  # of an item by its id; empty where the course has none

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
RANK_WORDS = {"too_noisy": "too noisy to rank", "not_believed": "faster than the hardware, so not believed"}
LIMIT_WORDS = {"memory": "memory bandwidth", "compute": "matmul peak"}
NOT_JUDGED = ("skipped", "not_run")
CASE_SIGNS = {"passed": ("✓", "pass"), "skipped": ("–", "skip"), "not_run": ("–", "not run")}
GPU_NAMES = {"sm_80": "A100", "sm_89": "L4, RTX 40", "sm_90": "H100, H200", "sm_100": "B200", "gfx942": "MI300X"}
LEAST_SLACK = 1.02  # a ratio that rounds to "as little as the task needs"
SHOWS_ELEMENT = ("wrong_answer", "not_written", "nondeterministic", "input_mutated")
OUTPUT_LINES = 20
OUTPUTS = (("text", "Your file printed"), ("stdout", "Your file printed"), ("stderr", "Your file wrote to stderr"))


def untitled(item_id: str) -> str:
    """A TitleOf, where no course is at hand."""
    return ""


@dataclass(frozen=True)
class Line:
    text: str
    tone: Tone = "plain"


def passed(verdict: Mapping[str, Any]) -> bool:
    return verdict.get("status") == "passed"


def status_words(status: str) -> str:
    return STATUS_WORDS.get(status, status.replace("_", " "))


def case_words(status: str) -> tuple[str, str]:
    """A glyph and a word."""
    return CASE_SIGNS.get(status, ("✗", "FAIL"))


def case_line(case: Mapping[str, Any]) -> str:
    """One case in one line: a glyph and a word, its name, and what was seen."""
    status = str(case.get("status", ""))
    glyph, word = case_words(status)
    text = f"{glyph} {word}  {case.get('name', '')}"
    if status in ("passed", "not_run"):
        return text
    if status == "skipped":
        return f"{text}: {case.get('message') or 'skipped'}"
    return f"{text}: {status.replace('_', ' ')}"


def verdict_lines(
    verdict: Mapping[str, Any],
    *,
    width: int = 80,
    source: str | None = None,
    look_up: str = "triton-prep show {}",
    onward: str = "",
    title_of: TitleOf = untitled,
) -> list[Line]:
    """`source` is the graded file's text: with it, the diagnosed line is quoted. `look_up` says how to open the item
    that the diagnosis names, `title_of` what it is called, `onward` what may come after a pass."""
    lines = _lines(verdict, source, look_up, onward, title_of)
    return [part for line in lines for part in _wrapped(line, width)]


def remark_lines(verdict: Mapping[str, Any], source: str | None = None) -> list[Line]:
    """What a pass does not cover, for a small place; empty where there is nothing, or no pass. Not wrapped."""
    return list(_diagnosis(verdict, source)) if passed(verdict) else []


def shortfall_lines(verdict: Mapping[str, Any], source: str | None = None) -> list[Line]:
    """Why it is not passed, without the rest: for a small place. Not wrapped."""
    return [
        Line(status_words(str(verdict.get("status", ""))), "bad"),
        *_diagnosis(verdict, source),
        *_failing(verdict),
    ]


def _lines(
    verdict: Mapping[str, Any], source: str | None, look_up: str, onward: str, title_of: TitleOf
) -> Iterator[Line]:
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
    if good and onward:
        yield from map(Line, onward.split("\n"))
    yield from _diagnosis(verdict, source, look_up, title_of)
    yield from _cases(verdict)
    yield from _failing(verdict)
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


def _failing(verdict: Mapping[str, Any]) -> Iterator[Line]:
    """What was seen in the first case that fell short, as far as the diagnosis does not say it."""
    judged = [case for case in verdict.get("cases") or () if case.get("status") not in NOT_JUDGED]
    failing = next((case for case in judged if case.get("status") != "passed"), None)
    if failing is None:
        return
    found = case_facts(failing, str((verdict.get("diagnosis") or {}).get("message") or ""))
    if found:
        yield Line(f"In case {failing.get('name', '')}", "head")
    for text in found:
        yield Line(f"  {text}")


def case_facts(case: Mapping[str, Any], explained: str = "") -> list[str]:
    """What was seen in a case that fell short, without what `explained` says already."""
    message = str(case.get("message") or "")
    found: list[str] = []
    if message and message not in explained:
        found += message.splitlines()
    if case.get("first_bad_index") is not None and case.get("status") in SHOWS_ELEMENT:
        found.append(f"first wrong element: index {_index(case['first_bad_index'])}")
    if case.get("program_id") is not None and "program" not in explained + message:
        found.append(f"by program {_index(case['program_id'])}")
    if case.get("max_error") is not None and case.get("status") == "wrong_answer":
        allowed = case.get("tolerance")
        limit = f"; allowed {allowed:.3g}" if isinstance(allowed, (int, float)) else ""
        found.append(f"largest error: {_figure(case['max_error'])}{limit}")
    return found


def _diagnosis(
    verdict: Mapping[str, Any], source: str | None, look_up: str = "", title_of: TitleOf = untitled
) -> Iterator[Line]:
    diagnosis = verdict.get("diagnosis")
    if not diagnosis:
        return
    cause = str(diagnosis.get("cause") or "unknown").replace("_", " ")
    named, unnamed = ("A remark beside the pass",) * 2 if passed(verdict) else ("Why", "What was seen")
    yield Line(unnamed if cause == "unknown" else f"{named}: {cause}", "head")
    if diagnosis.get("message"):
        for text in str(diagnosis["message"]).splitlines():
            yield Line(f"  {text}")
    line = diagnosis.get("line")
    if line:
        text = _quoted(source, line)
        yield Line(f"  line {line}:  {text}" if text else f"  line {line}", "code")
    see = diagnosis.get("see")
    if see and look_up:
        title = title_of(str(see))
        yield Line(f"  More in {see}{f' ({title})' if title else ''}: {look_up.format(see)}")


def _compile(verdict: Mapping[str, Any]) -> Iterator[Line]:
    """One line a kernel in words; a kernel compiled anew for other arguments says only what differs."""
    rows = verdict.get("compile") or []
    if not rows:
        return
    target = str(rows[0].get("target", ""))
    offline = ", without such a GPU" if verdict.get("backend") == "interpreter" else ""
    gpu = f" ({GPU_NAMES[target]})" if target in GPU_NAMES else ""
    yield Line(f"Compiled for {target}{gpu}{offline}", "head")
    known: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        kernel, words = str(row.get("kernel", "")), _resources(row)
        before = known.setdefault(kernel, [])
        if not before:
            yield Line(f"  {kernel}: {', '.join(words.values())}")
        elif words not in before:
            other = ", ".join(text for key, text in words.items() if text != before[0].get(key))
            yield Line(f"  {kernel} for other arguments: {other}")
        before.append(words)
    if any(row.get("spill_bytes") for row in rows):
        yield Line("  Registers are spilled to memory: use a smaller tile or more warps.")


def _resources(row: Mapping[str, Any]) -> dict[str, str]:
    """What a compiled kernel uses, in words; what the compiler did not report is left out."""
    words: dict[str, str] = {}
    if (warps := row.get("num_warps")) is not None:
        words["warps"] = _count(warps, "warp")
    if (registers := row.get("registers")) is not None:
        words["registers"] = f"{registers} registers a thread"
    if (spilled := row.get("spill_bytes")) is not None:
        words["spill"] = f"{spilled} bytes spilled" if spilled else "nothing spilled"
    if (shared := row.get("shared_bytes")) is not None:
        words["shared"] = f"{_bytes(shared)} of shared memory" if shared else "no shared memory"
    if (vectors := row.get("vector_loads")) is not None:
        words["vectors"] = _count(vectors, "vector load")
    if dots := row.get("tensor_core_ops"):
        words["dots"] = _count(dots, "tensor-core instruction")
    if (occupancy := row.get("occupancy")) is not None:
        words["occupancy"] = f"occupancy {100 * occupancy:.0f} %"
    return words


def _traffic(verdict: Mapping[str, Any]) -> Iterator[Line]:
    traffic = verdict.get("traffic")
    if not traffic:
        return
    loaded, stored, least = (traffic.get(key) for key in ("loaded_bytes", "stored_bytes", "minimum_bytes"))
    ratio = traffic.get("ratio")
    moved = f"Memory: it read {_bytes(loaded)} and wrote {_bytes(stored)}"
    if ratio is None or not least:
        yield Line(f"{moved}.")
    elif ratio <= LEAST_SLACK:
        yield Line(f"{moved}, as little as the task needs.")
    else:
        yield Line(f"{moved}: {_figure(ratio)} times the least that the task needs ({_bytes(least)}).")


def _timing(verdict: Mapping[str, Any]) -> Iterator[Line]:
    timing = verdict.get("timing")
    if not timing:
        yield from _estimate(verdict)
        noted = any("timing" in str(note) for note in verdict.get("notes") or ())
        if passed(verdict) and not noted:
            why = "no GPU here" if verdict.get("backend") == "interpreter" else "it was not asked for"
            yield Line(f"Not timed: {why}.", "dim")
        return
    rank = RANK_WORDS.get(str(timing.get("rank")), str(timing.get("rank")))
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
    for line in condition_lines(timing):
        yield Line(f"  {line}")
    if timing.get("p20_us") and timing.get("p80_us"):
        yield Line(f"  20th to 80th percentile: {_micro(timing['p20_us'])} to {_micro(timing['p80_us'])}", "dim")


def condition_lines(timing: Mapping[str, Any]) -> list[str]:
    """What must be known to read the times, and what would improve them."""
    lines = []
    if timing.get("like"):
        names = {"eager_us": "eager PyTorch", "compiled_us": "torch.compile", "solution_us": "the reference solution"}
        lines.append(f"No different, within the spread: {', '.join(names.get(n, n) for n in timing['like'])}.")
    if timing.get("in_l2"):
        lines.append("The data fits in the L2 cache: this is not a figure of memory.")
    if timing.get("launch_bound"):
        lines.append(f"Python takes {_micro(timing['host_us'])} to launch it: alone, the launch would be waited for.")
    if timing.get("float32_matmul"):
        lines.append(f"PyTorch's float32 matmul precision: {timing['float32_matmul']}; tl.dot may use TF32.")
    if timing.get("sm_mhz"):
        low, high = timing["sm_mhz"]
        lines.append(f"Clock while timing: {low} to {high} MHz.")
    if timing.get("advice"):
        lines.append(str(timing["advice"]))
    return lines


def _estimate(verdict: Mapping[str, Any]) -> Iterator[Line]:
    """The model's time, where nothing was measured."""
    found = verdict.get("estimate")
    if found:
        limit = f"{found['percent_of_limit']:.0f} % of what the same model allows this task"
        yield Line(f"Estimate, a model, not measured: {_micro(found['time_us'])} on {found['device']}", "head")
        part = "the issue of instructions" if found["limit"] == "issue" else found["limit"]
        yield Line(f"  {found['case']}: {limit}; the largest part is {part}")


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


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"


def _figure(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def _bytes(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    if value < 1000:
        return f"{value:.0f} B"
    for unit in ("kB", "MB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"
    return f"{value / 1000:.1f} GB"


def _micro(value: Any) -> str:
    if not isinstance(value, (int, float)):
        return "–"
    return f"{value:.1f} µs" if value < 1000 else f"{value / 1000:.3f} ms"
