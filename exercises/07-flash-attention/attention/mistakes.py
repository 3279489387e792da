"""What the output would be if a mistake had been made, and the mistakes by name."""

import math

import torch

from grader.problem import Mistake

BLOCK_N = 64  # of the launcher the stub gives: mistakes of the running sums depend on where a tile ends
LARGE = 2**18  # elements: such a mistake shows in a smaller case first, where its model is cheap


def weights(q, k, scale=None, base=math.e):
    """softmax(q k^T * scale) in float64; `base` is what the scores are exponents of."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q.double() @ k.double().transpose(-1, -2) * scale
    return torch.softmax(scores * math.log(base), dim=-1)


def in_tiles(
    q,
    k,
    v,
    *,
    rescale_l=True,
    rescale_acc=True,
    divide_each=False,
    divide=True,
    running=True,
    half=False,
    start=-math.inf,
):
    """The kernel's loop in PyTorch, with one of its steps left out."""
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    m = scores.new_full((*q.shape[:-1], 1), start)
    total = torch.zeros_like(m)
    acc = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    for first in range(0, k.shape[2], BLOCK_N):
        s = scores[..., first : first + BLOCK_N]
        m_new = torch.maximum(m, s.amax(-1, keepdim=True)) if running else s.amax(-1, keepdim=True)
        alpha = torch.exp(m - m_new)
        p = torch.exp(s - m_new)
        total = (total * alpha if rescale_l else total) + p.sum(-1, keepdim=True)
        acc = (acc * alpha if rescale_acc else acc) + p.to(v.dtype).float() @ v[..., first : first + BLOCK_N, :].float()
        acc = acc / total if divide_each else acc
        acc = acc.half().float() if half else acc
        m = m_new
    return (acc / total if divide and not divide_each else acc).to(q.dtype)


def without_maximum(q, k, v):
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    p = torch.exp(scores)
    return ((p.to(v.dtype).float() @ v.float()) / p.sum(-1, keepdim=True)).to(q.dtype)


def scaled_by(factor):
    return lambda q, k, v: (weights(q, k, scale=factor(q.shape[-1])) @ v.double()).to(q.dtype)


def padding_counts(q, k, v):
    """Keys past N_k were loaded as zeros and joined the softmax with score 0."""
    missing = -k.shape[2] % BLOCK_N
    k, v = (torch.nn.functional.pad(t, (0, 0, 0, missing)) for t in (k, v))
    return (weights(q, k) @ v.double()).to(q.dtype)


def first_tile_only(q, k, v):
    k, v = k[..., :BLOCK_N, :], v[..., :BLOCK_N, :]
    return (weights(q, k) @ v.double()).to(q.dtype)


def whole_tiles_only(q, k, v):
    whole = k.shape[2] // BLOCK_N * BLOCK_N
    if whole in (0, k.shape[2]):
        return None
    return (weights(q, k[..., :whole, :]) @ v[..., :whole, :].double()).to(q.dtype)


def as_many_keys_as_queries(q, k, v):
    N_q = q.shape[2]
    if not 0 < N_q < k.shape[2]:
        return None
    return (weights(q, k[..., :N_q, :]) @ v[..., :N_q, :].double()).to(q.dtype)


def base_two(q, k, v):
    return (weights(q, k, base=2.0) @ v.double()).to(q.dtype)


def of_others(q, k, v):
    return (weights(q, k) @ v.double()).to(q.dtype)


def same_tile_again(*names):
    """Every turn takes the first tile of k or v (or both), under the mask of the tile it should take."""

    def model(q, k, v):
        if k.shape[2] <= BLOCK_N or k.numel() > LARGE:
            return None
        first = torch.arange(k.shape[2], device=k.device) % BLOCK_N
        return of_others(q, *(t[:, :, first] if name in names else t for name, t in (("k", k), ("v", v))))

    return model


def first_only(dimension: int, *names: str):
    """The offset of the batch (0) or head (1) is left out for these tensors."""

    def model(*tensors):
        if tensors[0].shape[dimension] == 1 or tensors[0].numel() > LARGE:
            return None
        chosen = zip("qkv", tensors, strict=True)
        return of_others(*(t.narrow(dimension, 0, 1).expand_as(t) if name in names else t for name, t in chosen))

    return model


def read_side_by_side(*names: str):
    """The last dimension of these tensors is taken for contiguous: element d lies d elements from its row's start."""

    def model(*tensors):
        if tensors[0].numel() > LARGE:
            return None
        seen_as = [
            t.as_strided(t.shape, (*t.stride()[:-1], 1)).clone() if name in names else t
            for name, t in zip("qkv", tensors, strict=True)
        ]
        return of_others(*seen_as)  # contiguous inputs come out right: where they do not, it is another mistake

    return model


def k_not_transposed(q, k, v):
    """The strides of k's rows and columns are exchanged: it is read as its own transpose."""
    return of_others(q, k.transpose(-1, -2), v) if k.shape[-1] == k.shape[-2] > 1 else None


def first_64_dimensions(q, k, v):
    """D is taken for 64: scores and output of the first 64 elements of a longer head, poison in the others."""
    D = q.shape[-1]
    if D <= 64 or q.numel() > LARGE:
        return None
    out = torch.full(q.shape, float("nan"), dtype=q.dtype, device=q.device)
    out[..., :64] = (weights(q[..., :64], k[..., :64], scale=D**-0.5) @ v[..., :64].double()).to(q.dtype)
    return out


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
        cause="no_rescale",
        message="Neither l nor acc is multiplied by alpha when the maximum grows.",
        concept="online softmax",
        see="m07.walk.rescale",
        model=lambda q, k, v: in_tiles(q, k, v, rescale_l=False, rescale_acc=False),
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
        cause="normalised_inside_loop",
        message="acc is divided by l in every iteration: the next tile is added to a sum that is already normalised.",
        concept="online softmax",
        see="m07.lesson.flash",
        model=lambda q, k, v: in_tiles(q, k, v, divide_each=True),
        line=r"acc\s*(/=|=\s*acc\s*/)",
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
    Mistake(
        cause="missing_scale",
        message="The scores are not multiplied by 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=scaled_by(lambda D: 1.0),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="wrong_scale",
        message="The scores are multiplied by 1 / D; the scale is 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=scaled_by(lambda D: 1.0 / D),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="wrong_exponent_base",
        message="exp2 of scores that were not multiplied by log2(e): the weights are powers of 2, not of e.",
        concept="numerics",
        see="m07.lesson.exp2",
        model=base_two,
        line=r"tl\.exp2\(",
    ),
    Mistake(
        cause="padded_keys_counted",
        message="Keys past N_k join the softmax: their rows are loaded as 0, so they have score 0, not -inf.",
        concept="masking",
        see="m07.bug.padding",
        model=padding_counts,
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="first_tile_only",
        message="Only the first BLOCK_N keys are used: nothing loops over the other tiles.",
        concept="tiling",
        see="m07.lesson.flash",
        model=first_tile_only,
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
        cause="wrong_scale",
        message="The scores are multiplied by sqrt(D); the scale is 1 / sqrt(D).",
        concept="attention",
        see="m07.lesson.attention",
        model=scaled_by(lambda D: D**0.5),
        line=r"=\s*tl\.dot\(q",
    ),
    Mistake(
        cause="tail_dropped",
        message="Only whole tiles of keys are used: the keys after the last multiple of BLOCK_N are lost.",
        concept="tiling",
        see="m07.lesson.flash",
        model=whole_tiles_only,
        line=r"//\s*BLOCK_N",
    ),
    Mistake(
        cause="queries_counted_for_keys",
        message="Only the first N_q keys are used: the loop and the mask of the keys run to N_k.",
        concept="tiling",
        see="m07.lesson.flash",
        model=as_many_keys_as_queries,
    ),
)
