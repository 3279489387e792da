"""The output as PyTorch computes it, and what it would be if a mistake had been made."""

import math

import torch

BLOCK_N = 64  # of the launcher the stub gives


def widened(x):
    """At least float32: what the kernel computes in."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def repeated(cache, heads: int, of_head=None):
    """[B, S, H_kv, D] as [B, H_q, S, D]: each query head with its key-value head, by default head // G."""
    groups = heads // cache.shape[2]
    head = torch.arange(heads, device=cache.device)
    chosen = head // groups if of_head is None else of_head(head, groups, cache.shape[2])
    return widened(cache).transpose(1, 2)[:, chosen]


def real(k_cache, lengths):
    """True where a token of the cache belongs to its sequence: [B, 1, S]."""
    place = torch.arange(k_cache.shape[1], device=k_cache.device)
    return (place[None, :] < lengths.long()[:, None])[:, None, :]


def output(q, k_cache, v_cache, lengths, *, scale=None, of_head=None, allowed=None, base=math.e):
    """softmax(q k^T * scale) v over the tokens that exist; zeros where there are none."""
    allowed = real(k_cache, lengths) if allowed is None else allowed
    k, v = (repeated(cache, q.shape[1], of_head) for cache in (k_cache, v_cache))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = torch.einsum("bhd,bhsd->bhs", widened(q), k) * (scale * math.log(base))
    s = s.masked_fill(~allowed, -math.inf)
    m = s.amax(-1, keepdim=True) if s.shape[-1] else s.new_zeros(*s.shape[:-1], 1)
    p = torch.exp(s - m.masked_fill(m == -math.inf, 0.0))
    total = p.sum(-1, keepdim=True)
    v = v.masked_fill(~allowed[..., None], 0.0)  # 0 * NaN is NaN
    return torch.einsum("bhs,bhsd->bhd", p / total.masked_fill(total == 0, 1.0), v)


def with_options(**options):
    return lambda q, k, v, lengths: output(q, k, v, lengths, **options).to(q.dtype)


def with_lengths(change):
    """The output if `change(lengths, S_max)` were the lengths; None where that is the same or does not fit."""

    def model(q, k, v, lengths):
        other = change(lengths.long(), k.shape[1])
        same = torch.equal(other, lengths.long())
        return None if same or int(other.max()) > k.shape[1] else output(q, k, v, other).to(q.dtype)

    return model


def whole_tiles(lengths, size):
    return lengths // BLOCK_N * BLOCK_N


def stale_values_times_zero(q, k, v, lengths):
    """Keys are masked, values are not: weight 0 times a stale inf or NaN is NaN, in the columns that hold one."""
    out = output(q, k, v, lengths)
    place = torch.arange(k.shape[1], device=k.device)[None, :]
    visited = place < (lengths.long()[:, None] + BLOCK_N - 1) // BLOCK_N * BLOCK_N
    stale = visited & ~(place < lengths.long()[:, None])
    values = repeated(v, q.shape[1])
    bad = (~values.isfinite() & stale[:, None, :, None]).any(2)
    return out.masked_fill(bad, math.nan).to(q.dtype) if bool(bad.any()) else None


def zeros_counted(q, k, v, lengths):
    """Masked loads give zeros, and their score 0 joins the softmax, up to the end of the last tile."""
    lengths = lengths.long()
    room = -(-k.shape[1] // BLOCK_N) * BLOCK_N
    k, v = (torch.nn.functional.pad(cache, (0, 0, 0, 0, 0, room - cache.shape[1])) for cache in (k, v))
    allowed = real(k, lengths)
    k, v = (cache.masked_fill(~allowed[:, 0, :, None, None], 0.0) for cache in (k, v))
    return output(q, k, v, lengths, allowed=real(k, -(-lengths // BLOCK_N) * BLOCK_N)).to(q.dtype)


def nan_for_empty(q, k, v, lengths):
    out = output(q, k, v, lengths).to(q.dtype)
    empty = lengths == 0
    return out.masked_fill(empty[:, None, None], math.nan) if bool(empty.any()) else None


def in_tiles(rescale_acc: bool, rescale_l: bool):
    """The loop over the tokens with a step left out."""

    def model(q, k, v, lengths):
        allowed = real(k, lengths)
        keys, values = repeated(k, q.shape[1]), repeated(v, q.shape[1]).masked_fill(~allowed[..., None], 0.0)
        s = torch.einsum("bhd,bhsd->bhs", widened(q), keys) * q.shape[-1] ** -0.5
        s = s.masked_fill(~allowed, -math.inf)
        m = s.new_full((*s.shape[:-1], 1), -math.inf)
        total, acc = torch.zeros_like(m), torch.zeros_like(widened(q))
        for first in range(0, k.shape[1], BLOCK_N):
            tile = s[..., first : first + BLOCK_N]
            m_new = torch.maximum(m, tile.amax(-1, keepdim=True))
            shift = m_new.masked_fill(m_new == -math.inf, 0.0)
            alpha, p = torch.exp(m - shift), torch.exp(tile - shift)
            total = (total * alpha if rescale_l else total) + p.sum(-1, keepdim=True)
            here = torch.einsum("bhs,bhsd->bhd", p, values[:, :, first : first + BLOCK_N])
            acc = (acc * alpha if rescale_acc else acc) + here
            m = m_new
        return (acc / total.masked_fill(total == 0, 1.0)).to(q.dtype)

    return model


def first_sequence(names: str):
    """Every sequence reads q, k or v of sequence 0."""

    def model(q, k, v, lengths):
        if q.shape[0] < 2:
            return None
        chosen = ((name, t) for name, t in zip("qkv", (q, k, v), strict=True))
        q0, k0, v0 = (t[:1].expand_as(t) if name in names else t for name, t in chosen)
        return output(q0, k0, v0, lengths).to(q.dtype)

    return model
