import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES
from .models import seen, weights

BFLOAT16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def work(q, k, v):
    B, H, N, D = q.shape
    pairs = N * (N + 1) // 2  # of a row and a key that it sees
    return Work(bytes=4 * q.numel() * q.element_size(), flops=4 * B * H * pairs * D)


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
        shapes(1, 1, 64, 64),
        shapes(1, 2, 129, 128),
        shapes(1, 1, 200, 32),
        shapes(1, 1, 389, 32),  # several whole tiles below the diagonal, even of 128 keys
        Case("heads last in memory, N=100", heads_last),
        Case("q and k sliced, v transposed, N=70", own_strides),
        Case("all scores near +500, N=70", all_scores(+1.0)),
        Case("all scores near -500, N=70", all_scores(-1.0)),
        Case("scores fall from +500 to -500, N=150", falling),
        Case("sums past 65504, N=150", large_values),
        Case("the maximum grows in every tile, N=150", growing),
        shapes(1, 1, 0, 32),
        shapes(1, 2, 193, 64, torch.bfloat16, needs_gpu=BFLOAT16),
        shapes(2, 3, 1537, 128, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "B=4 H=16 N=4096 D=128 float16",
        lambda draw: tuple(draw.normal(4, 16, 4096, 128, dtype=torch.float16) for _ in "qkv"),
        limit="compute",
        fair=0.3,
        fast=0.5,
    ),
    sizes=tuple(
        Timing(
            f"B={b} H=16 N={n} D={dim} float16",
            lambda draw, b=b, n=n, dim=dim: tuple(draw.normal(b, 16, n, dim, dtype=torch.float16) for _ in "qkv"),
            limit="compute",
            fair=0.3,
            fast=0.5,
        )
        for b, n, dim in ((16, 1024, 64), (4, 4096, 64), (1, 16384, 64), (16, 1024, 128), (1, 16384, 128))
    ),
    mistakes=MISTAKES,
    hints=(
        "Draw the scores of N = 6 in tiles of 2 x 2. Which tiles are full, which does the diagonal cross, which are empty?",
        "Stop the loop at min(N, (pid_m + 1) * BLOCK_M). In it, set the score to -inf where the key exceeds the row.",
        "stop = tl.minimum((pid_m + 1) * BLOCK_M, N); for first in range(0, stop, BLOCK_N): keys = first + offs_n; …; "
        "s = tl.where(keys[None, :] <= offs_m[:, None], s, float('-inf'))",
    ),
)
