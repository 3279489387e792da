"""What layer_norm and its gradients are when the backward is written wrongly."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from grader.problem import Mistake


@dataclass(frozen=True)
class Parts:
    """Everything of one call, in float64; sums are over a row, kept as a column."""

    out: torch.Tensor
    xhat: torch.Tensor
    rstd: torch.Tensor
    grad: torch.Tensor
    weight: torch.Tensor
    dtype: torch.dtype

    @property
    def g(self) -> torch.Tensor:
        return self.grad * self.weight

    def grad_x(self, g: torch.Tensor | None = None, one: float = 1.0, xhat: float = 1.0) -> torch.Tensor:
        """With another g, or with the two means times a factor."""
        g = self.g if g is None else g
        along_one = one * g.mean(dim=1, keepdim=True)
        along_xhat = xhat * (g * self.xhat).mean(dim=1, keepdim=True)
        return self.rstd * (g - along_one - self.xhat * along_xhat)

    def result(self, grad_x=None, grad_weight=None, grad_bias=None) -> tuple[torch.Tensor, ...]:
        """Value and gradients; the right one where none is given."""
        values = (
            self.out,
            self.grad_x() if grad_x is None else grad_x,
            (self.grad * self.xhat).sum(dim=0) if grad_weight is None else grad_weight,
            self.grad.sum(dim=0) if grad_bias is None else grad_bias,
        )
        return tuple(value.to(self.dtype) for value in values)


def parts(x, weight, bias, eps, grad) -> Parts:
    wide = x.double()
    centred = wide - wide.mean(dim=1, keepdim=True)
    rstd = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    xhat = centred * rstd
    return Parts(xhat * weight.double() + bias.double(), xhat, rstd, grad.double(), weight.double(), x.dtype)


def programs_of(rows: int) -> int:
    return min(-(-rows // 2), 528)  # of the launcher


def statistics_as_constants(*args):
    p = parts(*args)
    return p.result(grad_x=p.rstd * p.g)


def without_weight(*args):
    p = parts(*args)
    return p.result(grad_x=p.grad_x(g=p.grad))


def without_mean_term(*args):
    p = parts(*args)
    return p.result(grad_x=p.grad_x(one=0.0))


def without_projection(*args):
    p = parts(*args)
    return p.result(grad_x=p.grad_x(xhat=0.0))


def without_rstd(*args):
    p = parts(*args)
    return p.result(grad_x=p.grad_x() / p.rstd)


def divided_by_the_tile(x, *rest):
    n = x.shape[1]
    share = n / (1 << (n - 1).bit_length())
    p = parts(x, *rest)
    return None if share == 1 else p.result(grad_x=p.grad_x(one=share, xhat=share))


def exchanged(*args):
    p = parts(*args)
    return p.result(grad_weight=p.grad.sum(dim=0), grad_bias=(p.grad * p.xhat).sum(dim=0))


def times_x(x, *rest):
    p = parts(x, *rest)
    return p.result(grad_weight=(p.grad * x.double()).sum(dim=0))


def last_rows_only(x, *rest):
    """Each program's partial sums hold its last row only."""
    rows = x.shape[0]
    programs = programs_of(rows)
    if rows == programs:
        return None
    last = [range(program, rows, programs)[-1] for program in range(programs)]
    p = parts(x, *rest)
    return p.result(grad_weight=(p.grad * p.xhat)[last].sum(dim=0), grad_bias=p.grad[last].sum(dim=0))


def first_program_only(x, *rest):
    rows = x.shape[0]
    programs = programs_of(rows)
    if programs == 1:
        return None
    p = parts(x, *rest)
    return p.result(
        grad_weight=(p.grad * p.xhat)[::programs].sum(dim=0),
        grad_bias=p.grad[::programs].sum(dim=0),
    )


def without_upstream(x, weight, bias, eps, grad):
    return parts(x, weight, bias, eps, torch.ones_like(grad)).result()


def gradient_read_flat(x, weight, bias, eps, grad):
    """The incoming gradient taken in memory order."""
    if grad.is_contiguous() or 0 in grad.stride():
        return None
    flat = torch.as_strided(grad, (grad.numel(),), (1,)).reshape(grad.shape)
    return parts(x, weight, bias, eps, flat).result()


MISTAKES = (
    Mistake(
        cause="statistics_as_constants",
        message="grad_x is rstd * g: mean and rstd were taken for constants. They depend on every x of the row, which "
        "takes off mean(g) and xhat * mean(g * xhat).",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=statistics_as_constants,
        line=r"tl\.store\(grad_x_ptr",
    ),
    Mistake(
        cause="missing_mean_term",
        message="grad_x lacks the term mean(g): it comes from the mean, which depends on every x of the row.",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=without_mean_term,
        line=r"grad_x = ",
    ),
    Mistake(
        cause="missing_projection",
        message="grad_x lacks the term xhat * mean(g * xhat): it comes from the variance.",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=without_projection,
        line=r"grad_x = ",
    ),
    Mistake(
        cause="missing_weight",
        message="grad_x was computed from grad_out: g is grad_out * weight.",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=without_weight,
        line=r"(?m)^\s*g = ",
    ),
    Mistake(
        cause="missing_rstd",
        message="grad_x is not multiplied by rstd.",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=without_rstd,
        line=r"grad_x = ",
    ),
    Mistake(
        cause="divided_by_block",
        message="The means of grad_x were taken over BLOCK_N lanes. The row has n_cols elements.",
        concept="masking",
        see="m03.lesson.fill",
        model=divided_by_the_tile,
        line=r"/\s*BLOCK_N",
    ),
    Mistake(
        cause="gradients_exchanged",
        message="grad_weight and grad_bias have changed places.",
        concept="autograd",
        see="m08.lesson.autograd",
        model=exchanged,
        line=r"return grad_x",
    ),
    Mistake(
        cause="raw_input_in_gradient",
        message="grad_weight sums grad_out * x; the forward multiplied xhat by the weight, so it is grad_out * xhat.",
        concept="autograd",
        see="m08.exercise.layer-norm-backward",
        model=times_x,
        line=r"grad \* x\b",
    ),
    Mistake(
        cause="accumulator_overwritten",
        message="grad_weight and grad_bias hold only the last row of each program: add in the loop, sum += …",
        concept="reductions",
        see="m04.lesson.long-rows",
        model=last_rows_only,
        line=r"(?m)^\s+sum_\w+ = (?!tl\.zeros)",
    ),
    Mistake(
        cause="first_partial_only",
        message="grad_weight and grad_bias hold the first program's partial sums; those of the others were not added.",
        concept="reductions",
        see="m08.exercise.layer-norm-backward",
        model=first_program_only,
        line=r"column_sum_kernel\[",
    ),
    Mistake(
        cause="missing_upstream_gradient",
        message="The gradients are those for a grad_out of ones: multiply by what came in (the chain rule).",
        concept="autograd",
        see="m08.lesson.autograd",
        model=without_upstream,
        line=r"def backward\(",
    ),
    Mistake(
        cause="gradient_assumed_contiguous",
        message="The incoming gradient was read in memory order, as if it were contiguous. It may be transposed or "
        "expanded: call grad_out.contiguous(), or pass its strides.",
        concept="strides",
        see="m08.lesson.autograd",
        model=gradient_read_flat,
        line=r"def backward\(",
    ),
)
