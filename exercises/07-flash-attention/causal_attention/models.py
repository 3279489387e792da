"""What the output would be if a mistake had been made."""

import math

import torch

BLOCK = 64  # BLOCK_M and BLOCK_N of the launcher the stub gives
LARGE = 2**18  # elements: such a mistake shows in a smaller case first, where its model is cheap


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
    out[..., :64] = (
        weights(q[..., :64], k[..., :64], seen(q.shape[2], q.device), scale=D**-0.5) @ v[..., :64].double()
    ).to(q.dtype)
    return out


def reversed_in_diagonal_tile(end):
    """Tiles below the diagonal are seen whole; in the one that it crosses, the mask points the other way."""

    def model(q, k, v):
        N = q.shape[2]
        k, v, rows, keys = filled_up(q, k, v)
        own = rows // BLOCK * BLOCK
        return output(q, k, v, (keys < own) | ((keys >= rows) & (keys < own + BLOCK) & (keys < end(keys, N))))

    return model
