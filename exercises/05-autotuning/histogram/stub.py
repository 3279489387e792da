"""histogram: counts[b] = how many elements of x are equal to b, for b = 0 … bins - 1

Called as      histogram(x, bins)
x              one dimension, n elements, contiguous; int32 or int64. Elements below 0 and from bins on count nowhere
bins           1 to 1000, any number
returns        a new int32 tensor of `bins` elements
n              0, 1, and up to 300000; no multiple of anything

Many programs would add to the same few addresses, and atomics on one address wait for each other. So a program counts
for itself first: it walks over tiles of BLOCK elements, the grid's width apart, adds up a private histogram in
registers with tl.histogram, and only then adds its `bins` counts to memory with tl.atomic_add.

The launcher is given. tl.histogram(values, num_bins, mask) takes a power of two of bins, and only values in
[0, num_bins): what must not count has to be masked off.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, bins, BLOCK: tl.constexpr, BINS: tl.constexpr):
    # 1. counts of my own, BINS of them, all 0
    # 2. my tiles: program_id, program_id + num_programs, …; count what lies in [0, bins)
    # 3. add my counts to memory
    pass


def histogram(x: torch.Tensor, bins: int) -> torch.Tensor:
    n = x.numel()
    counts = torch.zeros(bins, dtype=torch.int32, device=x.device)
    if n == 0:
        return counts  # no element, no program
    # enough programs to fill a GPU, few enough that the atomics at the end do not matter
    programs = min(triton.cdiv(n, 4096), 528)
    histogram_kernel[(programs,)](
        x, counts, n, bins,
        BLOCK=4096, BINS=triton.next_power_of_2(bins),
        num_warps=8,
    )  # fmt: skip
    return counts
