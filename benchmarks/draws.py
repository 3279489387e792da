"""How near right kernels come to the tolerance: every solution on many drawings of every case. Markdown.

    python -m benchmarks.draws [--draws N] [--out FILE] [EXERCISE…]      on the GPU if there is one
    TRITON_INTERPRET=1 python -m benchmarks.draws …                      in the interpreter

A grade with hidden cases or with --verified draws its values by chance: no drawing may fail a right kernel. The share
is the largest error over its bound; at 1 a solution would fail. Runs the solutions in this process. Exits with 1 if one
fails.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from grader import triton_adapter
from grader.catalog import ExerciseFiles, exercises
from grader.compare import Expected, compare
from grader.expectation import draw
from grader.grade import load_problem, versions
from grader.problem import Case, Problem
from grader.runner import Runner


@dataclass
class Worst:
    """Of one exercise."""

    share: float = 0.0
    case: str = ""
    drawn: int = 0
    failed: int = 0
    first: str = ""  # failure


def measure(files: ExerciseFiles, draws: int, device: str) -> Worst:
    problem = load_problem(files)
    runner = _runner(problem, files.solution, device)
    worst = Worst()
    for case in problem.cases:
        if case.needs_gpu and device == "cpu":
            continue
        for seed in range(draws):
            for expected, out in _called(problem, runner, case, seed, device):
                found = compare(out.detach().cpu(), expected)
                share = found.max_error / found.tolerance if found.tolerance else 0.0
                if share > worst.share:
                    worst.share, worst.case = share, case.name
                if not found.right:
                    worst.failed += 1
                    text = f"{case.name}, drawing {seed}: {found.max_error:.3g}, not {found.tolerance:.3g}"
                    worst.first = worst.first or text
            worst.drawn += 1
    return worst


def _runner(problem: Problem, solution: Path, device: str) -> Runner:
    spec = importlib.util.spec_from_file_location(f"solution_{problem.slug}", solution)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    told = {"file": str(solution), "parameters": list(problem.parameters), "entry": problem.entry}
    told |= {"call": problem.call, "differentiable": list(problem.differentiable)}
    runner = Runner("cuda" if device == "cuda" else "interpreter", told, None)
    if device == "cpu":
        triton_adapter.use_own_benchmark(runs=1)
        triton_adapter.allow_interpreted_in_torch_library()
        torch.compile = lambda function, **_: function  # over the interpreter it does not work
    runner.entry = getattr(module, problem.entry)
    return runner


def _called(
    problem: Problem, runner: Runner, case: Case, seed: int, device: str
) -> Iterator[tuple[Expected, torch.Tensor]]:
    """Each output with what is expected of it; what is changed in place comes last, as in a grade."""
    values = draw(problem, case, seed)
    args = [_on(a, device) if isinstance(a, torch.Tensor) else a for a in values.args]
    out = runner.perform(args)
    outputs = list(out) if isinstance(out, (tuple, list)) else [out]
    outputs = outputs[: len(values.expected) - len(problem.mutates)]
    changed = [args[problem.parameters.index(name)] for name in problem.mutates]
    yield from zip(values.expected, [*outputs, *changed], strict=True)


def _on(tensor: torch.Tensor, device: str) -> torch.Tensor:
    """With its strides, and on the CPU too a tensor of its own."""
    if 0 in tensor.stride() or not tensor.numel():
        return tensor.to(device)
    moved = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return moved.copy_(tensor)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("exercises", nargs="*")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1" else "cpu"
    name = torch.cuda.get_device_name(0) if device == "cuda" else "CPU interpreter"
    known = versions()
    lines = [
        "# Right kernels and the tolerance",
        "",
        f"{name}, torch {known['torch']}, triton {known['triton']}, Python {known['python']}, {datetime.date.today()}. "
        f"Written by `python -m benchmarks.draws --draws {options.draws}`.",
        "",
        "Share: the largest error of any element over its bound, of all drawings; at 1 the solution would fail.",
        "",
        "| exercise | drawings | failed | largest share | in |",
        "|---|---|---|---|---|",
    ]
    failed = 0
    for files in exercises():
        if options.exercises and files.slug not in options.exercises:
            continue
        worst = measure(files, options.draws, device)
        failed += worst.failed
        lines.append(
            f"| {files.slug} | {worst.drawn} | {worst.failed} | {worst.share:.2f} | {worst.first or worst.case} |"
        )
        print(lines[-1], flush=True)
        if options.out:
            options.out.write_text("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
