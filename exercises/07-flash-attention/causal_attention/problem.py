import math

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 64  # BLOCK_M and BLOCK_N of the launcher the stub gives
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


def packed(draw: Draw):
    """q, k and v are slices of one tensor."""
    qkv = draw.normal(1, 1, 70, 3 * 32, dtype=torch.float16)
    return qkv[..., :32], qkv[..., 32:64], qkv[..., 64:]


def below_zero(draw: Draw):
    q = draw.normal(1, 1, 70, 64, scale=0.1) + 8
    k = draw.normal(1, 1, 70, 64, scale=0.1) - 8
    return q.half(), k.half(), draw.normal(1, 1, 70, 64, dtype=torch.float16)


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


def without_scale(q, k, v):
    return output(q, k, v, seen(q.shape[2], q.device), scale=1.0)


def in_tiles(q, k, v, *, rescale_l=True, rescale_acc=True, start=-math.inf):
    """The kernel's loop in PyTorch, with one of its steps left out."""
    N, D = q.shape[2:]
    scores = q.float() @ k.float().transpose(-1, -2) * D**-0.5
    scores = scores.masked_fill(~seen(N, q.device), -math.inf)
    m = scores.new_full((*q.shape[:-1], 1), start)
    total = torch.zeros_like(m)
    acc = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    for first in range(0, N, BLOCK):
        s = scores[..., first : first + BLOCK]
        m_new = torch.maximum(m, s.amax(-1, keepdim=True))
        alpha = torch.exp(m - m_new)
        p = torch.exp(s - m_new)
        total = (total * alpha if rescale_l else total) + p.sum(-1, keepdim=True)
        acc = (acc * alpha if rescale_acc else acc) + p.to(v.dtype).float() @ v[..., first : first + BLOCK, :].float()
        m = m_new
    return (acc / total).to(q.dtype)


PROBLEM = Problem(
    slug="causal_attention",
    title="Causal flash attention",
    entry="causal_attention",
    parameters=("q", "k", "v"),
    reference=reference,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        shapes(1, 1, 16, 32),
        shapes(1, 1, 1, 32),
        shapes(1, 1, 63, 64),
        shapes(1, 1, 64, 32),
        shapes(2, 1, 65, 64),
        shapes(1, 2, 129, 128),
        shapes(1, 1, 200, 32),
        Case("heads last in memory, N=100", heads_last),
        Case("slices of one tensor, N=70", packed),
        Case("all scores near -500, N=70", below_zero),
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
            message="The running maximum starts at 0: where all scores are far below 0, each exp underflows, l stays 0.",
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
    ),
    hints=(
        "Draw the scores of N = 6 in tiles of 2 x 2. Which tiles are full, which does the diagonal cross, which are empty?",
        "Stop the loop at min(N, (pid_m + 1) * BLOCK_M). In it, set the score to -inf where the key exceeds the row.",
        "stop = tl.minimum((pid_m + 1) * BLOCK_M, N); for first in range(0, stop, BLOCK_N): keys = first + offs_n; …; "
        "s = tl.where(keys[None, :] <= offs_m[:, None], s, float('-inf'))",
    ),
)
