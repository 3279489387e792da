"""compiled_add, silu_op, square_autograd."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

BARE_SQUARE = """import torch
import triton
import triton.language as tl


@triton.jit
def square_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(axis=0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * x, mask=mask)


def square(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        square_kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""

MISTAKES: tuple[KnownMistake, ...] = (
    # -- square_autograd
    KnownMistake(
        ("65",),
        "backward through a bare kernel",
        "square_autograd",
        source=BARE_SQUARE,
        status="runtime_error",
        causes=("no_gradient",),
    ),
    KnownMistake(
        ("17",),
        "incoming gradient not made contiguous",
        "square_autograd",
        (("grad_out.contiguous()", "grad_out"),),
        status="out_of_bounds",
        causes=("gradient_assumed_contiguous",),
        line="grad_out",
    ),
    KnownMistake(
        ("15",),
        "expanded gradient read as dense",
        "square_autograd",
        (
            (
                "grad_out.contiguous()",
                "grad_out.t().contiguous().t() if grad_out.dim() == 2 and 0 not in grad_out.stride() else grad_out",
            ),
        ),
        status="out_of_bounds",
        causes=("gradient_assumed_contiguous",),
        line="grad_out",
    ),
    KnownMistake(
        ("13",),
        "transposed input read as dense",
        "square_autograd",
        (("x = x.contiguous()  #", "x = x  #"),),
        causes=("assumes_contiguous",),
    ),
    KnownMistake(
        ("69",),
        "incoming gradient left out",
        "square_autograd",
        (("2 * x * grad, mask", "2 * x, mask"),),
        causes=("missing_upstream_gradient",),
        line="def backward",
    ),
    KnownMistake(
        ("69",),
        "no gradient returned",
        "square_autograd",
        (("        return grad_x  #", "        return None  #"),),
        status="runtime_error",
        causes=("no_gradient",),
        line="def backward",
    ),
    KnownMistake(
        ("69",),
        "too many gradients returned",
        "square_autograd",
        (("        return grad_x  #", "        return grad_x, grad_x  #"),),
        status="runtime_error",
        causes=("wrong_number_of_gradients",),
        line="return grad_x",
    ),
    KnownMistake(
        ("69",),
        "too few gradients returned",
        "square_autograd",
        (
            ("def forward(ctx, x: torch.Tensor)", "def forward(ctx, x: torch.Tensor, power: torch.Tensor)"),
            ("Square.apply(x)", "Square.apply(x, x)"),
        ),
        status="runtime_error",
        causes=("wrong_number_of_gradients",),
        line="return grad_x",
    ),
    KnownMistake(
        ("69",),
        "gradient for the wrong input",
        "square_autograd",
        (
            ("def forward(ctx, x: torch.Tensor)", "def forward(ctx, x: torch.Tensor, power)"),
            ("Square.apply(x)", "Square.apply(x, 2)"),
            ("        return grad_x  #", "        return None, grad_x  #"),
        ),
        status="runtime_error",
        causes=("gradient_for_wrong_input",),
        line="return None, grad_x",
    ),
    KnownMistake(
        (),
        "saved the output in place of the input",
        "square_autograd",
        (("save_for_backward(x)", "save_for_backward(out)"),),
        causes=("saved_output",),
        line="save_for_backward(out)",
    ),
    # -- silu_op
    KnownMistake(
        ("17",),
        "incoming gradient not made contiguous",
        "silu_op",
        (("x.contiguous(), grad.contiguous()", "x.contiguous(), grad"),),
        status="out_of_bounds",
        causes=("gradient_assumed_contiguous",),
        line="grad",
    ),
    KnownMistake(
        ("15",),
        "expanded gradient read as dense",
        "silu_op",
        (("grad.contiguous()", "grad if 0 in grad.stride() else grad.contiguous()"),),
        status="out_of_bounds",
        causes=("gradient_assumed_contiguous",),
        line="grad",
    ),
    KnownMistake(
        ("67",),
        "input changed and not declared",
        "silu_op",
        (
            (
                "    x = x.contiguous()\n    out = torch.empty_like(x)",
                "    x.mul_(1.5)\n    x = x.contiguous()\n    out = torch.empty_like(x)",
            ),
        ),
        status="input_mutated",
        causes=("input_mutated",),
    ),
    KnownMistake(
        ("65",),
        "no gradient registered",
        "silu_op",
        (("silu.register_autograd(backward, setup_context=setup_context)\n", ""),),
        status="runtime_error",
        causes=("no_gradient",),
    ),
    KnownMistake(
        ("69",),
        "too many gradients returned",
        "silu_op",
        (("    return silu_backward(x, grad)", "    grad_x = silu_backward(x, grad)\n    return grad_x, grad_x"),),
        status="runtime_error",
        causes=("gradient_for_wrong_input", "wrong_number_of_gradients"),
        line="return grad_x",
    ),
    KnownMistake(
        ("69",),
        "gradient without the product rule",
        "silu_op",
        (("grad * (s + x * s * (1 - s))", "grad * s"),),
        causes=("wrong_derivative",),
    ),
    KnownMistake(
        ("27",),
        "cast to float16 before the activation",
        "silu_op",
        (("x * tl.sigmoid(x), mask", "x * tl.sigmoid(x.to(tl.float16).to(tl.float32)), mask"),),
        causes=("low_precision",),
    ),
    KnownMistake(
        ("42",),
        "if on a tile",
        "silu_op",
        (("    grad = tl.load(", "    if x < -90.0:\n        x = x * 0.0\n    grad = tl.load("),),
        status="compile_error",
        causes=("branch_on_tensor",),
        line="if x < -90.0",
    ),
    KnownMistake(
        ("D math",),
        "math.exp of a tensor",
        "silu_op",
        (
            ("import torch\n", "import math\n\nimport torch\n"),
            ("x * tl.sigmoid(x), mask", "x / (1 + math.exp(-x)), mask"),
        ),
        status="compile_error",
        causes=("python_function_of_a_tensor",),
        line="math.exp",
    ),
    # -- compiled_add
    KnownMistake(
        ("13",),
        "y read as dense",
        "compiled_add",
        (("    y = y.contiguous()\n", ""),),
        causes=("assumes_contiguous",),
    ),
    KnownMistake(
        ("13",),
        "2 * x read as dense",
        "compiled_add",
        (("    doubled = doubled.contiguous()\n", ""),),
        causes=("assumes_contiguous",),
    ),
    KnownMistake(
        ("36",),
        "factor is a plain global",
        "compiled_add",
        (
            ("@triton.jit\n", "FACTOR = 2.0\n\n\n@triton.jit\n"),
            ("x + y, mask", "FACTOR * x + y, mask"),
            ("doubled = 2 * x", "doubled = 1 * x"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="FACTOR * x",
    ),
    KnownMistake(
        ("27",),
        "relu before the addition",
        "compiled_add",
        (("= 2 * x", "= torch.relu(2 * x)"), ("torch.relu(out)", "out")),
        causes=("wrong_order_of_operations",),
    ),
    KnownMistake(
        (),
        "store without a mask",
        "compiled_add",
        (("x + y, mask=mask)", "x + y)"),),
        status="out_of_bounds",
        causes=("missing_store_mask",),
        line="tl.store(",
    ),
)
