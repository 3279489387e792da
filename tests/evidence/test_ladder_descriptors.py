"""What the matmul ladder says of descriptors that the launcher makes."""

from __future__ import annotations

from tests.evidence.ladder_source import kernels
from tests.evidence.run import compiled
from tests.evidence.test_ladders import KEEP, SQUARE, near


def test_a_descriptor_from_the_host_is_not_written_by_the_kernel():
    (made,), (given,) = kernels("matmul", 6, *SQUARE), kernels("matmul", 8, *SQUARE)
    assert (made.scratch, given.scratch) == (3 * 128, 0)
    assert near(made.words["tensormap"], 48) and given.words["tensormap"] == 0
    for word in ("wgmma.mma_async", "cp.async.bulk.tensor"):
        assert made.words[word] == given.words[word]


TUNED = """
from triton.tools.tensor_descriptor import TensorDescriptor

def shape(arguments):
    arguments["desc"].block_shape = [arguments["BLOCK"], 16]

def tuned(hook):
    @triton.autotune([triton.Config({"BLOCK": n}, pre_hook=hook) for n in (16, 32)], key=[])
    @triton.jit
    def load(desc, out_ptr, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)[:, None] * 16 + tl.arange(0, 16)[None, :]
        tl.store(out_ptr + at, desc.load([0, 0]))

    load[(1,)](TensorDescriptor.from_tensor(torch.empty(64, 16), [16, 16]), torch.empty(64, 16))

tuned(shape)
print(*(kernel.src.signature["desc"].replace(" ", "") for kernel in launched))
try:
    tuned(None)
except triton.CompilationError as error:
    print("refused" if "incompatible dimensions" in str(error) else error)
"""


def test_an_autotuner_must_set_the_block_shape_of_a_descriptor():
    shapes, without = compiled(KEEP + TUNED).splitlines()
    assert shapes.split()[:2] == ["tensordesc<fp32[16,16]>", "tensordesc<fp32[32,16]>"] and without == "refused"
