"""What cross_entropy gives when it is written wrongly."""

from __future__ import annotations

import math

import torch

from grader.problem import Mistake

BLOCK = 4096  # of the launcher the stub gives


def capped(logits: torch.Tensor, softcap: float) -> torch.Tensor:
    wide = logits.double()
    return softcap * torch.tanh(wide / softcap) if softcap else wide


def loss_of(z: torch.Tensor, target: torch.Tensor, ignore_index: int, lse: torch.Tensor | None = None) -> torch.Tensor:
    """The loss for these z, in float32; with another log-sum-exp in place of the right one where that is given."""
    lse = torch.logsumexp(z, dim=1) if lse is None else lse
    counted = target != ignore_index
    looked_up = z.gather(1, torch.where(counted, target, 0)[:, None])[:, 0]
    return torch.where(counted, lse - looked_up, 0.0).float()


def with_lanes(logits, target, ignore_index, softcap, fill: float):
    """Lanes past V that hold `fill` in the maximum and in the sum."""
    padding = -logits.shape[1] % BLOCK
    if padding == 0 or logits.numel() == 0:
        return None
    z = capped(logits, softcap)
    lanes = torch.full((z.shape[0], padding), fill, dtype=torch.float64)
    return loss_of(z, target, ignore_index, torch.logsumexp(torch.cat([z, lanes], dim=1), dim=1))


def fill_under_the_cap(logits, target, ignore_index, softcap):
    return with_lanes(logits, target, ignore_index, softcap, -softcap) if softcap else None


def padded_with_zero(logits, target, ignore_index, softcap):
    return with_lanes(logits, target, ignore_index, softcap, 0.0)


def of_tiles(logits, target, ignore_index, softcap, fold):
    """`fold` makes a log-sum-exp of the row's tiles."""
    if logits.numel() == 0 or logits.shape[1] <= BLOCK:
        return None
    z = capped(logits, softcap)
    lse = fold(z.split(BLOCK, dim=1))
    # NaN says nothing: memory that was never written is NaN as well
    return None if bool(lse.isnan().any()) else loss_of(z, target, ignore_index, lse)


def never_rescaled(tiles):
    m = torch.full_like(tiles[0][:, 0], float("-inf"))
    total = torch.zeros_like(m)
    for tile in tiles:
        m = torch.maximum(m, tile.amax(dim=1))
        total = total + torch.exp(tile - m[:, None]).sum(dim=1)
    return m + total.log()


def last_tile_only(tiles):
    """l = sum instead of l = l * factor + sum."""
    m = torch.cat(tiles, dim=1).amax(dim=1)
    return m + torch.exp(tiles[-1] - m[:, None]).sum(dim=1).log()


def maximum_from_zero(logits, target, ignore_index, softcap):
    """Right in exact arithmetic; of rows far below 0 every term underflows."""
    if logits.numel() == 0:
        return None
    z = capped(logits, softcap)
    m = z.amax(dim=1).clamp(min=0.0)
    lse = m + torch.exp((z - m[:, None]).float()).sum(dim=1).log()
    return loss_of(z, target, ignore_index, lse)


def half_the_argument(logits, target, ignore_index, softcap):
    """2 * sigmoid(y) - 1 is tanh(y / 2)."""
    if not softcap or logits.numel() == 0:
        return None
    return loss_of(capped(logits.double() / 2, softcap), target, ignore_index)


def without_maximum(logits, target, ignore_index, softcap):
    if logits.numel() == 0:
        return None
    z = capped(logits, softcap)
    lse = z.float().exp().sum(dim=1).log().double()
    return loss_of(z, target, ignore_index, lse)


def ignored_class_counts(logits, target, ignore_index, softcap):
    """The row's loss as if its target were a class like any other."""
    if logits.numel() == 0 or not 0 <= ignore_index < logits.shape[1]:
        return None
    return loss_of(capped(logits, softcap), target, -1)


def ignored_row_keeps_its_sum(logits, target, ignore_index, softcap):
    """The target's logit of an ignored row was loaded as 0, and the rest of the loss was stored."""
    if logits.numel() == 0 or not bool((target == ignore_index).any()):
        return None
    lse = torch.logsumexp(capped(logits, softcap), dim=1).float()
    return torch.where(target == ignore_index, lse, right(logits, target, ignore_index, softcap))


def target_without_cap(logits, target, ignore_index, softcap):
    if not softcap or logits.numel() == 0:
        return None
    return loss_of(logits.double(), target, ignore_index, torch.logsumexp(capped(logits, softcap), dim=1))


def row_of_its_own(logits, target, ignore_index, softcap):
    """Everything is read from row 0, but the targets."""
    if logits.numel() == 0:
        return None
    return loss_of(capped(logits[:1].expand(logits.shape), softcap), target, ignore_index)


def rows_side_by_side(logits, target, ignore_index, softcap):
    if logits.is_contiguous() or logits.numel() == 0:
        return None
    seen = logits.as_strided(logits.shape, (logits.shape[1], 1))
    return loss_of(capped(seen, softcap), target, ignore_index)


def right(logits, target, ignore_index, softcap):
    return loss_of(capped(logits, softcap), target, ignore_index)


def only_log_sum_exp(logits, target, ignore_index, softcap):
    lse = torch.logsumexp(capped(logits, softcap), dim=1)
    return torch.where(target != ignore_index, lse, 0.0).float()


def logarithm_of_two(logits, target, ignore_index, softcap):
    """m + log2(l) instead of m + log(l)."""
    if logits.numel() == 0:
        return None
    z = capped(logits, softcap)
    m = z.amax(dim=1)
    lse = m + torch.exp(z - m[:, None]).sum(dim=1).log() / math.log(2)
    return loss_of(z, target, ignore_index, lse)


MISTAKES = (
    Mistake(
        cause="padding_after_softcap",
        message="The losses are too large: tanh turned the fill of -inf in the lanes past V into -softcap, and their "
        "exponentials joined the sum. Set the lanes to -inf after the cap: tl.where(mask, z, -float('inf')).",
        concept="masking",
        see="m03.lesson.fill",
        model=fill_under_the_cap,
        line=r"(?m)^[^#\n]*(sigmoid|tanh|softcap \*)",
    ),
    Mistake(
        cause="wrong_fill_for_max",
        message="The losses are too large: the lanes past V hold 0, and exp(0 - m) each joined the sum. They must hold "
        "-inf before the maximum.",
        concept="masking",
        see="m03.lesson.fill",
        model=padded_with_zero,
        line=r"other=\s*0|tl\.load\(logits_row",
    ),
    Mistake(
        cause="no_rescale",
        message="The sum is not moved to a new maximum: multiply it by exp(m - m_new) before the tile's terms are added.",
        concept="online softmax",
        see="m04.lesson.online",
        model=lambda *args: of_tiles(*args, never_rescaled),
        line=r"(?m)^\s*l\s*\+?=(?!\s*0\b)",
    ),
    Mistake(
        cause="accumulator_overwritten",
        message="The sum holds the last tile only: add to what was summed, l = l * exp(m - m_new) + …",
        concept="online softmax",
        see="m04.lesson.online",
        model=lambda *args: of_tiles(*args, last_tile_only),
        line=r"(?m)^\s*l\s*=(?!\s*0\b)",
    ),
    Mistake(
        cause="first_tile_only",
        message="Only the first BLOCK logits of a row were summed; the row is longer.",
        concept="reductions",
        see="m04.lesson.long-rows",
        model=lambda *args: of_tiles(*args, lambda tiles: torch.logsumexp(tiles[0], dim=1)),
        line=r"range\(",
    ),
    Mistake(
        cause="missing_max_subtraction",
        message="exp overflowed: subtract the running maximum before the exponential.",
        concept="numerics",
        see="m04.lesson.softmax",
        model=without_maximum,
        line=r"(?m)^[^#\n]*tl\.exp2?\(",
    ),
    Mistake(
        cause="max_starts_at_zero",
        message="The maximum that is subtracted is never below 0: of rows far below 0 every exponential is 0. Start it at -inf.",
        concept="online softmax",
        see="m04.lesson.online",
        model=maximum_from_zero,
        line=r"(?m)^\s*m\s*=\s*0",
    ),
    Mistake(
        cause="wrong_softcap",
        message="The cap is softcap * tanh(x / (2 * softcap)): 2 * sigmoid(y) - 1 is tanh(y / 2). Double the argument.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=half_the_argument,
        line=r"sigmoid|tanh",
    ),
    Mistake(
        cause="ignore_index_not_zero",
        message="A row whose target is ignore_index has a loss. Its loss is 0, also where ignore_index is a class number.",
        concept="masking",
        see="m04.exercise.cross-entropy",
        model=ignored_class_counts,
        line=r"tl\.store\(",
    ),
    Mistake(
        cause="ignore_index_not_zero",
        message="A row whose target is ignore_index has its log-sum-exp for a loss: no logit was subtracted, but the rest "
        "was stored. Its loss is 0: tl.where(target != ignore_index, loss, 0.0).",
        concept="masking",
        see="m04.exercise.cross-entropy",
        model=ignored_row_keeps_its_sum,
        line=r"tl\.store\(",
    ),
    Mistake(
        cause="target_not_capped",
        message="The sum is over capped logits, but the target's logit was taken without the cap.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=target_without_cap,
        line=r"tl\.load\([^#\n]*\+ target",
    ),
    Mistake(
        cause="missing_softcap",
        message="softcap was not applied.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=lambda logits, target, ignore_index, softcap: (
            right(logits, target, ignore_index, 0.0) if softcap and logits.numel() else None
        ),
    ),
    Mistake(
        cause="wrong_sign",
        message="The sign is turned round: the loss is log-sum-exp minus the target's logit, and never below 0.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=lambda *args: -right(*args),
        line=r"tl\.log2?\(",
    ),
    Mistake(
        cause="missing_target_logit",
        message="The loss is the log-sum-exp alone: the target's logit is not subtracted.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=only_log_sum_exp,
        line=r"tl\.store\(",
    ),
    Mistake(
        cause="wrong_log_base",
        message="The logarithm is to the base 2: with tl.log2, multiply by ln 2, or use tl.log.",
        concept="numerics",
        see="m04.exercise.cross-entropy",
        model=logarithm_of_two,
        line=r"tl\.log2\(",
    ),
    Mistake(
        cause="missing_row_offset",
        message="Every program read row 0: the address of the logits lacks row * stride_m.",
        concept="strides",
        see="m03.lesson.strides",
        model=row_of_its_own,
        line=r"logits_ptr(?!.*stride_m)(?!,)",
    ),
    Mistake(
        cause="assumes_contiguous",
        message="Row i was read from i * V, as if the rows lay side by side; they lie stride_m elements apart.",
        concept="strides",
        see="m03.lesson.strides",
        model=rows_side_by_side,
        line=r"logits_ptr \+ row \* n_cols",
    ),
)
