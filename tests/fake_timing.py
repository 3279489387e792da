"""The stand-in grader's answers about time. Words in the graded file: `# takes: 1.2` multiplies every time of its own,
`# slow` never ends a sweep, `# no estimate` gives a reason instead. FAKE_GRADER_BACKEND=cuda makes it measure."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZES = ("n=1000", "n=1000000", "n=[big]")
VERSIONS = {"torch": "2.13.0", "triton": "3.7.1", "python": "3.11.0"}


def measured(case: str, number: int, factor: float) -> dict[str, Any]:
    median = 100.0 * (number + 1) * factor
    return {
        "case": case, "median_us": median, "p20_us": median * 0.99, "p80_us": median * 1.01, "eager_us": 200.0 * (number + 1),
        "compiled_us": None, "solution_us": 100.0 * (number + 1), "gb_per_s": 3600.0 / factor, "tflop_per_s": 0.6 / factor,
        "percent_of_limit": 90.0 / factor, "limit": "memory", "limit_measured": {"copy_gb_per_s": 4000.0}, "rank": "fast",
        "in_l2": number == 0, "spreads": {"eager_us": [199.0, 201.0]}, "like": ["solution_us"] if factor == 1 else [],
        "limit_kind": "memory", "model": False, "notes": [],
    }  # fmt: skip


def modelled(case: str, number: int, factor: float) -> dict[str, Any]:
    us = 150.0 * (number + 1) * factor
    return {
        "case": case, "device": "Some GPU", "time_us": us, "limit": "memory", "memory_us": us - 2.5, "compute_us": 1.0,
        "issue_us": 10.0, "l2_us": 0.0, "starts_us": 2.0, "launch_us": 2.5, "limit_us": us / factor,
        "roof_gb_per_s": 4224.0, "roof_tflop_per_s": 33.5,
        "moved_bytes": 6e8, "least_bytes": 6e8, "flops": 1e8, "occupancy": 1.0, "model": True,
        "percent_of_limit": 100 / factor, "counted": "n=1500", "limit_kind": "memory",
    }  # fmt: skip


def answer(request: dict[str, Any], say: Callable[..., None], cancelled: set[str]) -> None:
    name, text = request["id"], Path(request["file"]).read_text()
    on_gpu = os.environ.get("FAKE_GRADER_BACKEND") == "cuda"
    wanted = request.get("model")
    if wanted is False and not on_gpu:
        say(
            event="failed", id=name, kind="infrastructure", message="timing needs a GPU: --model gives a modelled table"
        )
        return
    found = re.search(r"# takes: ([\d.]+)", text)
    factor = float(found[1]) if found else 1.0
    model = request["op"] == "estimate" or bool(wanted) or not on_gpu
    sizes = SIZES[1:2] if request["op"] == "estimate" else SIZES
    rows = []
    for number, case in enumerate(sizes):
        say(event="progress", id=name, done=number, total=len(sizes), words=case)
        while "# slow" in text and number == 1 and name not in cancelled:
            time.sleep(0.01)
        if name in cancelled:
            say(event="failed", id=name, kind="cancelled", message="cancelled")
            return
        row = (modelled if model else measured)(case, number, factor)
        rows.append({"case": case, "reason": "it reads [its] values"} if "# no estimate" in text else row)
    data = {"exercise": request["exercise"], "versions": VERSIONS, "model": model}
    say(event="answer", id=name, data=data | {"device": "Some GPU", "rows": rows})
