"""cross_entropy: one walk through the row finds log-sum-exp; the target's logit is one more load."""

import torch
import triton
import triton.language as tl


@triton.jit
def capped(x, softcap, HAS_SOFTCAP: tl.constexpr):
    """softcap * tanh(x / softcap), with tanh(y) = 2 * sigmoid(2 * y) - 1."""
    if HAS_SOFTCAP:
        x = softcap * (2.0 * tl.sigmoid(2.0 * x / softcap) - 1.0)
    return x


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr,
    n_cols, ignore_index, softcap,
    stride_m,
    HAS_SOFTCAP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(axis=0).to(tl.int64)  # M * V passes 2^31 in practice
    logits_row = logits_ptr + row * stride_m

    m = -float("inf")  # running maximum
    l = 0.0  # running sum of exp(z - m)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < n_cols
        z = capped(tl.load(logits_row + cols, mask=mask, other=0.0).to(tl.float32), softcap, HAS_SOFTCAP)
        # after the cap: tanh would turn a fill of -inf into -softcap, and the padding would join the sum
        z = tl.where(mask, z, -float("inf"))
        m_new = tl.maximum(m, tl.max(z, axis=0))
        # while only -inf has been seen, subtract 0: -inf - (-inf) would be NaN
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(z - shift), axis=0)
        m = m_new

    target = tl.load(target_ptr + row)
    counted = target != ignore_index
    # masked: row + (-100) is no address of this row
    z_target = capped(tl.load(logits_row + target, mask=counted, other=0.0).to(tl.float32), softcap, HAS_SOFTCAP)
    loss = m + tl.log(l) - z_target
    tl.store(loss_ptr + row, tl.where(counted, loss, 0.0))


def cross_entropy(logits: torch.Tensor, target: torch.Tensor, ignore_index: int, softcap: float) -> torch.Tensor:
    n_rows, n_cols = logits.shape
    loss = torch.empty(n_rows, dtype=torch.float32, device=logits.device)
    if n_rows == 0:
        return loss  # no row: no program has anything to own
    cross_entropy_kernel[(n_rows,)](
        logits, target, loss,
        n_cols, ignore_index, softcap,
        logits.stride(0),
        HAS_SOFTCAP=softcap > 0.0, BLOCK=4096,
        num_warps=8,
    )  # fmt: skip
    return loss
