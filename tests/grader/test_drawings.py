"""What a judge keeps between grades: the same objects while they fit, nothing of an older version of a problem."""

from __future__ import annotations

import dataclasses

import torch

from grader.catalog import find
from grader.drawings import Drawings
from grader.grade import load_problem


def test_a_drawing_is_made_once_and_another_seed_or_version_is_another_drawing():
    problem = load_problem(find("vector_add"))
    case = problem.cases[-1]
    drawings = Drawings()
    first = drawings.values(problem, case, 0)
    assert drawings.values(problem, case, 0) is first
    assert not torch.equal(drawings.values(problem, case, 1).args[0], first.args[0])
    assert not torch.equal(drawings.values(problem, case, 0, 1).args[0], first.args[0])
    changed = dataclasses.replace(problem, reference=lambda x, y: x - y)
    assert not torch.equal(drawings.values(changed, case, 0).expected[0].truth, first.expected[0].truth)


def test_no_more_is_kept_than_the_budget_and_the_oldest_goes_first():
    problem = load_problem(find("vector_add"))
    case = next(c for c in problem.cases if "1023" in c.name)
    one = Drawings()
    one.values(problem, case, 0)
    drawings = Drawings(budget=3 * one.held)
    kept = [drawings.values(problem, case, seed) for seed in range(3)]
    assert drawings.values(problem, case, 0) is kept[0]  # used again: now 1 is the oldest
    drawings.values(problem, case, 3)
    assert drawings.held <= drawings.budget
    assert drawings.values(problem, case, 0) is kept[0]
    assert drawings.values(problem, case, 1) is not kept[1]
