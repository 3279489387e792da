import math

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 64  # BLOCK_M and BLOCK_N of the launcher the stub gives
LARGE = 2**18  # elements: such a mistake shows in a smaller case first, where its model is cheap
BFLOAT16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def work(q, k, v):
    B, H, N, D = q.shape
    pairs = N * (N + 1) // 2  # of a row and a key that it sees
    return Work(bytes=4 * q.numel() * q.element_size(), flops=4 * B * H * pairs * D)


def seen(N: int, device, shift: int = 0) -> torch.Tensor:
    """True where row i may see key j: j <= i + shift."""
    index = torch.arange(N, device=device)
    return index[None, :] <= index[:, None] + shift


def weights(q, k, allowed, scale=None):
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    scores = q.double() @ k.double().transpose(-1, -2) * scale
    return torch.softmax(scores.masked_fill(~allowed, -math.inf), dim=-1)


def output(q, k, v, allowed, scale=None):
    return (weights(q, k, allowed, scale) @ v.double()).to(q.dtype)


def magnitude(q, k, v):
    """Rounding p to the input's dtype moves the output by at most half an ulp of this."""
    return weights(q, k, seen(q.shape[2], q.device)) @ v.double().abs()


def shapes(B: int, H: int, N: int, D: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        return tuple(draw.normal(B, H, N, D, dtype=dtype) for _ in "qkv")

    name = f"B={B} H={H} N={N} D={D}"
    return Case(name if dtype == torch.float16 else f"{name} bfloat16", make, **options)


def heads_last(draw: Draw):
    """[B, N, H, D] as a projection leaves it, seen as [B, H, N, D]."""
    return tuple(draw.normal(1, 100, 2, 64, dtype=torch.float16).transpose(1, 2) for _ in "qkv")


def own_strides(draw: Draw):
    """Every stride of q, k and v is another: no tensor can be read with those of another one."""
    q = draw.normal(2, 2, 70, 3 * 32, dtype=torch.float16)[..., ::3]
    k = draw.normal(2, 2, 70, 2 * 32, dtype=torch.float16)[..., ::2]
    return q, k, draw.normal(2, 2, 32, 70, dtype=torch.float16).transpose(-1, -2)


def all_scores(sign: float):
    def make(draw: Draw):
        q = draw.normal(1, 1, 70, 64, scale=0.1) + 8
        k = draw.normal(1, 1, 70, 64, scale=0.1) + 8
        return q.half(), (sign * k).half(), draw.normal(1, 1, 70, 64, dtype=torch.float16)

    return make


def falling(draw: Draw):
    """The first tile has scores near +500, the others near -500: the maximum must be a running one."""
    q = draw.normal(1, 1, 150, 64, scale=0.1) + 8
    k = draw.normal(1, 1, 150, 64, scale=0.1) + 8
    k[:, :, 128:] -= 16
    return q.half(), k.half(), draw.normal(1, 1, 150, 64, dtype=torch.float16)


def large_values(draw: Draw):
    """Equal scores and v near 1000: before the division acc passes float16's 65504."""
    q, k = draw.full(1, 1, 150, 32, value=0.0, dtype=torch.float16), draw.normal(1, 1, 150, 32, dtype=torch.float16)
    return q, k, draw.uniform(1, 1, 150, 32, low=900.0, high=1000.0, dtype=torch.float16)


def growing(draw: Draw):
    """Every tile raises the maximum: scores climb with the key's index."""
    q = draw.uniform(1, 1, 150, 32, low=0.5, high=1.0)
    k = draw.uniform(1, 1, 150, 32) + torch.arange(150, device=draw.device)[:, None] / 40
    return q.half(), k.half(), draw.normal(1, 1, 150, 32, dtype=torch.float16)


def without_mask(q, k, v):
    return output(q, k, v, torch.ones_like(seen(q.shape[2], q.device)))


def filled_up(q, k, v):
    """k and v with the zeros that a masked load puts behind row N - 1, and the indices of rows and keys."""
    missing = -k.shape[2] % BLOCK
    k, v = (torch.nn.functional.pad(t, (0, 0, 0, missing)) for t in (k, v))
    rows, keys = (torch.arange(n, device=q.device) for n in (q.shape[2], k.shape[2]))
    return k, v, rows[:, None], keys[None, :]


def own_key_hidden(q, k, v):
    return output(q, k, v, seen(q.shape[2], q.device, -1))


def next_key_seen(q, k, v):
    """The last row sees a key that does not exist: zeros, if its tile has room for them."""
    k, v, rows, keys = filled_up(q, k, v)
    return output(q, k, v, keys <= rows + 1)


def reversed_mask(q, k, v):
    return output(q, k, v, seen(q.shape[2], q.device).T)


def reversed_mask_and_padding(q, k, v):
    """Where keys point the other way, the causal mask no longer covers the keys past N."""
    k, v, rows, keys = filled_up(q, k, v)
    return output(q, k, v, keys >= rows)


def diagonal_tile_skipped(q, k, v):
    """The loop stops where the row tile begins: rows of tile 0 see nothing and divide 0 by 0."""
    rows = torch.arange(q.shape[2], device=q.device)
    return output(q, k, v, rows[None, :] < (rows // BLOCK * BLOCK)[:, None])


def in_visited_tiles(allowed):
    """What rows see when the loop still ends with the tile that the diagonal crosses."""

    def model(q, k, v):
        N = q.shape[2]
        k, v, rows, keys = filled_up(q, k, v)
        return output(q, k, v, allowed(rows, keys, N) & (keys < (rows // BLOCK + 1) * BLOCK))

    return model


def padding_counted(q, k, v):
    """No mask at all: every key of every tile counts, the zeros behind row N - 1 too."""
    k, v, rows, keys = filled_up(q, k, v)
    return output(q, k, v, keys >= 0 * rows)


def masked_scores_are_zero(q, k, v):
    """A score of 0 for the keys that a row may not see, up to the end of the tile that the diagonal crosses."""
    k, v, rows, keys = filled_up(q, k, v)
    scores = q.double() @ k.double().transpose(-1, -2) * q.shape[-1] ** -0.5
    scores = scores.masked_fill(keys > rows, 0.0).masked_fill(keys >= (rows // BLOCK + 1) * BLOCK, -math.inf)
    return (torch.softmax(scores, dim=-1) @ v.double()).to(q.dtype)


def key_index_within_tile(q, k, v):
    """The mask compares the place within the tile, 0 to BLOCK - 1, with the row."""
    if q.shape[2] <= BLOCK:
        return None
    k, v, rows, keys = filled_up(q, k, v)
    return output(q, k, v, (keys % BLOCK <= rows) & (keys < (rows // BLOCK + 1) * BLOCK))


def diagonal_tile_only(q, k, v):
    if q.shape[2] <= BLOCK:
        return None
    rows = torch.arange(q.shape[2], device=q.device)[:, None]
    return output(q, k, v, seen(q.shape[2], q.device) & (rows // BLOCK * BLOCK <= rows.T))


def without_scale(q, k, v):
    return output(q, k, v, seen(q.shape[2], q.device), scale=1.0)


def without_maximum(q, k, v):
    scores = q.float() @ k.float().transpose(-1, -2) * q.shape[-1] ** -0.5
    p = torch.exp(scores.masked_fill(~seen(q.shape[2], q.device), -math.inf))
    return ((p.to(v.dtype).float() @ v.float()) / p.sum(-1, keepdim=True)).to(q.dtype)


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
    N, D = q.shape[2:]
    scores = q.float() @ k.float().transpose(-1, -2) * D**-0.5
    scores = scores.masked_fill(~seen(N, q.device), -math.inf)
    m = scores.new_full((*q.shape[:-1], 1), start)
    total = torch.zeros_like(m)
    acc = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    rows = torch.arange(N, device=q.device)[:, None]
    for first in range(0, N, BLOCK):
        s = scores[..., first : first + BLOCK]
        m_new = torch.maximum(m, s.amax(-1, keepdim=True)) if running else s.amax(-1, keepdim=True)
        alpha = torch.exp(m - m_new)
        p = torch.exp(s - m_new)
        sums = (total * alpha if rescale_l else total) + p.sum(-1, keepdim=True)
        tile = p.to(v.dtype).float() @ v[..., first : first + BLOCK, :].float()
        product = (acc * alpha if rescale_acc else acc) + tile
        product = product / sums if divide_each else product
        product = product.half().float() if half else product
        visited = rows >= first  # programs of earlier rows stop before this tile
        m, total, acc = (torch.where(visited, *pair) for pair in ((m_new, m), (sums, total), (product, acc)))
    return (acc / total if divide and not divide_each else acc).to(q.dtype)


def of_others(q, k, v):
    return output(q, k, v, seen(q.shape[2], q.device))


def same_tile_again(*names):
    """Every turn takes the first tile of k or v (or both), under the mask of the tile it should take."""

    def model(q, k, v):
        if k.shape[2] <= BLOCK or k.numel() > LARGE:
            return None
        first = torch.arange(k.shape[2], device=k.device) % BLOCK
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


PROBLEM = Problem(
    slug="causal_attention",
    title="Causal flash attention",
    entry="causal_attention",
    parameters=("q", "k", "v"),
    reference=reference,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        shapes(2, 1, 65, 64),  # two tiles, the second of one key: most mistakes show in their own way
        shapes(1, 1, 16, 32),
        shapes(1, 1, 1, 32),
        shapes(1, 1, 63, 64),
        shapes(1, 1, 64, 32),
        shapes(1, 2, 129, 128),
        shapes(1, 1, 200, 32),
        Case("heads last in memory, N=100", heads_last),
        Case("q and k sliced, v transposed, N=70", own_strides),
        Case("all scores near +500, N=70", all_scores(+1.0)),
        Case("all scores near -500, N=70", all_scores(-1.0)),
        Case("scores fall from +500 to -500, N=150", falling),
        Case("sums past 65504, N=150", large_values),
        Case("the maximum grows in every tile, N=150", growing),
        shapes(1, 1, 0, 32),
        shapes(1, 2, 193, 64, torch.bfloat16, needs_gpu=BFLOAT16),
        shapes(2, 3, 1537, 128, needs_gpu="too many tiles for the interpreter"),
    ),
    timing=Timing(
        "B=4 H=16 N=4096 D=128 float16",
        lambda draw: tuple(draw.normal(4, 16, 4096, 128, dtype=torch.float16) for _ in "qkv"),
        limit="compute",
        fair=0.3,
        fast=0.5,
    ),
    mistakes=(
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
    ),
    hints=(
        "Draw the scores of N = 6 in tiles of 2 x 2. Which tiles are full, which does the diagonal cross, which are empty?",
        "Stop the loop at min(N, (pid_m + 1) * BLOCK_M). In it, set the score to -inf where the key exceeds the row.",
        "stop = tl.minimum((pid_m + 1) * BLOCK_M, N); for first in range(0, stop, BLOCK_N): keys = first + offs_n; …; "
        "s = tl.where(keys[None, :] <= offs_m[:, None], s, float('-inf'))",
    ),
)
