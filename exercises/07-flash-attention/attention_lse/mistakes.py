"""The mistakes by name, each with the model of its outputs."""

import math

import torch

from grader.problem import Mistake

from .models import empty_rows, empty_rows_average, in_tiles, largest, with_lse, with_scores, without_mask

LSE_LINE = r"\blse\w*\s*=|tl\.store\(\s*lse"


def of_lse(cause: str, message: str, change) -> Mistake:
    return Mistake(cause, message, "logsumexp", "m07.lesson.backward", with_lse(change), LSE_LINE)


MISTAKES = (
    of_lse(
        "wrong_exponent_base",
        "out is right, and lse is in base 2, the logarithm that goes with exp2: multiply by ln 2 = 0.6931 for the natural one.",
        lambda lse, s: lse / math.log(2),
    ),
    of_lse(
        "wrong_exponent_base",
        "lse = m + log(l) with m in base 2 and log(l) in base e: bring both to one base before you add.",
        lambda lse, s: largest(s) / math.log(2) + (lse - largest(s)),
    ),
    of_lse(
        "wrong_exponent_base",
        "lse = m + log2(l): the maximum is in base e, the logarithm of l in base 2.",
        lambda lse, s: largest(s) + (lse - largest(s)) / math.log(2),
    ),
    of_lse(
        "missing_max_in_lse",
        "lse is log(l) alone: l is relative to the row's maximum, so lse = m + log(l).",
        lambda lse, s: lse - largest(s),
    ),
    of_lse(
        "missing_log",
        "lse is m + l: it is the logarithm of the sum, m + log(l).",
        lambda lse, s: largest(s) + torch.exp(lse - largest(s)),
    ),
    of_lse(
        "maximum_for_lse",
        "lse holds the row's maximum m: add log(l).",
        lambda lse, s: s.amax(-1),
    ),
    of_lse(
        "missing_log",
        "lse holds the denominator l: it is the logarithm of the whole sum, m + log(l).",
        lambda lse, s: torch.exp(lse - largest(s)),
    ),
    Mistake(
        cause="minus_inf_minus_minus_inf",
        message="Rows that see no key are NaN: -inf - (-inf) in the exponents, or 0 / 0 in the division. For them the task asks "
        "for out = 0 and lse = -inf.",
        concept="numerics",
        see="m07.lesson.causal",
        model=empty_rows(math.nan, math.nan),
        line=r"tl\.exp2?\(",
    ),
    Mistake(
        cause="minus_inf_minus_minus_inf",
        message="Rows that see no key have out = NaN, 0 / 0: divide by 1 where l is 0.",
        concept="numerics",
        see="m07.lesson.causal",
        model=empty_rows(math.nan, -math.inf),
        line=r"acc\w*\s*/",
    ),
    Mistake(
        cause="minus_inf_minus_minus_inf",
        message="Rows that see no key have a right out, and lse = NaN: it is -inf, the logarithm of an empty sum.",
        concept="numerics",
        see="m07.lesson.causal",
        model=empty_rows(0.0, math.nan),
        line=LSE_LINE,
    ),
    Mistake(
        cause="empty_row_lse",
        message="Rows that see no key have lse = 0: the logarithm of an empty sum is -inf, so that such a row weighs nothing "
        "when results are joined.",
        concept="logsumexp",
        see="m07.lesson.backward",
        model=empty_rows(0.0, 0.0),
        line=LSE_LINE,
    ),
    Mistake(
        cause="mask_top_left",
        message="The diagonal starts at the top left, row i sees keys 0 to i. Here the last row sees the last key: add N_k - N_q.",
        concept="masking",
        see="m07.lesson.pytorch",
        model=with_scores(shift=0),
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="missing_causal_mask",
        message="Every row sees every key: scores of keys after i + N_k - N_q are not set to -inf.",
        concept="masking",
        see="m07.lesson.causal",
        model=without_mask,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="missing_scale",
        message="The scores are not multiplied by 1 / sqrt(D), for out and for lse.",
        concept="attention",
        see="m07.lesson.attention",
        model=with_scores(scale=1.0),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="no_rescale",
        message="acc is not multiplied by alpha when the maximum grows; lse is right.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_acc=False),
        line=r"acc\s*(\+=|=).*tl\.dot|acc\s*=\s*tl\.dot",
    ),
    Mistake(
        cause="no_rescale_denominator",
        message="l is not multiplied by alpha when the maximum grows: out and lse are both wrong.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_l=False),
        line=r"\bl\w*\s*(\+=|=).*tl\.sum",
    ),
    Mistake(
        cause="finite_fill_for_max",
        message="Rows that see no key come out as an average of values: masked scores have a large finite value in place of -inf, "
        "and where all are alike, all weigh the same.",
        concept="masking",
        see="m07.lesson.causal",
        model=empty_rows_average,
        line=r"-\s*1(\.0)?e\d|-\d{4,}",
    ),
)
