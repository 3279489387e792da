import math

import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES
from .models import output, widened


def reference(q, k_cache, v_cache, lengths):
    return output(q, k_cache, v_cache, lengths).to(q.dtype)


def eager(q, k_cache, v_cache, lengths):
    """SDPA with a mask of the lengths, and the sharing of heads that it knows."""
    seen = torch.arange(k_cache.shape[1], device=q.device)[None, :] < lengths[:, None]
    k, v = k_cache.transpose(1, 2), v_cache.transpose(1, 2)
    attend = torch.nn.functional.scaled_dot_product_attention
    return attend(q[:, :, None], k, v, attn_mask=seen[:, None, None, :], enable_gqa=True)[:, :, 0]


def work(q, k_cache, v_cache, lengths):
    tokens, (B, H_q, D) = int(lengths.sum()), q.shape
    cached = 2 * tokens * k_cache.shape[2] * D
    return Work(bytes=(cached + 2 * q.numel()) * q.element_size() + 4 * B, flops=4 * tokens * H_q * D)


def magnitude(q, k_cache, v_cache, lengths):
    """Rounding p to 16 bits moves the output by at most half an ulp of this."""
    return output(q, k_cache, widened(v_cache).abs(), lengths)


def with_stale(cache, lengths):
    """NaN, inf and large numbers behind the last token of each sequence."""
    for b, length in enumerate(lengths.tolist()):
        cache[b, length::3] = math.nan
        cache[b, length + 1 :: 3] = math.inf
        cache[b, length + 2 :: 3] = 30000.0
    return cache


def caches(draw: Draw, lengths: tuple[int, ...], S: int, H_kv: int, G: int, D: int, stale: bool = True):
    B = len(lengths)
    tensor = torch.tensor(lengths, dtype=torch.int32, device=draw.device)
    q = draw.normal(B, H_kv * G, D, dtype=torch.float16)
    k, v = (draw.normal(B, S, H_kv, D, dtype=torch.float16) for _ in "kv")
    return (q, with_stale(k, tensor), with_stale(v, tensor), tensor) if stale else (q, k, v, tensor)


def case(lengths: tuple[int, ...], S: int, H_kv: int, G: int, D: int, stale: bool = True, **options) -> Case:
    name = f"lengths {', '.join(map(str, lengths))} of {S}, {H_kv * G} heads on {H_kv}, D={D}"
    name += "" if stale else ", old numbers behind"
    return Case(name, lambda draw: caches(draw, lengths, S, H_kv, G, D, stale), **options)


def heads_first(draw: Draw):
    """Caches that lie as [B, H_kv, S, D], lengths that are a column of a table, q a slice."""
    q = draw.normal(2, 4, 3, 32, dtype=torch.float16)[:, :, 1]
    k, v = (draw.normal(2, 2, 100, 32, dtype=torch.float16).transpose(1, 2) for _ in "kv")
    lengths = torch.tensor([[100, 7], [70, 7]], dtype=torch.int32, device=draw.device)[:, 0]
    return q, k, v, lengths


def growing(draw: Draw):
    """Every tile raises the maximum: scores climb with the token's place."""
    q, k, v, lengths = caches(draw, (200,), 200, 1, 4, 32, False)
    k = draw.uniform(1, 200, 1, 32) + torch.arange(200, device=draw.device)[:, None, None] / 40
    return draw.uniform(1, 4, 32, low=0.5, high=1.0).half(), k.half(), v, lengths


def very_negative(draw: Draw):
    """All scores near -500."""
    q, k, v, lengths = caches(draw, (70, 130), 130, 1, 4, 64, False)
    return (draw.normal(2, 4, 64, scale=0.1) + 8).half(), (draw.normal(2, 130, 1, 64, scale=0.1) - 8).half(), v, lengths


def served(draw: Draw):
    """A server's batch: 64 sequences of 2048 to 8192 tokens, 32 query heads on 8: about 1.3 GB of cache in use."""
    q = draw.normal(64, 32, 128, dtype=torch.float16)
    k, v = (draw.normal(64, 8192, 8, 128, dtype=torch.float16) for _ in "kv")
    return q, k, v, draw.integers(64, low=2048, high=8193)


PROBLEM = Problem(
    slug="decode_attention",
    title="Attention of one token with a KV cache",
    entry="decode_attention",
    parameters=("q", "k_cache", "v_cache", "lengths"),
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(ulps=2.0, terms=2.0, accumulate=torch.float16, scale=magnitude),
    cases=(
        case((65, 100), 130, 2, 4, 32, stale=False),
        case((1,), 1, 1, 1, 32),
        case((3, 20), 20, 1, 2, 32),
        case((64,), 64, 1, 4, 64),
        case((63, 65), 70, 2, 1, 32),
        case((0, 5), 40, 1, 4, 32),
        case((100, 129, 1), 193, 1, 7, 64),
        case((33, 70), 80, 2, 8, 128),
        Case("caches with heads first, q sliced", heads_first),
        Case("the maximum grows in every tile", growing),
        Case("all scores near -500", very_negative),
        case((2000, 513, 1), 2048, 4, 8, 128, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing("64 sequences of 2048 to 8192 tokens, 32 heads on 8, D=128", served, fair=0.5, fast=0.75),
    mistakes=MISTAKES,
    hints=(
        "Which query heads read key-value head h? If one program has them all, how often is the cache read?",
        "The G query rows are one [BLOCK_G, D] tile. Loop to the sequence's own length. Behind it the score is -inf, and v is "
        "loaded under the same mask: 0 * NaN is NaN.",
        "heads = kv_head * G + tl.arange(0, BLOCK_G), masked by tl.arange(0, BLOCK_G) < G; here = first + offs_n < length; "
        "s = tl.where(here[None, :], tl.dot(q, k) * scale, -inf)",
    ),
)
