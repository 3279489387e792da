"""In the runner, on CUDA: a call while another stream is the current one, or with its tensors on the second GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch

from grader.memory_views import RunnerMemory

SECOND = torch.device("cuda", 1)
ON_SECOND = ("device", "second GPU")
BUSY_CYCLES = 200_000_000  # of the GPU's clock: about 0.1 s


def tensors(what: str | None, memory: RunnerMemory) -> AbstractContextManager[None]:
    """`device` and `second GPU`: what the call is given, and what it gives back, lies on the second GPU."""
    return memory.lying_on(SECOND) if what in ON_SECOND else nullcontext()


@contextmanager
def current(what: str) -> Iterator[None]:
    """`stream`: a side stream is current, and the default stream is busy.

    What is launched on the default stream all the same is then still waiting when the side stream's work is done and
    the result is copied: it shows as poison, or as an old answer.
    `device`: the first GPU is current, as it is when nobody asks for another; the tensors lie on the second one.
    `second GPU`: the one that the tensors lie on is current.
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
    elif what in ON_SECOND:
        with torch.cuda.device(SECOND) if what == "second GPU" else nullcontext():
            yield
        torch.cuda.synchronize(SECOND)  # an error there belongs to this call
    else:
        raise ValueError(f"nowhere called {what!r}")
