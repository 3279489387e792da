"""cross_entropy: loss[i] = log(sum over j of exp(z[i, j])) - z[i, target[i]], for logits wider than a tile

Called as      cross_entropy(logits, target, ignore_index, softcap)
logits         (M, V), columns side by side in memory, rows at any distance; float32, float16 or bfloat16;
               values up to 1e4 in size; some may be -inf (tokens that are ruled out), but not the target's, and not
               a whole row
target         M class numbers, int64, each in [0, V) or equal to ignore_index
ignore_index   an int, usually -100, but it may be a class number too: the loss of such a row is 0
softcap        a float. 0.0: z is the logits. Else z = softcap * tanh(logits / softcap), as in Gemma 2
returns        M losses, float32
M, V           M from 0; V from 1, and below, at and above 4096; up to 10000

One program owns one row, and walks through it once, in tiles of BLOCK columns: maximum and sum together. Compute in
float32. A row that is ignored must not be looked up: no logit has the number -100.
The launcher is given. There is no tl.tanh: build it from tl.exp or tl.sigmoid.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits_ptr, target_ptr, loss_ptr,
    n_cols, ignore_index, softcap,
    stride_m,
    HAS_SOFTCAP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    # 1. walk: running maximum and rescaled sum of exp(z - maximum)
    # 2. the target's own z, unless the row is ignored
    # 3. store the loss, or 0
    pass


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
