"""Occupancy by hand, and what is read from a compile."""

from __future__ import annotations

import pytest

from grader.measure import ranked
from grader.offline import occupancy, too_large
from grader.sanitize import translated
from grader.source import line_of_pattern, unmasked_access


@pytest.mark.parametrize(
    ("registers", "shared", "warps", "share"),
    [
        (32, 0, 4, 1.0),  # 16 blocks of 128 threads: 2048 of 2048
        (64, 0, 4, 0.5),  # 65536 / (64 * 128) = 8 blocks
        (255, 0, 8, 0.125),  # 65536 / (256 * 256) = 1 block of 256 threads
        (32, 100 * 1024, 4, 0.125),  # two blocks by shared memory
        (32, 0, 1, 0.5),  # 32 blocks of one warp: block slots bind
    ],
)
def test_occupancy_on_sm_90(registers, shared, warps, share):
    assert occupancy("sm_90", registers, shared, warps) == share


def test_occupancy_of_an_unknown_chip_is_not_invented():
    assert occupancy("gfx942", 32, 0, 4) is None


def test_too_much_shared_memory_is_named_with_the_limit():
    assert "OutOfResources" in (too_large("sm_90", 294_912) or "")
    assert too_large("sm_90", 200_000) is None


def reply(median: float, spread: float = 0.01, **more):
    return {
        "case": "n", "samples": {"median_us": [median, median * (1 - spread), median * (1 + spread)], "eager_us": [2.0, 2.0, 2.0]},
        "work": [4_000_000, 1000], "kind": "memory", "limits": {"copy_gb_per_s": 4000.0}, "thresholds": [0.6, 0.85],
        "working_set": 10, "l2_bytes": 5, "notes": [], **more,
    }  # fmt: skip


@pytest.mark.parametrize(("median", "rank"), [(1.1, "fast"), (1.5, "fair"), (2.0, "slow")])
def test_rank_is_the_share_of_the_measured_limit(median, rank):
    timing = ranked(reply(median))
    assert timing["rank"] == rank
    assert timing["percent_of_limit"] == pytest.approx(100 / median, abs=0.1)


def test_a_wide_spread_gives_no_rank():
    assert ranked(reply(1.1, spread=0.2))["rank"] == "too_noisy"


def test_a_baseline_that_was_not_measured_is_null():
    assert ranked(reply(1.0))["compiled_us"] is None


def test_a_sanitizer_report_becomes_line_and_program():
    report = """========= Invalid __global__ write of size 4 bytes
=========     at add_kernel+0x150 in vector_add.py:14
=========     by thread (96,0,0) in block (3,0,0)
=========     Address 0x7f0 is out of bounds
"""
    outcome = translated(report)
    assert outcome is not None
    assert (outcome.status, outcome.cause, outcome.line, outcome.program_id) == (
        "out_of_bounds",
        "out_of_range_store",
        14,
        (3, 0, 0),
    )
    assert translated("========= ERROR SUMMARY: 0 errors") is None


SOURCE = """import triton.language as tl
def kernel(x_ptr, n):
    offs = tl.arange(0, 8)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, x)
"""


def test_the_unmasked_access_is_found_in_the_source():
    assert unmasked_access(SOURCE) == ("store", 5)
    assert unmasked_access(SOURCE.replace("offs, x)", "offs, x, mask=offs < n)")) is None


def test_a_pattern_does_not_match_comments_and_docstrings():
    source = '"""tl.store"""\n# tl.store(\nx = 1  # tl.store\ntl.store(p, "tl.load")\n'
    assert line_of_pattern(source, r"tl\.store") == 4


def test_a_pattern_points_at_its_line():
    assert line_of_pattern(SOURCE, r"tl\.load") == 4
    assert line_of_pattern(SOURCE, r"tl\.dot") is None
