"""tl.rand in integer arithmetic of PyTorch: the same bits on every device.

Philox-4x32-10 of J. K. Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (SC11), as triton.language.random
calls it: key = the seed's two halves, counter = (offset's two halves, 0, 0), first of the four results.
"""

import torch

LOW = 0xFFFFFFFF
ROUND_A, ROUND_B = 0xD2511F53, 0xCD9E8D57
KEY_A, KEY_B = 0x9E3779B9, 0xBB67AE85
TO_UNIT = 4.6566127342e-10  # Triton's constant: just under 2^-31, so that the largest integer stays below 1


def wide_product(a: int, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low 32 bits of a * b; int64 cannot hold the product, so b is taken in two halves."""
    upper, lower = a * (b >> 16), a * (b & 0xFFFF)
    return (upper + (lower >> 16)) >> 16, ((upper << 16) + lower) & LOW


def randint(seed: int, offsets: torch.Tensor, rounds: int = 10) -> torch.Tensor:
    """32 random bits for each offset, as int64 values from 0 to 2^32 - 1."""
    c0, c1 = offsets & LOW, (offsets >> 32) & LOW
    c2, c3 = torch.zeros_like(offsets), torch.zeros_like(offsets)
    k0, k1 = seed & LOW, (seed >> 32) & LOW
    for _ in range(rounds):
        high_b, low_b = wide_product(ROUND_B, c2)
        high_a, low_a = wide_product(ROUND_A, c0)
        c0, c1, c2, c3 = high_b ^ c1 ^ k0, low_b, high_a ^ c3 ^ k1, low_a
        k0, k1 = (k0 + KEY_A) & LOW, (k1 + KEY_B) & LOW
    return c0


def rand(seed: int, offsets: torch.Tensor) -> torch.Tensor:
    """float32 in [0, 1) for each int64 offset: tl.rand(seed, offsets)."""
    bits = randint(seed, offsets)
    folded = torch.where(bits > LOW >> 1, LOW - bits, bits)  # as int32: x where x >= 0, else -x - 1
    return folded.to(torch.float32) * torch.tensor(TO_UNIT, dtype=torch.float32, device=offsets.device)
