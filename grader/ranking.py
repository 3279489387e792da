"""From the samples of one timing run to the verdict's `timing` section: figures, and what may be said of them.

Pure: lists of microseconds in, JSON out.
"""

from __future__ import annotations

from statistics import median as median_of
from typing import Any

NOISY = 0.15  # spread (p80 - p20) over the median from which no rank is given
# A copy reaches 0.88 of the data sheet's bandwidth on an H200, a large matmul 0.75 of its peak. What is faster than the
# data sheet was not done, or not in memory.
MOST = {"memory": 1 / 0.88, "compute": 1 / 0.75}
LAUNCH_BOUND = 0.8  # host time over device time from which preparing the launch may be what is waited for


def summary(values: list[float]) -> list[float]:
    """Median, 20th and 80th percentile."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return [median_of(ordered), ordered[round(0.2 * last)], ordered[round(0.8 * last)]]


def wide(spread: list[float]) -> bool:
    """Whether a spread (median, p20, p80) is too wide to say anything of the time."""
    median, p20, p80 = spread
    return (p80 - p20) / median > NOISY


def apart(one: list[float], other: list[float]) -> bool:
    """Whether two results differ by more than the noise: their spreads (p20 to p80) do not overlap."""
    return one[2] < other[1] or other[2] < one[1]


def rank_of(share_of: Any, spread: list[float], fair: float, fast: float, most: float) -> str:
    """fast, fair or slow; too_noisy where the spread allows two of them; not_believed above `most`.

    `share_of` turns microseconds into the share of the limit, `spread` is median, p20 and p80.
    """
    median, p20, p80 = spread

    def mark(us: float) -> str:
        share = share_of(us)
        return "fast" if share >= fast else "fair" if share >= fair else "slow"

    if share_of(median) > most:
        return "not_believed"
    if wide(spread) or mark(p20) != mark(p80):
        return "too_noisy"
    return mark(median)


def ranked(reply: dict[str, Any]) -> dict[str, Any]:
    """The verdict's timing section, from what a timing run answers."""
    samples: dict[str, list[float]] = reply["samples"]
    spread = [float(v) for v in samples["median_us"]]
    median = spread[0]
    nbytes, flops = reply["work"]
    kind, limits = reply["kind"], reply["limits"]
    peak = limits.get("matmul_tflop_per_s")

    def share_of(us: float) -> float:
        by_compute = kind == "compute" and peak
        return flops / us / 1e6 / float(peak) if by_compute else nbytes / us / 1000 / float(limits["copy_gb_per_s"])

    fair, fast = reply["thresholds"]
    in_l2 = max(reply["working_set"], nbytes) < reply["l2_bytes"]
    most = float("inf") if in_l2 else MOST[kind if peak else "memory"]
    others = {name: [round(float(v), 3) for v in values] for name, values in samples.items() if name != "median_us"}
    return {
        "case": reply["case"],
        "median_us": round(median, 3),
        "p20_us": round(spread[1], 3),
        "p80_us": round(spread[2], 3),
        **{name: others[name][0] if name in others else None for name in ("eager_us", "compiled_us", "solution_us")},
        "gb_per_s": round(nbytes / median / 1000, 1),
        "tflop_per_s": round(flops / median / 1e6, 3),
        "percent_of_limit": round(100 * share_of(median), 1),
        "limit": kind,
        "limit_measured": {name: round(float(v), 1) for name, v in limits.items()},
        "rank": rank_of(share_of, spread, fair, fast, most),
        "in_l2": in_l2,
        "bytes": int(nbytes),
        "flops": int(flops),
        "spreads": {name: values[1:] for name, values in others.items()},
        "like": sorted(name for name, values in others.items() if not apart(spread, values)),
        **_conditions(reply, median),
    }


def _conditions(reply: dict[str, Any], median: float) -> dict[str, Any]:
    """What else was so while it was timed; left out where the run does not say."""
    found: dict[str, Any] = {}
    if reply.get("host_us") is not None:
        host = float(reply["host_us"])
        found["host_us"] = round(host, 3)  # Python's, until the call returns; hidden while the device has work
        found["launch_bound"] = host > LAUNCH_BOUND * median
    if reply.get("float32_matmul"):
        found["float32_matmul"] = str(reply["float32_matmul"])
    if reply.get("sm_mhz"):
        found["sm_mhz"] = [int(v) for v in reply["sm_mhz"]]
    return found
