"""The mistakes by name, each with the model of its output."""

import math

from grader.problem import Mistake

from .models import (
    diagonal_tile_only,
    diagonal_tile_skipped,
    first_64_dimensions,
    first_only,
    in_tiles,
    in_visited_tiles,
    k_not_transposed,
    key_index_within_tile,
    masked_scores_are_zero,
    next_key_seen,
    output,
    own_key_hidden,
    padding_counted,
    read_side_by_side,
    reversed_in_diagonal_tile,
    reversed_mask,
    reversed_mask_and_padding,
    same_tile_again,
    seen,
    without_mask,
    without_maximum,
    without_scale,
)


def without_an_offset(dimension: int, word: str) -> tuple[Mistake, ...]:
    return tuple(
        Mistake(
            cause=f"missing_{word}_offset",
            message=f"Every {word} reads {' and '.join(names)} of {word} 0: the base pointer lacks {word} * its stride.",
            concept="strides",
            see="m07.lesson.flash",
            model=first_only(dimension, *names),
            line=rf"\b{names[0]}_ptr\s*\+(?!.*{word})|\b{names[0]}_ptr\s*$",
        )
        for names in (("q",), ("k",), ("v",), ("k", "v"), ("q", "k", "v"))
    )


MISTAKES = (
    Mistake(
        cause="missing_causal_mask",
        message="Every row sees every key: scores of keys after the row's own index are not set to -inf.",
        concept="masking",
        see="m07.lesson.causal",
        model=without_mask,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="causal_off_by_one",
        message="A row does not see its own key: key < row, where the task says key <= row. Row 0 sees nothing.",
        concept="masking",
        see="m07.lesson.causal",
        model=own_key_hidden,
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="causal_off_by_one",
        message="A row sees one key too many, the one after its own.",
        concept="masking",
        see="m07.lesson.causal",
        model=next_key_seen,
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="causal_mask_reversed",
        message="Rows see the keys from their own on, not up to their own: the comparison points the wrong way.",
        concept="masking",
        see="m07.lesson.causal",
        model=reversed_mask,
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="causal_mask_reversed",
        message="Rows see the keys from their own on, not up to their own: the comparison points the wrong way.",
        concept="masking",
        see="m07.lesson.causal",
        model=reversed_mask_and_padding,
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="diagonal_tile_skipped",
        message="The loop ends before the tile that the diagonal crosses: its bound is the tile's first row, not its last.",
        concept="masking",
        see="m07.lesson.causal",
        model=diagonal_tile_skipped,
        line=r"for .* in (tl\.)?range\(",
    ),
    Mistake(
        cause="no_rescale",
        message="acc is not multiplied by alpha when the maximum grows: earlier tiles keep weights of an old maximum.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_acc=False),
        line=r"acc\s*(\+=|=).*tl\.dot|acc\s*=\s*tl\.dot",
    ),
    Mistake(
        cause="no_rescale_denominator",
        message="l is not multiplied by alpha when the maximum grows: it adds up terms of different maxima.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_l=False),
        line=r"\bl\w*\s*(\+=|=).*tl\.sum",
    ),
    Mistake(
        cause="max_starts_at_zero",
        message="The running maximum starts at 0, or above the scores: where all of them are far below, each exp underflows, l stays 0.",
        concept="online softmax",
        see="m07.lesson.online",
        model=lambda q, k, v: in_tiles(q, k, v, start=0.0),
        line=r"\bm\w*\s*=\s*tl\.(zeros|full\(.*,\s*0)",
    ),
    Mistake(
        cause="missing_scale",
        message="The scores are not multiplied by 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=without_scale,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="missing_causal_mask",
        message="No score is masked: every row sees every key, and the zeros behind the last one as well.",
        concept="masking",
        see="m07.lesson.causal",
        model=padding_counted,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="missing_causal_mask",
        message="Within its tiles every row sees every key: scores after the row's own index are not set to -inf.",
        concept="masking",
        see="m07.lesson.causal",
        model=in_visited_tiles(lambda rows, keys, N: (keys < N) & (rows >= 0)),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="missing_causal_mask",
        message="No score is masked: within its tiles every row sees every key, and the zeros behind the last one.",
        concept="masking",
        see="m07.lesson.causal",
        model=in_visited_tiles(lambda rows, keys, N: keys >= 0 * rows),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="causal_off_by_one",
        message="A row sees one key too many, the one after its own.",
        concept="masking",
        see="m07.lesson.causal",
        model=in_visited_tiles(lambda rows, keys, N: keys <= rows + 1),
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="causal_mask_reversed",
        message="Rows see the keys from their own on, not up to their own: the comparison points the wrong way.",
        concept="masking",
        see="m07.lesson.causal",
        model=in_visited_tiles(lambda rows, keys, N: keys >= rows),
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="masked_scores_are_zero",
        message="Keys that a row may not see have score 0, and so weight exp(0 - m): the fill must be -inf.",
        concept="masking",
        see="m07.lesson.causal",
        model=masked_scores_are_zero,
        line=r"tl\.where\(.*,\s*0|tl\.dot\(q.*\*",
    ),
    Mistake(
        cause="key_index_within_tile",
        message="The mask compares a key's place within its tile with the row: add the tile's first key.",
        concept="masking",
        see="m07.lesson.causal",
        model=key_index_within_tile,
        line=r"tl\.where\(.*[<>]",
    ),
    Mistake(
        cause="diagonal_tile_only",
        message="Only the tile that the diagonal crosses is used: the loop must begin at key 0.",
        concept="tiling",
        see="m07.lesson.causal",
        model=diagonal_tile_only,
        line=r"for .* in (tl\.)?range\(",
    ),
    Mistake(
        cause="low_precision_accumulator",
        message="acc is rounded to float16 on the way, and overflows past 65504. Keep it in float32 and cast once.",
        concept="numerics",
        see="m06.lesson.precision",
        model=lambda q, k, v: in_tiles(q, k, v, half=True) if bool((v.abs() > 100).any()) else None,
        line=r"acc.*tl\.float16",
    ),
    Mistake(
        cause="missing_denominator",
        message="acc is stored without the division by l.",
        concept="online softmax",
        see="m07.lesson.flash",
        model=lambda q, k, v: in_tiles(q, k, v, divide=False),
    ),
    Mistake(
        cause="same_tile_again",
        message="Every turn takes the first tile of k and v: their addresses must move with the loop.",
        concept="tiling",
        see="m07.lesson.flash",
        model=same_tile_again("k", "v"),
    ),
    Mistake(
        cause="same_tile_again",
        message="Every turn takes the first tile of k: its addresses must move with the loop.",
        concept="tiling",
        see="m07.lesson.flash",
        model=same_tile_again("k"),
    ),
    Mistake(
        cause="same_tile_again",
        message="Every turn takes the first tile of v: its addresses must move with the loop.",
        concept="tiling",
        see="m07.lesson.flash",
        model=same_tile_again("v"),
    ),
    *(
        Mistake(
            cause="causal_mask_reversed",
            message="In the tile that the diagonal crosses, rows see the keys from their own on, not up to their own: the "
            "comparison points the wrong way.",
            concept="masking",
            see="m07.lesson.causal",
            model=reversed_in_diagonal_tile(end),
            line=r"tl\.where\(.*[<>]",
        )
        for end in (lambda keys, N: keys + 1, lambda keys, N: N)  # with the zeros behind the last key, or without
    ),
    *(
        Mistake(
            cause="assumes_contiguous",
            message=f"The last dimension of {' and '.join(names)} is read as if its elements lay side by side: element d lies "
            "d * stride from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=read_side_by_side(*names),
            line=rf"\b{names[0]}_(?:ptr|base)\s*\+(?!.*stride_{names[0]}d).*offs_d",
        )
        for names in (("q",), ("k",), ("v",), ("k", "v"), ("q", "k", "v"))
    ),
    Mistake(
        cause="swapped_axes",
        message="k is read as its own transpose: in its pointers, keys belong to the stride of N and the head's elements to that "
        "of D.",
        concept="strides",
        see="m03.lesson.tiles",
        model=k_not_transposed,
        line=r"\bk_(?:ptr|base)\s*\+.*\[",
    ),
    Mistake(
        cause="head_dimension_hard_coded",
        message="The head dimension is taken for 64: only the first 64 elements are right for a larger D, and a smaller one is "
        "overrun. Take D from the shape of q.",
        concept="tiling",
        see="m07.lesson.flash",
        model=first_64_dimensions,
        line=r"\bD\s*=\s*64|tl\.arange\(0, 64\)",
    ),
    *without_an_offset(0, "batch"),
    *without_an_offset(1, "head"),
    Mistake(
        cause="no_rescale",
        message="Neither l nor acc is multiplied by alpha when the maximum grows.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_l=False, rescale_acc=False),
    ),
    Mistake(
        cause="normalised_inside_loop",
        message="acc is divided by l in every iteration: the next tile is added to a sum that is already normalised.",
        concept="online softmax",
        see="m07.lesson.flash",
        model=lambda q, k, v: in_tiles(q, k, v, divide_each=True),
        line=r"acc\s*(/=|=\s*acc\s*/)",
    ),
    Mistake(
        cause="wrong_scale",
        message="The scores are multiplied by 1 / D; the scale is 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=lambda q, k, v: output(q, k, v, seen(q.shape[2], q.device), scale=1.0 / q.shape[-1]),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="wrong_scale",
        message="The scores are multiplied by sqrt(D); the scale is 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=lambda q, k, v: output(q, k, v, seen(q.shape[2], q.device), scale=q.shape[-1] ** 0.5),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="wrong_exponent_base",
        message="exp2 of scores that were not multiplied by log2(e): the weights are powers of 2, not of e.",
        concept="numerics",
        see="m07.lesson.exp2",
        model=lambda q, k, v: output(q, k, v, seen(q.shape[2], q.device), scale=q.shape[-1] ** -0.5 * math.log(2)),
        line=r"tl\.exp2\(",
    ),
    Mistake(
        cause="max_not_running",
        message="Each tile is taken against its own maximum only: where a later tile lies far below, alpha overflows to inf. "
        "The new maximum is tl.maximum of the old one and the tile's.",
        concept="online softmax",
        see="m07.lesson.online",
        model=lambda q, k, v: in_tiles(q, k, v, running=False),
        line=r"m_new\s*=",
    ),
    Mistake(
        cause="missing_max_subtraction",
        message="exp is taken of the raw scores: large ones overflow to inf. Subtract the running maximum first.",
        concept="numerics",
        see="m04.lesson.softmax",
        model=without_maximum,
        line=r"tl\.exp2?\(",
    ),
)
