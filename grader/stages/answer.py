"""The operation `stages`: what the compiler makes of a submission, stage by stage, with lines, marks and numbers.

Request: exercise, file, `target`, optionally `num_warps` (in place of what the launches say) and `sizes`: "timed" for
those that are timed on a GPU, where there are any, else "case" for the case that the verdict's compile is of. `sass`
with a kernel's number asks for its machine code instead, which takes a disassembler 0.3 s more.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader import offline
from grader.grade import Submission
from grader.judge import Judge
from grader.stages.compile import Compiled, Compiles, Kernel, Wanted
from grader.stages.locations import Line, library_callers, read
from grader.stages.marks import mark

NAMES = {"ttir": "TTIR", "ttgir": "TTGIR", "llir": "LLIR", "ptx": "PTX", "sass": "SASS", "amdgcn": "AMDGCN"}
MOST_WARPS = 32
_COMPILES = Compiles()


def answer(
    judge: Judge,
    submission: Submission,
    request: dict[str, Any],
    emit: Callable[[dict[str, Any]], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    """Raises Unavailable, BadRequest and Cancelled. What does not compile is an answer, with `error`."""
    from grader.server import options_of

    options = options_of(request)
    wanted = Wanted(options, request.get("sizes", "timed") == "timed", _warps(request.get("num_warps")))
    emit({"event": "stage", "name": "compile", "state": "started"})
    compiled = _COMPILES.find(judge, submission, wanted, cancelled)
    emit({"event": "stage", "name": "compile", "state": "done"})
    if request.get("sass") is not None:
        return {"sass": _machine_code(compiled, int(request["sass"]))}
    return {
        "target": options.target,
        "num_warps": wanted.num_warps,
        "sha256": hashlib.sha256(submission.source).hexdigest(),
        "source": submission.source.decode("utf-8", "replace"),
        "case": compiled.case,
        "sizes": "timed" if compiled.timed else "case",
        "error": _error(compiled),
        "total": compiled.total,
        "kernels": [_told(kernel, compiled.file, options.target) for kernel in compiled.kernels],
    }


def _warps(num_warps: Any) -> int | None:
    from grader.server import BadRequest

    if num_warps is None:
        return None
    if num_warps not in [1 << n for n in range(MOST_WARPS.bit_length())]:
        raise BadRequest(f"num_warps {num_warps!r}: a power of two from 1 to {MOST_WARPS}")
    return int(num_warps)


def _error(compiled: Compiled) -> dict[str, Any] | None:
    outcome = compiled.error
    if outcome is None:
        return None
    folder = f"{Path(compiled.file).parent}/"
    message = (outcome.message or outcome.status.replace("_", " ")).replace(folder, "")
    return {"status": outcome.status, "message": message, "line": outcome.line, "cause": outcome.cause}


def _told(kernel: Kernel, file: str, target: str) -> dict[str, Any]:
    read_stages = {stage: read(stage, text, file) for stage, text in kernel.texts.items()}
    told = [stage_data(stage, lines) for stage, lines in read_stages.items()]
    if kernel.binary:
        told.append({"id": "sass", "name": NAMES["sass"], "text": None})
    final = next((read_stages[stage] for stage in ("ptx", "amdgcn") if stage in read_stages), [])
    final_stage = "ptx" if "ptx" in read_stages else "amdgcn"
    row = kernel.row
    numbers = {
        name: row.get(name)
        for name in ("registers", "spill_bytes", "shared_bytes", "occupancy", "num_warps", "num_stages")
    }
    numbers["instructions"] = sum(_is_instruction(line) for line in final)
    return {
        "name": row["kernel"],
        "signature": row["signature"],
        "constexprs": row["constexprs"],
        "numbers": numbers,
        "counted_in": NAMES[final_stage],
        "counts": counts(final_stage, final),
        "note": offline.too_large(target, row["shared_bytes"]),
        "stages": told,
    }


def stage_data(stage: str, lines: list[Line]) -> dict[str, Any]:
    """A stage as JSON: its text, and for each of its lines those of the learner's file, innermost call first."""
    marks = [(number, found) for number, line in enumerate(lines) if (found := mark(stage, line.text))]
    return {
        "id": stage,
        "name": NAMES[stage],
        "text": "\n".join(line.text for line in lines),
        "lines": [list(line.lines) for line in lines],
        "library": {str(number): line.library for number, line in enumerate(lines) if line.library},
        "marks": [[number, found.kind, found.told] for number, found in marks],
    }


def counts(stage: str, lines: list[Line]) -> list[list[Any]]:
    """How many marked lines there are of each sort, the most frequent first: words, number."""
    found = Counter(made.words for line in lines if (made := mark(stage, line.text)))
    return [[words, number] for words, number in found.most_common()]


def _is_instruction(line: Line) -> bool:
    text = line.text.strip()
    return bool(text) and line.text[:1].isspace() and text[0] not in ".;/{})$" and not text.endswith(":")


def _machine_code(compiled: Compiled, number: int) -> dict[str, Any] | None:
    """The disassembly of one kernel; None where there is none, or no disassembler."""
    if not 0 <= number < len(compiled.kernels) or not compiled.kernels[number].binary:
        return None
    kernel = compiled.kernels[number]
    with tempfile.NamedTemporaryFile(suffix=".cubin", prefix="triton-prep-") as file:
        file.write(kernel.binary)
        file.flush()
        text = offline.sass_with_lines(Path(file.name))
    if not text:
        return None
    callers = library_callers(read("ptx", kernel.texts.get("ptx", ""), compiled.file))
    return stage_data("sass", read("sass", text, compiled.file, callers))
