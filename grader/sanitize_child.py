"""Run under compute-sanitizer: the learner's function on some cases, each tensor an allocation of its own."""

from __future__ import annotations

import importlib.util
import json
import sys

import torch

from grader.catalog import find
from grader.expectation import seed_of
from grader.grade import load_problem
from grader.problem import Draw


def main() -> None:
    request = json.loads(sys.argv[1])
    problem = load_problem(find(request["exercise"]))
    spec = importlib.util.spec_from_file_location("submission", request["file"])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entry = getattr(module, problem.entry)
    for number in request["cases"]:
        case = problem.cases[number]
        args = case.make(Draw(seed_of(request["seed"], problem, case, 0)))
        placed = [a.to("cuda") if isinstance(a, torch.Tensor) else a for a in args]
        if problem.call in ("gradient", "operator"):
            placed = placed[:-1]
        entry(*placed)
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
