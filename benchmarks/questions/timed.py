"""A process of its own that answers questions one after the other; run by `python -m benchmarks.questions`.

Reads one JSON job from stdin: `device` (cuda, or cpu: the interpreter, values only), `names` and `excluded` (question
to variants that ended an earlier process). Writes JSON lines: `ready`, then for each question `trying` for each
variant, `failed` with the traceback where one raises or is wrong, and `answered`. What hangs or breaks the GPU ends
this process only; the last `trying` names it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
import traceback
from typing import Any

import torch
import triton

from benchmarks.questions.catalog import QUESTIONS
from benchmarks.questions.checked import differs
from benchmarks.questions.question import Call, Place, Question, Trial
from grader.ranking import summary


def emit(event: str, **fields: Any) -> None:
    print(json.dumps({"event": event, **fields}), flush=True)


def wait(place: Place) -> None:
    if place.device == "cuda":
        torch.cuda.synchronize()


def trial(question: Question, place: Place, excluded: list[str], failed: Any) -> Trial:
    """The calls of the variants. `failed(variant, why, traceback)` is told of those that cannot be made."""
    torch.manual_seed(0)
    inputs = question.inputs(place)
    calls: Trial = {}
    for variant, setting in question.settings.items():
        if variant in excluded:
            continue
        try:
            calls[variant] = question.make(place, inputs, **setting)
        except Exception as error:
            failed(variant, line_of(error), traceback.format_exc())
    return calls


def line_of(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:200] if text else ''}"


class Answering:
    """One question at one place."""

    def __init__(self, question: Question, place: Place) -> None:
        self.question, self.place = question, place
        self.peaks: dict[str, int] = {}  # bytes that a variant allocates while it runs

    def failed(self, variant: str | None, why: str, trace: str = "") -> None:
        emit("failed", question=self.question.name, variant=variant, why=why, traceback=trace)

    def answer(self, excluded: list[str]) -> None:
        emit("trying", question=self.question.name, variant=None)
        started = time.monotonic()
        calls = trial(self.question, self.place, excluded, self.failed)
        sound = {name: call for name, call in calls.items() if self.sound(name, call)}
        emit("trying", question=self.question.name, variant=None)
        rows: dict[str, dict[str, Any]] = {name: self.row(name, call) for name, call in sound.items()}
        if self.place.device == "cuda" and sound:
            from benchmarks.questions import clocks

            rows |= {n: {"clock": "says", "says": call.run()} for n, call in sound.items() if call.clock == "says"}
            timed = {name: call for name, call in sound.items() if call.clock != "says"}

            def untimed(name: str, error: Exception) -> None:
                self.failed(name, line_of(error), "".join(traceback.format_exception(error)))
                rows.pop(name)

            for name, values in clocks.samples(timed, untimed).items():
                spread = zip(("median_us", "p20_us", "p80_us"), summary(values), strict=True)
                rows[name] |= dict(spread, rounds=len(values))
        emit("answered", question=self.question.name, rows=rows, seconds=round(time.monotonic() - started, 2))

    def row(self, name: str, call: Call) -> dict[str, Any]:
        found: dict[str, Any] = {"clock": call.clock, "bytes": call.bytes, "flops": call.flops}
        return found | ({"peak_bytes": self.peaks[name]} if name in self.peaks else {})

    def sound(self, name: str, call: Call) -> bool:
        """Whether the call runs and is right. Says why not. Ends the process where the device is broken."""
        if call.clock in ("process", "says"):
            return True  # there is no output to compare
        emit("trying", question=self.question.name, variant=name)
        try:
            if self.place.device == "cuda":
                call.run()  # libraries choose their kernels, and their workspaces, on the first call
                wait(self.place)
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
            got = call.run()
            wait(self.place)
            if self.place.device == "cuda":
                self.peaks[name] = torch.cuda.max_memory_allocated() - before
            got = call.seen(got) if call.seen else got
            wrong, trace = differs(got, call.want(), call.tolerance), ""
        except Exception as error:
            wrong, trace = line_of(error), traceback.format_exc()
        if wrong is None:
            return True
        self.failed(name, wrong, trace)
        wait(self.place)  # raises again after a fault: nothing that runs in this process would be right any more
        return False


def main() -> None:
    job = json.loads(sys.stdin.readline())
    if job["device"] == "cuda" and not torch.cuda.is_available():
        sys.exit(3)
    if job["device"] == "cpu":
        from grader.triton_adapter import mend_index

        assert os.environ.get("TRITON_INTERPRET") == "1"
        mend_index()
        place, title = Place("cpu", programs=4), "dry run on the CPU"
    else:
        properties = torch.cuda.get_device_properties(0)
        place, title = Place("cuda", properties.multi_processor_count), torch.cuda.get_device_name()
    versions = {"torch": torch.__version__, "triton": triton.__version__, "python": sys.version.split()[0]}
    emit("ready", device=title, versions=versions)
    if job["names"] and place.device == "cuda":
        from grader import timing

        emit("copied", gb_per_s=timing.copy_bandwidth())
    for name in job["names"]:
        answering = Answering(QUESTIONS[name], place)
        try:
            answering.answer(job["excluded"].get(name, []))
        except Exception as error:
            answering.failed(None, line_of(error), traceback.format_exc())
            wait(place)
        gc.collect()
        if place.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
