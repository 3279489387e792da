"""A process of its own that compiles the kernels of questions for a GPU that need not be there.

    python -m benchmarks.questions.compiled sm_90 NAME…

The calls run on shapes without memory, at full size, and every launch is compiled only: the same specialisations as on
the GPU, so that they are in Triton's cache when they are timed. Writes JSON lines: `compiling` for each question,
and for each variant `compiled` with registers, spills and shared memory, or `failed` with the traceback.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from benchmarks.questions.catalog import QUESTIONS
from benchmarks.questions.question import Call, Place
from benchmarks.questions.timed import emit, line_of, trial
from grader import compiled_kernels, offline
from grader.triton_adapter import Launches, use_stand_in_driver, watch_launches

KEPT = ("kernel", "registers", "spill_bytes", "shared_bytes", "num_warps", "vector_loads", "async_copies",
        "tensor_core_ops", "occupancy")  # fmt: skip


def compile_question(name: str, target: str, launches: Launches, folder: Path) -> None:
    question = QUESTIONS[name]
    emit("compiling", question=name)

    def failed(variant: str | None, why: str, trace: str) -> None:
        emit("failed", question=name, variant=variant, why=f"compiling: {why}", traceback=trace)

    for variant, call in trial(question, Place("meta"), [], failed).items():
        if call.torch:
            continue
        started = time.monotonic()
        try:
            kernels = compile_call(call, target, launches, folder)
        except Exception as error:
            failed(variant, line_of(error), traceback.format_exc())
        else:
            seconds = round(time.monotonic() - started, 2)
            emit("compiled", question=name, variant=variant, kernels=kernels, seconds=seconds)


def compile_call(call: Call, target: str, launches: Launches, folder: Path) -> list[dict[str, Any]]:
    """What the compiler made of each kernel that the call launches. Raises RuntimeError for one that is too large."""
    before = len(launches.grids)
    call.run()
    launched = dict.fromkeys(place for place, _, _ in launches.grids[before:])
    kernels = [launches.kernels[place] for place in launched]
    found = [offline.compile_row(row, folder, target) for row in compiled_kernels.rows(kernels, None)]
    for row in found:
        if why := offline.too_large(target, row["shared_bytes"]):
            raise RuntimeError(why)
    return [{key: row[key] for key in KEPT} for row in found]


def main() -> None:
    target, *names = sys.argv[1:]
    use_stand_in_driver(target)
    launches = watch_launches("compile")
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        for name in names:
            try:
                compile_question(name, target, launches, Path(scratch))
            except Exception as error:
                emit("failed", question=name, variant=None, why=f"compiling: {line_of(error)}",
                     traceback=traceback.format_exc())  # fmt: skip


if __name__ == "__main__":
    main()
