"""What module 4 says about the elements that an unfused and a fused softmax move."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.evidence.run import compiled
from tests.evidence.test_m04 import SOFTMAX


class Traffic(TorchDispatchMode):
    """Counts the elements of the tensors that go into each operation, and of those that come out."""

    def __init__(self):
        super().__init__()
        self.operations, self.read, self.written = 0, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.operations += 1
        self.read += sum(argument.numel() for argument in args if isinstance(argument, torch.Tensor))
        self.written += result.numel()
        return result


def test_the_bytes_of_unfused_and_fused_softmax():
    m, n = 4, 8
    x = torch.randn(m, n)
    with Traffic() as seen:
        e = torch.exp(x - x.amax(1, keepdim=True))
        e / e.sum(1, keepdim=True)
    assert seen.operations == 5
    assert (seen.read, seen.written) == (5 * m * n + 2 * m, 3 * m * n + 2 * m)
    source = (
        SOFTMAX
        + """
x = torch.zeros(8)
ttir = softmax_kernel[(1,)](x, x, 8, FILL=-float("inf"), BLOCK=8).asm["ttir"]
print(ttir.count("tt.load "), ttir.count("tt.store "))
"""
    )
    assert compiled(source).split() == ["1", "1"]
