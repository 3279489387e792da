"""A small seeded sample of the mutation run: the grader agrees with what is known without it; and the knower knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.mutation.__main__ import TruthServer, facts, judged
from benchmarks.mutation.mutators import mutants, sample
from grader.catalog import find

SEED, EACH = 3, 2
EXERCISES = ("vector_add", "program_ids", "row_max")

KNOWN = [
    ("vector_add", "", "", "equal"),
    ("vector_add", "offs < n", "offs <= n", "different"),  # one element past the end
    ("vector_add", "cdiv(n, meta", "cdiv(n - 1, meta", "different"),  # at n = 1 and 1025 only
    ("vector_add", "mask=mask)\n    y", "mask=mask, other=1.0)\n    y", "equal"),  # lanes that nobody stores
    ("row_max", 'other=-float("inf")', "other=-1e30", "different"),  # near the end of float32 only
    ("program_ids", "x + pid, mask=mask", "x + pid, mask=offs < n + 64 * (pid % 2)", "different"),
]


@pytest.fixture(scope="module")
def truth():
    server = TruthServer()
    yield server
    server.close()


def solution(exercise: str) -> str:
    return find(exercise).solution.read_text()


@pytest.mark.parametrize(("exercise", "old", "new", "expected"), KNOWN)
def test_the_truth_knows_equal_from_different(truth, tmp_path: Path, exercise, old, new, expected):
    text = solution(exercise)
    assert old in text
    file = tmp_path / f"{exercise}.py"
    file.write_text(text.replace(old, new) if old else text)
    assert truth.ask(exercise, file)["truth"] == expected


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_mutant_that_differs_passes_and_none_that_is_equal_fails(grader, truth, tmp_path: Path, exercise):
    file = tmp_path / f"{exercise}.py"
    for mutant in sample(exercise, solution(exercise), EACH, SEED):
        file.write_text(mutant.source)
        one = judged(mutant, truth.ask(exercise, file), facts(grader.grade(exercise, file, call_limit=10)))
        assert one.outcome not in ("escaped", "misjudged"), f"{one.outcome}: {one.why or one.message}\n{one.diff}"


def test_a_sample_is_the_same_for_the_same_seed_and_begins_alike_whatever_its_size():
    text = solution("row_scale")
    few, many = sample("row_scale", text, 5, SEED), sample("row_scale", text, 12, SEED)
    assert few == many[:5]
    assert few != sample("row_scale", text, 5, SEED + 1)
    assert len({m.source for m in many}) == 12


def test_every_way_of_changing_a_solution_has_a_mutant():
    operators = {m.operator for name in ("accumulate_rows", "row_sum") for m in mutants(name, solution(name))}
    wanted = (
        "drop_mask drop_mask_term loosen_mask move_bound change_comparison change_other drop_other swap_stride change_axis "
        "swap_new_axis change_dtype change_constant change_operator change_function drop_statement swap_statements "
        "swap_operands floor_grid fewer_programs swap_grid stop_early skip_first_tile off_by_one drop_cast drop_reset_to_zero "
        "atomic_to_store drop_term other_size other_block overwrite_accumulator"
    )
    assert set(wanted.split()) <= operators


def test_an_edit_touches_nothing_else_of_the_source():
    text = solution("row_scale")
    for mutant in mutants("row_scale", text):
        removed = [line[1:] for line in mutant.diff.splitlines() if line.startswith("-")]
        assert all(line in text for line in removed)
        assert len(removed) <= 12
