"""What layer_norm gives when it is written wrongly."""

from __future__ import annotations

from collections.abc import Callable

import torch

from grader.problem import Mistake

Statistics = Callable[[torch.Tensor], torch.Tensor]


def block(x: torch.Tensor) -> int:
    """Lanes of the tile."""
    return 1 << (x.shape[1] - 1).bit_length()


def mean_of(x: torch.Tensor) -> torch.Tensor:
    return x.mean(dim=1, keepdim=True)


def variance_of(x: torch.Tensor) -> torch.Tensor:
    return (x - mean_of(x)).square().mean(dim=1, keepdim=True)


def normed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float,
    mean: Statistics = mean_of,
    variance: Statistics = variance_of,
) -> torch.Tensor:
    """Layer norm with statistics of one's own, computed in float64."""
    wide = x.double()
    return ((wide - mean(wide)) * torch.rsqrt(variance(wide) + eps) * weight.double() + bias.double()).to(x.dtype)


def padded_lanes_in_variance(x, weight, bias, eps):
    """Each padded lane adds mean^2."""
    padding = block(x) - x.shape[1]
    if padding == 0:
        return None
    return normed(x, weight, bias, eps, variance=lambda t: variance_of(t) + padding * mean_of(t) ** 2 / t.shape[1])


def divided_by_the_tile(x, weight, bias, eps):
    """Sums over N elements divided by BLOCK_N, the lanes past N kept out of the variance or not."""
    share = x.shape[1] / block(x)
    if share == 1 or x.numel() == 0:
        return None

    def mean(t: torch.Tensor) -> torch.Tensor:
        return mean_of(t) * share

    def masked(t: torch.Tensor) -> torch.Tensor:
        return (t - mean(t)).square().mean(dim=1, keepdim=True) * share

    def padded(t: torch.Tensor) -> torch.Tensor:
        return masked(t) + mean(t) ** 2 * (1 - share)

    def only_the_mean(t: torch.Tensor) -> torch.Tensor:
        return (t - mean(t)).square().mean(dim=1, keepdim=True)

    guesses = [normed(x, weight, bias, eps, mean, v) for v in (masked, padded, only_the_mean)]
    guesses.append(normed(x, weight, bias, eps, mean_of, lambda t: variance_of(t) * share))
    return lambda out: any(near(out, guess) for guess in guesses)


def padded_with_one(x, weight, bias, eps):
    """Each padded lane adds 1 to the sum; the variance is taken from that mean, over the elements."""
    extra = (block(x) - x.shape[1]) / x.shape[1]
    if extra == 0:
        return None

    def mean(t: torch.Tensor) -> torch.Tensor:
        return mean_of(t) + extra

    return normed(x, weight, bias, eps, mean, lambda t: (t - mean(t)).square().mean(dim=1, keepdim=True))


def near(out: torch.Tensor, guess: torch.Tensor) -> bool:
    slack = 16 * torch.finfo(out.dtype).eps
    return torch.allclose(out.double(), guess.double(), rtol=slack, atol=slack * float(guess.double().abs().max()))


def cancelled(x, weight, bias, eps):
    """mean(x^2) - mean^2 in float32: what is left of the variance depends on the order of the sum, and may be
    negative. So each row is the right one but for a factor of its own, or NaN."""
    wide = x.double()
    if x.numel() == 0 or bool((mean_of(wide).abs() < 100 * variance_of(wide).sqrt()).any()):
        return None
    distance = (wide - mean_of(wide)) * weight.double()
    right = normed(x, weight, bias, eps)

    def matches(out: torch.Tensor) -> bool:
        if bool(out.isnan().all()) or torch.allclose(out, right, rtol=1e-3, atol=1e-3):
            return False  # all NaN says nothing: memory that was never written is NaN as well
        shifted = out.double() - bias.double()
        used = distance.abs() > 0.05 * distance.abs().amax(dim=1, keepdim=True)
        for row, counted, wanted in zip(shifted, used, distance, strict=True):
            ratio = row[counted] / wanted[counted]
            if bool(row.isnan().all()):
                continue
            if not bool(((ratio - ratio.median()).abs() <= 0.02 * ratio.median().abs()).all()):
                return False
        return True

    return matches


def sums_overflow(x, weight, bias, eps):
    """A float16 sum past 65504 is inf; the distance from it is -inf, and -inf times 0 is NaN."""
    if x.dtype != torch.float16 or x.numel() == 0 or bool((x.double().sum(dim=1).abs() < 70000).any()):
        return None
    return torch.full_like(x, float("nan"))


def eps_outside(x, weight, bias, eps):
    return normed(x, weight, bias, 0.0, variance=lambda t: (variance_of(t).sqrt() + eps) ** 2)


def unbiased(x, weight, bias, eps):
    n = x.shape[1]
    if n == 1:
        return None
    return normed(x, weight, bias, eps, variance=lambda t: variance_of(t) * n / (n - 1))


def rows_side_by_side(x, weight, bias, eps):
    """Row i read from i * N, as if x were contiguous."""
    if x.is_contiguous() or x.numel() == 0:
        return None
    return normed(x.as_strided(x.shape, (x.shape[1], 1)), weight, bias, eps)


MISTAKES = (
    Mistake(
        cause="padding_in_variance",
        message="The variance is too large: in the lanes past N, x - mean is -mean, not 0, and its square was summed. "
        "Switch them off again: tl.where(mask, x - mean, 0.0).",
        concept="masking",
        see="m03.lesson.fill",
        model=padded_lanes_in_variance,
        line=r"(?m)^[^#\n]*\bx\s*-\s*\w*mean",
    ),
    Mistake(
        cause="divided_by_block",
        message="A sum is divided by BLOCK_N, the lanes of the tile. The row has n_cols elements.",
        concept="masking",
        see="m03.lesson.fill",
        model=divided_by_the_tile,
        line=r"/\s*BLOCK_N",
    ),
    Mistake(
        cause="wrong_fill_for_sum",
        message="Padded lanes hold 1, and each adds to the sum for the mean; the identity of a sum is 0.",
        concept="masking",
        see="m03.lesson.fill",
        model=padded_with_one,
        line=r"tl\.load\(x_ptr.*other=",
    ),
    Mistake(
        cause="accumulates_in_half",
        message="The sum overflowed: tl.sum of float16 adds in float16. Cast the row to float32 right after the load.",
        concept="numerics",
        see="m04.lesson.dtype",
        model=sums_overflow,
        line=r"tl\.load\(x_ptr",
    ),
    Mistake(
        cause="variance_cancels",
        message="Rows far from 0 have a wrong variance. mean(x^2) - mean^2 subtracts two large, nearly equal numbers, and "
        "float32 keeps little of the difference. Subtract the mean first, then square.",
        concept="numerics",
        see="m04.lesson.dtype",
        model=cancelled,
        line=r"x \* x|mean \* mean|mean\s*\*\*",
    ),
    Mistake(
        cause="missing_eps",
        message="eps is not added to the variance: a row of equal values divides by 0.",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(x, weight, bias, 0.0),
        line=r"(?m)^[^#\n]*r?sqrt",
    ),
    Mistake(
        cause="eps_outside_root",
        message="eps was added to the root of the variance; it belongs under the root: sqrt(var + eps).",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=eps_outside,
        line=r"(?m)^[^#\n]*sqrt",
    ),
    Mistake(
        cause="unbiased_variance",
        message="The squared distances are divided by N - 1. Layer norm divides by N.",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=unbiased,
        line=r"n_cols\s*-\s*1",
    ),
    Mistake(
        cause="missing_square_root",
        message="The row is divided by the variance; divide by its square root.",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(
            x, weight, bias, 0.0, variance=lambda t: (variance_of(t) + eps).square()
        ),
        line=r"(?m)^[^#\n]*/[^#\n]*eps",
    ),
    Mistake(
        cause="missing_mean_subtraction",
        message="The mean is not subtracted from what is normalised.",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(x, weight, bias, eps, torch.zeros_like),
        line=r"(?m)^[^#\n]*r?sqrt",
    ),
    Mistake(
        cause="missing_mean_subtraction",
        message="This is RMS norm: neither the variance nor the result has the mean taken off.",
        concept="numerics",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(
            x, weight, bias, eps, torch.zeros_like, lambda t: t.square().mean(dim=1, keepdim=True)
        ),
        line=r"(?m)^[^#\n]*r?sqrt",
    ),
    Mistake(
        cause="missing_weight",
        message="The result is not multiplied by weight.",
        concept="fusion",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(x, torch.ones_like(weight), bias, eps),
        line=r"tl\.store\(",
    ),
    Mistake(
        cause="missing_bias",
        message="bias is not added.",
        concept="fusion",
        see="m04.exercise.layer-norm",
        model=lambda x, weight, bias, eps: normed(x, weight, torch.zeros_like(bias), eps),
        line=r"tl\.store\(",
    ),
    Mistake(
        cause="arguments_exchanged",
        message="weight and bias have changed places.",
        concept="launch",
        see="m02.lesson.skeleton",
        model=lambda x, weight, bias, eps: normed(x, bias, weight, eps),
    ),
    Mistake(
        cause="missing_row_offset",
        message="Every row of the output is that of row 0: the address of x lacks row * stride_xm.",
        concept="strides",
        see="m03.lesson.strides",
        model=lambda x, weight, bias, eps: normed(x[:1], weight, bias, eps).expand(x.shape).clone(),
        line=r"tl\.load\(x_ptr(?!.*stride_xm)",
    ),
    Mistake(
        cause="assumes_contiguous",
        message="Row i was read from i * N, as if the rows lay side by side; they lie stride_xm elements apart.",
        concept="strides",
        see="m03.lesson.strides",
        model=rows_side_by_side,
        line=r"tl\.load\(x_ptr(?!.*stride_xm)",
    ),
)
