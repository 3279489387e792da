"""The stand-in grader's answer to `stages`: a kernel with a row for each `tl.load` and `tl.store` of the file.

Words in the file: `# fake: compile_error` compiles nothing, `# fake: stops` ends after its kernels, `# fat` needs more
registers, `# two` launches two kernels, `# long` has 10,000 rows of PTX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

ROWS = {
    "ttir": ("TTIR", "    %{n} = tt.{kind} %p[{n}]", "{kind} of a tensor, masked"),
    "ptx": ("PTX", "    @%p1 {kind}.global.v4.b32 [ %rd{n} + 0 ];", "vector {kind}, 128 bit, predicated"),
    "sass": ("SASS", "    /*00{n}0*/ @P0 {kind}.E.128 [R{n}]", "vector {kind}, 128 bit, predicated"),
    "amdgcn": ("AMDGCN", "    buffer_{kind}_dwordx4 v[{n}:3]", "vector {kind}, 128 bit"),
}


def data(request: dict[str, Any]) -> dict[str, Any]:
    text = Path(request["file"]).read_text()
    if request.get("sass") is not None:
        return {"sass": stage("sass", text)}
    answer = {
        "target": request["target"],
        "num_warps": request.get("num_warps"),
        "sha256": "0" * 64,
        "source": text,
        "case": "n=1024",
        "sizes": request.get("sizes", "timed"),
        "error": None,
    }
    if "# fake: compile_error" in text:
        line = text[: text.index("# fake")].count("\n") + 1
        error = {"status": "compile_error", "message": "NameError('x[i]')", "line": line, "cause": None}
        return {**answer, "error": error, "total": 0, "kernels": []}
    if "# fake: stops" in text:
        line = text[: text.index("# fake")].count("\n") + 1
        answer["error"] = {"status": "runtime_error", "message": "RuntimeError: x[i] is short", "line": line}
    kernels = [kernel(text, number, request) for number in range(2 if "# two" in text else 1)]
    return {**answer, "total": len(kernels), "kernels": kernels}


def kernel(text: str, number: int, request: dict[str, Any]) -> dict[str, Any]:
    amd = request["target"].startswith("gfx")
    warps = request.get("num_warps") or 4
    numbers = {"registers": 40 if "# fat" in text else 26, "spill_bytes": 0, "shared_bytes": 0, "occupancy": 1.0}
    return {
        "name": "add_kernel",
        "signature": "*fp32",
        "constexprs": {"BLOCK": 1024 * (number + 1)},
        "numbers": {**numbers, "num_warps": warps, "num_stages": 3, "instructions": 51},
        "counted_in": "AMDGCN" if amd else "PTX",
        "counts": [["vector load, 128 bit", 4 if "# fat" in text else 2]],
        "note": None,
        "stages": [stage(name, text) for name in (("ttir", "amdgcn") if amd else ("ttir", "ptx"))]
        + ([] if amd else [{"id": "sass", "name": "SASS", "text": None}]),
    }


def stage(name: str, text: str) -> dict[str, Any]:
    title, row, words = ROWS[name]
    rows, lines, marks = ["module {"], [[]], []
    for number, line in enumerate(text.splitlines(), 1):
        kind = "load" if "tl.load" in line else "store" if "tl.store" in line else ""
        if kind:
            marks.append([len(rows), kind, words.format(kind=kind)])
            rows += [row.format(n=number, kind=kind), f"    add %r{number}, %r1"]
            lines += [[number], [number]]
    if "# long" in text and name == "ptx":
        rows += [f"    mov.b32 %r{number}, 0;" for number in range(10_000)]
        lines += [[]] * 10_000
    return {"id": name, "name": title, "text": "\n".join(rows), "lines": lines, "library": {}, "marks": marks}
