"""Whether a variant computes what PyTorch computes."""

from __future__ import annotations

from typing import Any

import torch

TOLERANCE = {
    torch.float64: 1e-9,
    torch.float32: 1e-5,
}  # relative error in the norm, of the coarser dtype of the two; 16-bit ones: below
HALF = 2e-2


def differs(got: Any, want: Any, tolerance: float | None = None) -> str | None:
    """None where the outputs agree, else how they do not. Whole numbers must be equal."""
    got = got if isinstance(got, (tuple, list)) else (got,)
    want = want if isinstance(want, (tuple, list)) else (want,)
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    for number, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape:
            return f"output {number} has shape {tuple(a.shape)}, not {tuple(b.shape)}"
        if not b.dtype.is_floating_point:
            if not torch.equal(a, b):
                return f"output {number} differs in {int((a != b).sum())} elements"
            continue
        bound = tolerance or max(TOLERANCE.get(t, HALF) for t in (a.dtype, b.dtype))
        # in parts, so that a large output needs no float32 copy of its whole
        parts = zip(a.detach().reshape(-1).split(1 << 26), b.detach().reshape(-1).split(1 << 26), strict=True)
        squares = [((x.double() - y.double()).square().sum(), y.double().square().sum()) for x, y in parts]
        error = float((sum(s for s, _ in squares) / max(float(sum(t for _, t in squares)), 1e-30)) ** 0.5)
        if not error <= bound:
            return f"output {number}: relative error {error:.2g}, {bound:.2g} is allowed"
    return None
