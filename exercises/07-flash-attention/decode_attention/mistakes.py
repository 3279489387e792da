"""The mistakes by name, each with the model of its output."""

import torch

from grader.problem import Mistake

from .models import (
    first_sequence,
    in_tiles,
    nan_for_empty,
    stale_values_times_zero,
    whole_tiles,
    with_lengths,
    with_options,
    zeros_counted,
)

MISTAKES = (
    Mistake(
        cause="stale_values_times_zero",
        message="Scores behind the last token are masked, but the values there are still loaded: weight 0 times a stale inf or "
        "NaN is NaN. Mask the load of v by the length as well, with other=0.0.",
        concept="masking",
        see="m07.lesson.serving",
        model=stale_values_times_zero,
        line=r"\bv\w*\s*=\s*tl\.load\(",
    ),
    Mistake(
        cause="stale_keys_counted",
        message="All S_max places of the cache take part: the loop and the mask must end at this sequence's length.",
        concept="masking",
        see="m07.lesson.serving",
        model=with_lengths(lambda lengths, size: torch.full_like(lengths, size)),
        line=r"for .* in (tl\.)?range\(",
    ),
    Mistake(
        cause="length_of_first_sequence",
        message="Every sequence is cut at the length of sequence 0: load lengths_ptr + batch * stride_l.",
        concept="offsets",
        see="m07.lesson.serving",
        model=with_lengths(lambda lengths, size: lengths[:1].expand_as(lengths)),
        line=r"tl\.load\(\s*lengths_ptr",
    ),
    Mistake(
        cause="length_off_by_one",
        message="The last token of each sequence is left out: tokens 0 to length - 1 take part.",
        concept="masking",
        see="m07.lesson.serving",
        model=with_lengths(lambda lengths, size: (lengths - 1).clamp_min(0)),
        line=r"tl\.load\(\s*lengths_ptr|<\s*length",
    ),
    Mistake(
        cause="length_off_by_one",
        message="One place behind the last token takes part: tokens 0 to length - 1 exist.",
        concept="masking",
        see="m07.lesson.serving",
        model=with_lengths(lambda lengths, size: (lengths + 1).clamp_max(size)),
        line=r"<=\s*length",
    ),
    Mistake(
        cause="wrong_kv_head",
        message="Query head h uses key-value head h % H_kv; heads that share one are neighbours, so it is h // G.",
        concept="grouped queries",
        see="m07.lesson.serving",
        model=with_options(of_head=lambda head, groups, kv_heads: head % kv_heads),
        line=r"^\s*\w*heads?\w*\s*=\s*(?!tl\.program_id)",
    ),
    Mistake(
        cause="missing_head_offset",
        message="All query heads use key-value head 0: the caches' pointers lack kv_head * their head stride.",
        concept="strides",
        see="m07.lesson.serving",
        model=with_options(of_head=lambda head, groups, kv_heads: head * 0),
        line=r"\bk_ptr\s*\+(?!.*kv_head)|\bk_ptr\s*$",
    ),
    Mistake(
        cause="padded_keys_counted",
        message="Masked loads give zeros, and their score 0 joins the softmax: behind the last token the score must be -inf.",
        concept="masking",
        see="m07.bug.padding",
        model=zeros_counted,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="minus_inf_minus_minus_inf",
        message="A sequence of length 0 gives NaN, 0 / 0: the task asks for zeros. Divide by 1 where l is 0.",
        concept="numerics",
        see="m07.lesson.causal",
        model=nan_for_empty,
        line=r"acc\w*\s*/",
    ),
    Mistake(
        cause="tail_dropped",
        message="Only whole tiles of tokens are used: those after the last multiple of BLOCK_N are lost.",
        concept="tiling",
        see="m07.lesson.flash",
        model=with_lengths(whole_tiles),
        line=r"//\s*BLOCK_N",
    ),
    Mistake(
        cause="first_tile_only",
        message="Only the first BLOCK_N tokens are used: nothing loops over the other tiles.",
        concept="tiling",
        see="m07.lesson.flash",
        model=with_lengths(lambda lengths, size: lengths.clamp_max(64)),
    ),
    Mistake(
        cause="missing_scale",
        message="The scores are not multiplied by 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=with_options(scale=1.0),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="wrong_exponent_base",
        message="exp2 of scores that were not multiplied by log2(e): the weights are powers of 2, not of e.",
        concept="numerics",
        see="m07.lesson.exp2",
        model=with_options(base=2.0),
        line=r"tl\.exp2\(",
    ),
    Mistake(
        cause="no_rescale",
        message="acc is not multiplied by alpha when the maximum grows: earlier tiles keep weights of an old maximum.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=in_tiles(rescale_acc=False, rescale_l=True),
        line=r"acc\s*(\+=|=).*tl\.dot|acc\s*=\s*tl\.dot",
    ),
    Mistake(
        cause="no_rescale_denominator",
        message="l is not multiplied by alpha when the maximum grows: it adds up terms of different maxima.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=in_tiles(rescale_acc=True, rescale_l=False),
        line=r"\bl\w*\s*(\+=|=).*tl\.sum",
    ),
    *(
        Mistake(
            cause="missing_batch_offset",
            message=f"Every sequence reads {' and '.join(names)} of sequence 0: the base pointer lacks batch * its stride.",
            concept="strides",
            see="m07.lesson.flash",
            model=first_sequence(names),
            line=rf"\b{names[0]}_ptr\s*\+(?!.*batch)|\b{names[0]}_ptr\s*$",
        )
        for names in ("q", "k", "v", "kv")
    ),
)
