import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES, weights

BFLOAT16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


def work(q, k, v):
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    elements = 2 * q.numel() + k.numel() + v.numel()
    return Work(bytes=elements * q.element_size(), flops=4 * B * H * N_q * N_k * D)


def magnitude(q, k, v):
    """Rounding p to the input's dtype moves the output by at most half an ulp of this."""
    return weights(q, k) @ v.double().abs()


def shapes(B: int, H: int, N_q: int, N_k: int, D: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        return tuple(draw.normal(B, H, N, D, dtype=dtype) for N in (N_q, N_k, N_k))

    name = f"B={B} H={H} N_q={N_q} N_k={N_k} D={D}"
    return Case(name if dtype == torch.float16 else f"{name} bfloat16", make, **options)


def heads_last(draw: Draw):
    """[B, N, H, D] as a projection leaves it, seen as [B, H, N, D]."""
    return tuple(draw.normal(1, N, 2, 64, dtype=torch.float16).transpose(1, 2) for N in (65, 100, 100))


def own_strides(draw: Draw):
    """Every stride of q, k and v is another: no tensor can be read with those of another one."""
    q = draw.normal(2, 2, 70, 3 * 32, dtype=torch.float16)[..., ::3]
    k = draw.normal(2, 2, 70, 2 * 32, dtype=torch.float16)[..., ::2]
    return q, k, draw.normal(2, 2, 32, 70, dtype=torch.float16).transpose(-1, -2)


def all_scores(sign: float):
    def make(draw: Draw):
        q = draw.normal(1, 1, 20, 64, dtype=torch.float32, scale=0.1) + 8
        k = draw.normal(1, 1, 150, 64, dtype=torch.float32, scale=0.1) + 8
        return q.half(), (sign * k).half(), draw.normal(1, 1, 150, 64, dtype=torch.float16)

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
    q = draw.uniform(1, 1, 33, 32, low=0.5, high=1.0)
    k = draw.uniform(1, 1, 200, 32) + torch.arange(200, device=draw.device)[:, None] / 40
    return q.half(), k.half(), draw.normal(1, 1, 200, 32, dtype=torch.float16)


def equal(draw: Draw):
    """One query for all rows: every row of the output is the same."""
    q = draw.normal(1, 1, 1, 32, dtype=torch.float16).expand(1, 1, 40, 32)
    k, v = (draw.normal(1, 1, 65, 32, dtype=torch.float16) for _ in "kv")
    return q, k, v


PROBLEM = Problem(
    slug="attention",
    title="Flash attention",
    entry="attention",
    parameters=("q", "k", "v"),
    reference=reference,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        shapes(1, 1, 63, 130, 32),  # two tiles and a bit: most mistakes show in their own way
        shapes(1, 1, 1, 1, 32),
        shapes(1, 1, 16, 16, 32),
        shapes(1, 1, 64, 64, 64),
        shapes(1, 1, 63, 65, 32),
        shapes(2, 1, 65, 193, 64),
        shapes(1, 1, 16, 389, 32),  # three whole tiles even of 128 keys, and a rest
        shapes(1, 2, 17, 100, 128),
        Case("heads last in memory, N_q=65 N_k=100", heads_last),
        Case("q and k sliced, v transposed, N=70", own_strides),
        Case("all scores near +500", all_scores(+1.0)),
        Case("all scores near -500", all_scores(-1.0)),
        Case("scores fall from +500 to -500, 150 x 150", falling),
        Case("sums past 65504, 150 x 150", large_values),
        Case("the maximum grows in every tile", growing),
        Case("one query repeated, stride 0", equal),
        shapes(1, 1, 0, 5, 32),
        shapes(1, 2, 130, 193, 64, torch.bfloat16, needs_gpu=BFLOAT16),
        shapes(2, 3, 1000, 1537, 128, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "B=4 H=16 N=4096 D=128 float16",
        lambda draw: tuple(draw.normal(4, 16, 4096, 128, dtype=torch.float16) for _ in range(3)),
        limit="compute",
        fair=0.35,
        fast=0.55,
    ),
    sizes=tuple(
        Timing(
            f"B={b} H=16 N={n} D={dim} float16",
            lambda draw, b=b, n=n, dim=dim: tuple(draw.normal(b, 16, n, dim, dtype=torch.float16) for _ in range(3)),
            limit="compute",
            fair=0.35,
            fast=0.55,
        )
        for b, n, dim in ((16, 1024, 64), (4, 4096, 64), (1, 16384, 64), (16, 1024, 128), (1, 16384, 128))
    ),
    mistakes=MISTAKES,
    hints=(
        "On paper, one row and two tiles: which of m, l, acc from tile 0 is wrong once tile 1 has a larger score?",
        "l and acc refer to the old maximum. Multiply both by alpha = exp(m_old - m_new), then add sum(p) and p @ v.",
        "s = tl.where(keys < N_k, tl.dot(q, k) * scale, -inf); m_new = max(m, max(s)); alpha = exp(m - m_new); "
        "p = exp(s - m_new); l = l * alpha + sum(p); acc = acc * alpha + dot(p.to(v.dtype), v); m = m_new. After the loop: acc / l.",
    ),
)
