"""The modes that watch a submission's calls, and PyTorch's compiler."""

import subprocess
import sys

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from grader.dispatch_mode import DispatchMode

FIRST_CALLS = """
import sys
import torch
from grader.allocations import GuardedAllocations
from grader.sketch import Moved
with GuardedAllocations("cpu") as mode:
    torch.empty(3)
assert len(mode.buffers) == 1
print([name for name in sys.modules if name.startswith(("torch._dynamo", "sympy"))])
"""


def test_the_first_call_in_a_mode_imports_no_compiler():
    """It takes seconds, in every process that is forked before the compiler is there."""
    ran = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True, timeout=120, check=True)
    assert ran.stdout.strip() == "[]"


def graphs_compiled(base):
    """How many graphs PyTorch compiles of an addition inside a mode that calls Python of its own."""

    class Adding(base):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Adding.calls += 1
            return torch.ops.aten.mul.Tensor(args[0], args[1])

    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    torch._dynamo.reset()
    x = torch.full((3,), 3.0)
    with Adding():
        result = torch.compile(torch.add, backend=backend)(x, x)
    assert Adding.calls and result.tolist() == [9.0, 9.0, 9.0]
    return len(seen)


@pytest.mark.skipif(not hasattr(TorchDispatchMode, "_should_skip_dynamo"), reason="PyTorch 2.9 hides no mode")
def test_once_the_compiler_is_there_it_does_not_look_into_the_mode():

    class Open(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls):
            return False

    assert graphs_compiled(DispatchMode) == graphs_compiled(TorchDispatchMode) == 0
    assert graphs_compiled(Open) == 1
