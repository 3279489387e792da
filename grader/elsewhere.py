"""In the runner, on CUDA: a call while another stream or another device is the current one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

BUSY_CYCLES = 200_000_000  # of the GPU's clock: about 0.1 s


@contextmanager
def current(what: str) -> Iterator[None]:
    """`stream`: a side stream is current, and the default stream is busy.

    What is launched on the default stream all the same is then still waiting when the side stream's work is done and
    the result is copied: it shows as poison, or as an old answer.
    `device`: the second GPU is current; the tensors lie on the first one.
    """
    if what == "stream":
        torch.cuda.synchronize()
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(1)  # loads the module of the sleeping kernel, which would wait for the whole device
        side.synchronize()
        torch.cuda._sleep(BUSY_CYCLES)
        with torch.cuda.stream(side):
            yield
    elif what == "device":
        with torch.cuda.device(1):
            yield
        torch.cuda.synchronize(0)
    else:
        raise ValueError(f"nowhere called {what!r}")
