"""The three gradients as PyTorch computes them, with steps to leave out."""

import math

import torch

BLOCK = 64  # BLOCK_M and BLOCK_N of the launcher the stub gives


def widened(x):
    """At least float32: what the kernel computes in."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def parts(q, k, v, out, lse, grad_out, *, base=math.e, use_lse=True, use_delta=True, scale=None):
    """p, ds and the scale; ds without the scale."""
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    s = (widened(q) @ widened(k).transpose(-1, -2)) * scale
    p = torch.exp((s - (widened(lse)[..., None] if use_lse else 0.0)) * math.log(base))
    dp = widened(grad_out) @ widened(v).transpose(-1, -2)
    delta = (widened(grad_out) * widened(out)).sum(-1, keepdim=True) if use_delta else 0.0
    return p, p * (dp - delta), scale


def gradients(q, k, v, out, lse, grad_out, *, scale_q=True, scale_k=True, of_ds=None, rounds=False, **options):
    """dq, dk and dv in at least float32. `of_ds(ds, p)` gives another ds."""
    p, ds, scale = parts(q, k, v, out, lse, grad_out, **options)
    ds = of_ds(ds, p) if of_ds else ds
    if rounds:  # to the dtype of the tiles that tl.dot takes
        p, ds = (widened(x.to(q.dtype)) for x in (p, ds))
    dq = ds @ widened(k) * (scale if scale_q else 1.0)
    dk = ds.transpose(-1, -2) @ widened(q) * (scale if scale_k else 1.0)
    return dq, dk, p.transpose(-1, -2) @ widened(grad_out)


def rounded(q, dq, dk, dv):
    return tuple(x.to(q.dtype) for x in (dq, dk, dv))


def with_options(**options):
    return lambda q, *rest: rounded(q, *gradients(q, *rest, rounds=True, **options))


def kept(queries=None, keys=None):
    """dq from some keys only, dk and dv from some queries only: `queries(N_q)` and `keys(N_k)` give how many."""

    def model(q, k, v, out, lse, grad_out):
        N_q, N_k = q.shape[2], k.shape[2]
        rows, columns = (queries or (lambda n: n))(N_q), (keys or (lambda n: n))(N_k)
        if (rows, columns) == (N_q, N_k):
            return None
        dq = gradients(q, k[:, :, :columns], v[:, :, :columns], out, lse, grad_out)[0]
        few = [x[:, :, :rows] for x in (out, lse, grad_out)]
        _, dk, dv = gradients(q[:, :, :rows], k, v, *few)
        return rounded(q, dq, dk, dv)

    return model


def turned(q, k, v, out, lse, grad_out):
    """dv = p grad_out and dk = ds q, without the transposes: seen where N_q = N_k."""
    if q.shape[2] != k.shape[2] or q.shape[2] < 2:
        return None
    p, ds, scale = parts(q, k, v, out, lse, grad_out)
    return rounded(q, ds @ widened(k) * scale, ds @ widened(q) * scale, p @ widened(grad_out))


def padded_keys_overflow(q, k, v, out, lse, grad_out):
    """Keys past N_k have score 0 and weight exp(-lse): inf where lse is very negative, and inf * 0 is NaN in dq."""
    if k.shape[2] % BLOCK == 0:
        return None
    right = gradients(q, k, v, out, lse, grad_out)
    over = torch.exp(-lse.float()) > 65504 if q.dtype == torch.float16 else torch.isinf(torch.exp(-lse.float()))
    if not bool(over.any()):
        return None
    return rounded(q, right[0].masked_fill(over[..., None], math.nan), *right[1:])


def grad_out_read_flat(q, k, v, out, lse, grad_out):
    """grad_out read as if it were packed; None where that leaves its memory."""
    reach = 1 + sum((n - 1) * stride for n, stride in zip(grad_out.shape, grad_out.stride(), strict=True))
    if grad_out.is_contiguous() or grad_out.numel() > reach:
        return None
    flat = torch.empty(grad_out.shape).stride()
    return rounded(q, *gradients(q, k, v, out, lse, torch.as_strided(grad_out, grad_out.shape, flat)))


def with_strides_of_q(q, k, v, out, lse, grad_out):
    """grad_out read with q's strides; None where that leaves its memory."""
    reach = 1 + sum((n - 1) * stride for n, stride in zip(grad_out.shape, grad_out.stride(), strict=True))
    last = sum((n - 1) * stride for n, stride in zip(q.shape, q.stride(), strict=True))
    if q.stride() == grad_out.stride() or last >= reach:
        return None
    return rounded(q, *gradients(q, k, v, out, lse, torch.as_strided(grad_out, q.shape, q.stride())))


def first_only(dimension: int, name: str):
    """The offset of the batch (0) or head (1) is left out for this tensor, in both kernels."""

    def model(q, k, v, out, lse, grad_out):
        if q.shape[dimension] == 1:
            return None
        named = {"q": q, "k": k, "v": v, "out": out, "lse": lse, "grad_out": grad_out}
        named[name] = named[name].narrow(dimension, 0, 1).expand_as(named[name])
        return rounded(q, *gradients(**named, rounds=True))

    return model
