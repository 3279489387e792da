import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES
from .models import outputs, rounded, scores, widened

BFLOAT16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(q, k, v):
    return rounded(q, *outputs(q, k, v))


def eager(q, k, v):
    """What SDPA calls on a GPU: it returns lse too, which no public call does. As many queries as keys."""
    return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)[:2]


def work(q, k, v):
    (B, H, N_q, D), N_k = q.shape, k.shape[2]
    rows = min(N_q, N_k)  # that see something: N_k - rows + 1 keys, one more each, up to N_k
    pairs = rows * (2 * N_k - rows + 1) // 2
    elements = 2 * q.numel() + k.numel() + v.numel()
    return Work(bytes=elements * q.element_size() + 4 * B * H * N_q, flops=4 * B * H * pairs * D)


def magnitude(q, k, v):
    """Of out: what rounding p to 16 bits moves. Of lse: float32's rounding of scores, in units of float16's."""
    out, lse = outputs(q, k, widened(v).abs())
    largest = scores(q, k).abs().amax(-1) + 1.0 if k.shape[2] else torch.ones_like(lse)
    return out, largest * (torch.finfo(torch.float32).eps / torch.finfo(torch.float16).eps) * 16


def shapes(B: int, H: int, N_q: int, N_k: int, D: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        return tuple(draw.normal(B, H, N, D, dtype=dtype) for N in (N_q, N_k, N_k))

    name = f"B={B} H={H} N_q={N_q} N_k={N_k} D={D}"
    return Case(name if dtype == torch.float16 else f"{name} bfloat16", make, **options)


def heads_last(draw: Draw):
    """[B, N, H, D] as a projection leaves it, seen as [B, H, N, D]."""
    return tuple(draw.normal(2, N, 2, 32, dtype=torch.float16).transpose(1, 2) for N in (33, 100, 100))


def own_strides(draw: Draw):
    q = draw.normal(1, 2, 70, 3 * 32, dtype=torch.float16)[..., ::3]
    k = draw.normal(1, 2, 70, 2 * 32, dtype=torch.float16)[..., ::2]
    return q, k, draw.normal(1, 2, 32, 70, dtype=torch.float16).transpose(-1, -2)


def all_scores(sign: float, N_q: int, N_k: int):
    def make(draw: Draw):
        q = draw.normal(1, 1, N_q, 64, scale=0.1) + 8
        k = draw.normal(1, 1, N_k, 64, scale=0.1) + 8
        return q.half(), (sign * k).half(), draw.normal(1, 1, N_k, 64, dtype=torch.float16)

    return make


def growing(draw: Draw):
    """Every tile raises the maximum: scores climb with the key's index."""
    q = draw.uniform(1, 1, 70, 32, low=0.5, high=1.0)
    k = draw.uniform(1, 1, 150, 32) + torch.arange(150, device=draw.device)[:, None] / 40
    return q.half(), k.half(), draw.normal(1, 1, 150, 32, dtype=torch.float16)


PROBLEM = Problem(
    slug="attention_lse",
    title="Attention with logsumexp",
    entry="attention_lse",
    parameters=("q", "k", "v"),
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        shapes(1, 1, 65, 130, 32),  # three tiles of keys, two of rows
        shapes(1, 1, 1, 1, 32),
        shapes(1, 1, 16, 16, 32),
        shapes(1, 1, 1, 100, 64),
        shapes(1, 1, 64, 64, 64),
        shapes(1, 1, 20, 7, 32),  # thirteen rows see nothing, in one tile with rows that do
        shapes(1, 2, 130, 60, 32),  # a whole tile of rows sees nothing
        shapes(1, 1, 63, 65, 128),
        Case("heads last in memory, N_q=33 N_k=100", heads_last),
        Case("q and k sliced, v transposed, N=70", own_strides),
        Case("scores near +500, N_q=70 N_k=66", all_scores(+1.0, 70, 66)),
        Case("scores near -500, N_q=66 N_k=70", all_scores(-1.0, 66, 70)),
        Case("the maximum grows in every tile, N_q=70 N_k=150", growing),
        shapes(1, 1, 0, 5, 32),
        shapes(1, 2, 130, 193, 64, torch.bfloat16, needs_gpu=BFLOAT16),
        shapes(2, 3, 1000, 900, 128, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "B=4 H=16 N=4096 D=128 float16",
        lambda draw: tuple(draw.normal(4, 16, 4096, 128, dtype=torch.float16) for _ in "qkv"),
        limit="compute",
        fair=0.3,
        fast=0.5,
    ),
    mistakes=MISTAKES,
    hints=(
        "N_q = 3 and N_k = 1: which row sees the key? What do m, l and alpha hold in the other two, step by step?",
        "A row that has seen nothing has m = -inf. Take 0 in its place inside the exponents: exp(-inf - 0) is 0, and l stays 0. "
        "At the end divide by 1 where l is 0, and let log(0) be -inf.",
        "safe = tl.where(m_new == -inf, 0.0, m_new); alpha = tl.exp(m - safe); p = tl.exp(s - safe[:, None]); … ; "
        "out = acc / tl.where(l == 0, 1.0, l)[:, None]; lse = m + tl.log(l)",
    ),
)
