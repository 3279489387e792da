"""Mistakes that only a GPU shows: vector_add, matmul, silu_op."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

MISTAKES: tuple[KnownMistake, ...] = (
    KnownMistake(
        ("61",),
        "input on cuda:1 while cuda:0 is current",
        "vector_add",  # its solution: a launcher without a guard
        status="passed",  # with a remark: it is right for whoever makes the tensors' device the current one
        causes=("wrong_device_current",),
        line="add_kernel[grid]",
        needs_cuda=True,
        gpus=2,
    ),
    KnownMistake(
        ("62",),
        "output left on the CPU",
        "vector_add",
        (("torch.empty_like(x)", "torch.empty(x.shape, dtype=x.dtype)"),),
        status="runtime_error",
        causes=("tensor_on_the_cpu",),
        line="add_kernel[grid]",
        needs_cuda=True,
    ),
    KnownMistake(
        ("21",),
        "TF32 products of float32",
        "matmul",
        ((', input_precision="ieee"', ""),),
        causes=("tf32_inputs",),
        line="tl.dot(",
        needs_cuda=True,  # the interpreter multiplies float32 exactly
    ),
    KnownMistake(
        ("68",),
        "wrap_triton forgotten",
        "silu_op",
        (("wrap_triton(silu_kernel)[", "silu_kernel["),),
        causes=("wrap_triton_forgotten",),
        line="silu_kernel[",
        needs_cuda=True,  # for opcheck's tests with fake tensors; in the interpreter wrap_triton changes nothing
    ),
)
