"""From a problem's case and a seed: the arguments, and what must come back. Trusted; computed on the CPU."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import torch

from grader.compare import Expected, expect
from grader.problem import Args, Case, Draw, Problem, Work


@dataclass(frozen=True)
class Values:
    """One drawing of a case."""

    args: tuple[Any, ...]
    expected: tuple[Expected, ...]  # what the entry returns, then what it changes in place

    @property
    def size(self) -> int:
        return sum(a.numel() for a in self.args if isinstance(a, torch.Tensor))


def seed_of(seed: int, problem: Problem, case: Case, drawing: int) -> int:
    """A seed that no case shares with another and that a submission cannot work out from an earlier one."""
    text = f"{seed}/{problem.slug}/{case.name}/{drawing}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


def draw(problem: Problem, case: Case, seed: int, drawing: int = 0) -> Values:
    args = tuple(case.make(Draw(seed_of(seed, problem, case, drawing))))
    return Values(args, expected_of(problem, args))


def expected_of(problem: Problem, args: Args) -> tuple[Expected, ...]:
    native = outputs_of(problem, args)
    truth = outputs_of(problem, [_double(a) for a in args])
    if problem.out_dtype is not None:
        dtypes = problem.out_dtype(*args)
        dtypes = dtypes if isinstance(dtypes, tuple) else (dtypes,) * len(native)
        native = tuple(n.to(d) for n, d in zip(native, dtypes, strict=True))
    scales: Any = problem.tolerance.scale(*[_double(a) for a in args]) if problem.tolerance.scale else None
    if not isinstance(scales, tuple):
        scales = (scales,) * len(native)
    return tuple(
        expect(n, t, problem.tolerance, s if s is None else s.expand(t.shape))
        for n, t, s in zip(native, truth, scales, strict=True)
    )


def outputs_of(problem: Problem, args: Args, function: Any = None) -> tuple[torch.Tensor, ...]:
    """The reference's outputs; for a differentiable problem, its gradients by autograd as well."""
    function = function or problem.reference
    args = [a.detach().clone() if isinstance(a, torch.Tensor) else a for a in args]
    if problem.call in ("gradient", "operator"):
        *inputs, incoming = args
        wanted = []
        for position, name in enumerate(problem.parameters[: len(inputs)]):
            if name in problem.differentiable:
                inputs[position] = inputs[position].requires_grad_()
                wanted.append(inputs[position])
        out = function(*inputs)
        return (out.detach(), *torch.autograd.grad(out, wanted, incoming))
    out = function(*args)
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


def work_of(problem: Problem, args: Args) -> Work:
    """The least this call must do; a problem's `work` may leave out the incoming gradient."""
    try:
        return problem.work(*args)
    except TypeError:
        return problem.work(*args[:-1])


def _double(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
        return value.to(torch.float64)
    return value
