"""A verdict in words: nothing blamed that was not run, figures in sentences, lines that fit."""

from __future__ import annotations

from typing import Any

from tutor.verdict_text import case_line, remark_lines, shortfall_lines, verdict_lines


def verdict(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"exercise": "vector_add", "status": "passed", "backend": "interpreter", "cases": []}
    return {**base, **changes}


def told(value: dict[str, Any], **options: Any) -> str:
    return "\n".join(line.text for line in verdict_lines(value, width=200, **options))


def test_a_case_that_was_not_run_is_not_a_failure() -> None:
    assert case_line({"name": "n=5", "status": "not_run"}) == "– not run  n=5"
    cases = [{"name": "n=1", "status": "wrong_answer"}, {"name": "n=5", "status": "not_run"}]
    text = told(verdict(status="wrong_answer", cases=cases))
    assert "0 of 1 passed, 1 not run" in text and text.count("FAIL") == 1


def test_traffic_is_said_as_a_multiple_of_the_least() -> None:
    traffic = {"loaded_bytes": 24000, "stored_bytes": 12000, "minimum_bytes": 24000, "ratio": 1.5}
    assert "read 24.0 kB and wrote 12.0 kB: 1.5 times the least that the task needs (24.0 kB)" in told(
        verdict(traffic=traffic)
    )
    assert "as little as the task needs" in told(verdict(traffic={**traffic, "ratio": 1.0}))


def test_a_compiled_kernel_is_said_in_words_and_a_second_version_by_its_difference() -> None:
    row = {"target": "sm_90", "kernel": "add", "registers": 26, "spill_bytes": 0, "shared_bytes": 0, "num_warps": 4,
           "vector_loads": 2, "tensor_core_ops": 0, "occupancy": 1.0}  # fmt: skip
    text = told(verdict(compile=[row, dict(row), {**row, "vector_loads": 0, "spill_bytes": 16}]))
    assert "add: 4 warps, 26 registers a thread, nothing spilled, no shared memory, 2 vector loads" in text
    assert "add for other arguments: 16 bytes spilled, no vector loads" in text
    assert "use a smaller tile or more warps" in text
    assert text.count("26 registers") == 1


def test_the_diagnosis_names_the_item_that_explains_it_and_how_to_open_it() -> None:
    diagnosis = {"cause": "missing_store_mask", "message": "m", "line": 2, "see": "m02.bug.mask"}
    bad = verdict(status="out_of_bounds", diagnosis=diagnosis)
    assert "More in m02.bug.mask: triton-prep show m02.bug.mask" in told(bad)
    assert "More in m02.bug.mask: l opens it" in told(bad, look_up="l opens it")
    titles = {"m02.bug.mask": "Past out[n]"}
    assert "More in m02.bug.mask (Past out[n]): triton-prep" in told(bad, title_of=lambda item: titles.get(item, ""))
    assert "More in m02.bug.mask: triton-prep" in told(bad, title_of=lambda item: "")
    lines = [line.text for line in shortfall_lines(bad, source="a\n  tl.store(p[i])")]
    assert lines[0].startswith("out of bounds") and "  line 2:  tl.store(p[i])" in lines
    assert not any("More in" in line for line in lines)


def test_what_is_diagnosed_beside_a_pass_is_a_remark() -> None:
    diagnosis = {"cause": "wrong_device_current", "message": "m", "line": 2, "see": "m02.lesson.launch"}
    good = verdict(diagnosis=diagnosis)
    lines = told(good, source="a\n  add_kernel[grid](x[i])").splitlines()
    assert lines[0] == "✓ vector_add: passed"
    assert "A remark beside the pass: wrong device current" in lines
    assert "  line 2:  add_kernel[grid](x[i])" in lines
    assert any(line.startswith("  More in m02.lesson.launch") for line in lines)
    assert not any(word in "\n".join(lines) for word in ("Why", "✗", "FAIL"))
    assert not [line for line in verdict_lines(good) if line.tone == "bad"]
    assert [line.text for line in remark_lines(good)][:2] == [lines[2], "  m"]
    assert not remark_lines(verdict()) and not remark_lines({**good, "status": "wrong_answer"})


def test_a_pass_offers_what_comes_next_and_a_failure_does_not() -> None:
    assert "  n goes on" in told(verdict(), onward="  n goes on")
    assert "n goes on" not in told(verdict(status="timeout"), onward="  n goes on")
