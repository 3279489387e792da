"""Autotuned kernels: each configuration by itself, the first call, and what keys and constexprs cost."""

from __future__ import annotations

import pytest

from grader.catalog import find


def advice(verdict) -> list[str]:
    return [note for note in verdict["notes"] if "GPU" not in note]


def test_the_solutions_pass_and_need_no_advice(submit):
    for exercise in ("autotuned_add", "accumulate_rows"):
        verdict = submit(exercise)
        assert verdict["status"] == "passed", verdict["diagnosis"]
        assert not [note for note in advice(verdict) if "rounding" not in note]


def test_a_configuration_that_the_tuner_never_picks_is_checked_as_well(submit):
    load = "    x = tl.load(x_ptr + offs, mask=mask)\n"
    verdict = submit("autotuned_add", (load, f"{load}    if BLOCK == 4096:\n        x = x * 2\n"))
    diagnosis = verdict["diagnosis"]
    assert (verdict["status"], diagnosis["cause"]) == ("wrong_answer", "wrong_configuration")
    assert "BLOCK=4096, num_warps=8" in diagnosis["message"]


def test_a_configuration_that_leaves_out_a_part_is_named(submit):
    """Half of the tile: right where n is below, so that the smallest case says nothing."""
    mask = "    mask = offs < n\n"
    half = f"{mask}    if BLOCK == 4096:\n        mask = mask & (tl.arange(0, BLOCK) < 2048)\n"
    verdict = submit("autotuned_add", (mask, half))
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("not_written", "wrong_configuration")
    assert "BLOCK=4096, num_warps=8" in verdict["diagnosis"]["message"]


def test_a_configuration_pruned_for_a_size_is_not_tried_there(submit):
    """A configuration may be wrong where the learner's own pruning leaves it out."""
    prune = """    prune_configs_by={
        "early_config_prune": lambda configs, named, **kwargs: [c for c in configs if c.kwargs["BLOCK"] < 4096]
    },
"""
    key = '    key=["n"],  # the dtypes of x, y and out join the key by themselves\n'
    load = "    x = tl.load(x_ptr + offs, mask=mask)\n"
    verdict = submit("autotuned_add", (key, key + prune), (load, f"{load}    if BLOCK == 4096:\n        x = x * 2\n"))
    assert verdict["status"] == "passed", verdict["diagnosis"]


def test_a_configuration_that_does_not_compile_is_named(submit):
    load = "    x = tl.load(x_ptr + offs, mask=mask)\n"
    wrong = f"{load}    if BLOCK == 4096:\n        x += tl.arange(0, 1000)\n"
    verdict = submit("autotuned_add", (load, wrong))
    assert verdict["status"] == "compile_error"
    assert "BLOCK=4096, num_warps=8" in verdict["diagnosis"]["message"]


def test_the_first_call_counts_although_the_tuner_ran_the_kernel_before(submit):
    verdict = submit("accumulate_rows", ('    reset_to_zero=["out_ptr"],\n', ""))
    assert verdict["status"] == "wrong_answer"
    assert verdict["diagnosis"]["cause"] == "missing_reset_to_zero"


def test_a_right_kernel_without_autotuning_misses_the_task(submit):
    stub = find("autotuned_add").stub.read_text()
    launch = "    grid = (triton.cdiv(n, 1024),)\n    add_kernel[grid](x, y, out, n, BLOCK=1024)\n"
    verdict = submit("autotuned_add", ("    # launch add_kernel here\n", launch), source=stub)
    assert (verdict["status"], verdict["diagnosis"]["cause"]) == ("not_triton", "not_autotuned")
    assert "@triton.autotune" in verdict["diagnosis"]["message"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("[]", "the sizes change between calls (n) and none of them is in the key"),
        ('["n", "x_ptr"]', "the key names x_ptr, a tensor"),
    ],
)
def test_a_key_that_tunes_too_seldom_or_too_often_is_noted(submit, key, said):
    verdict = submit("autotuned_add", ('key=["n"]', f"key={key}"))
    assert verdict["status"] == "passed", verdict["diagnosis"]
    assert any(said in note for note in advice(verdict))


def test_a_size_that_is_a_constexpr_is_noted(submit):
    verdict = submit("vector_add", ("n, BLOCK: tl.constexpr", "n: tl.constexpr, BLOCK: tl.constexpr"))
    assert verdict["status"] == "passed", verdict["diagnosis"]
    assert any(note.startswith("recompiles_for_every_size: n of add_kernel") for note in advice(verdict))


def test_a_power_of_two_that_follows_the_size_is_not_noted(submit):
    assert not [note for note in advice(submit("softmax")) if note.startswith("recompiles")]
