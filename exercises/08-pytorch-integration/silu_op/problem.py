import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def reference(x):
    return torch.nn.functional.silu(x)


def work(x, grad):
    # value: x in, out out; gradient: x and grad in, grad_x out
    return Work(bytes=5 * x.numel() * x.element_size(), flops=15 * x.numel())


def scale(x, grad):
    # exp's argument is rounded, so the relative error grows with |x|; the derivative crosses zero near x = -1.28
    return x.abs(), grad.abs() * (1 + x.abs())


def flat(n: int, dtype: torch.dtype = torch.float32, offline: bool = True) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype, scale=3.0), draw.normal(n, dtype=dtype)

    return Case(f"n={n} {str(dtype).removeprefix('torch.')}", make, offline=offline)


def tiny(draw: Draw):
    return draw.normal(7), draw.normal(7)


def expanded_gradient(draw: Draw):
    return draw.normal(1030), draw.normal(1).expand(1030)


def transposed_gradient(draw: Draw):
    return draw.normal(33, 40), draw.normal(40, 33).t()


def transposed_input(draw: Draw):
    return draw.normal(40, 33).t(), draw.normal(33, 40)


def far_from_zero(draw: Draw):
    # sigmoid of -90 is 8e-40 in exact arithmetic: the gradient must come out as (almost) 0, not as NaN
    x = draw.normal(1500)
    return torch.where(x < 0, x - 90, x + 90), draw.normal(1500)


def slope(x):
    s = torch.sigmoid(x)
    return s + x * s * (1 - s)


def nan_where_exp_overflows(x, grad):
    """NaN for all x on one side that exp cannot take in float32, right elsewhere; in the value or in the gradient."""
    beyond = x.double() > 88.7
    if not bool(beyond.any()):
        return None
    value, gradient = reference(x), grad * slope(x)

    def matches(outputs):
        spoilt = [torch.equal(out.isnan(), beyond) for out in outputs]
        near = [
            torch.allclose(o[~beyond], r[~beyond], 1e-2, 1e-3) for o, r in zip(outputs, (value, gradient), strict=True)
        ]
        return any(spoilt) and all(near)

    return matches


def memory_order(t):
    """t's elements as they lie in memory, put into t's shape row by row: what a flat kernel takes for t."""
    return torch.as_strided(t, (t.numel(),), (1,)).reshape(t.shape)


def gradient_read_flat(x, grad):
    if grad.dim() != 2 or grad.is_contiguous():
        return None
    return reference(x), memory_order(grad) * slope(x)


def orders_mixed(x, grad):
    # empty_like(x.t()) keeps the strides: the value comes out right, the gradient pairs x with the wrong elements
    if x.dim() != 2 or x.is_contiguous():
        return None
    return reference(x), grad.reshape(x.t().shape).t() * slope(x)


def input_read_flat(x, grad):
    if x.dim() != 2 or x.is_contiguous():
        return None
    return reference(memory_order(x)), grad * slope(memory_order(x))


PROBLEM = Problem(
    slug="silu_op",
    title="SiLU as an operator",
    entry="silu",
    parameters=("x",),
    contiguous=True,
    by_torch=(1,),  # the stub lets the backward be PyTorch operations
    reference=reference,
    work=work,
    call="operator",
    differentiable=("x",),
    tolerance=Tolerance(ulps=2.0, terms=4.0, scale=scale),
    cases=(
        flat(1, offline=False),  # the kernels compiled for 1024 and 1025 elements and each dtype tell enough
        Case("n=7", tiny, offline=False),
        flat(0),
        flat(1024),
        flat(1025),
        Case("expanded gradient, n=1030", expanded_gradient, offline=False),
        Case("transposed gradient, 33 x 40", transposed_gradient, offline=False),
        Case("transposed input, 33 x 40", transposed_input, offline=False),
        Case("far from zero, n=1500", far_from_zero, offline=False),
        flat(4099, torch.float16),
        flat(4099, torch.bfloat16),
    ),
    timing=Timing("n=2^26 float32, value and gradient", lambda draw: (draw.normal(2**26), draw.normal(2**26))),
    mistakes=(
        Mistake(
            cause="missing_upstream_gradient",
            message="The gradient is the derivative alone: backward must multiply it by the gradient that came in.",
            concept="autograd",
            see="m08.lesson.operator",
            model=lambda x, grad: (reference(x), slope(x)),
            line=r"def backward\(",
        ),
        Mistake(
            cause="wrong_derivative",
            message="The gradient is grad * sigmoid(x): that is the first half of the product rule. "
            "sigmoid depends on x as well, which adds x * s * (1 - s).",
            concept="autograd",
            see="m08.lesson.operator",
            model=lambda x, grad: (reference(x), grad * torch.sigmoid(x)),
            line=r"def backward\([\s\S]*?\breturn\b",
        ),
        Mistake(
            cause="wrong_operation",
            message="The value is sigmoid(x): silu is x * sigmoid(x).",
            concept="arithmetic",
            see="m08.lesson.operator",
            model=lambda x, grad: (torch.sigmoid(x), grad * slope(x)),
        ),
        Mistake(
            cause="wrong_derivative",
            message="The gradient is grad * s * (1 - s): that is the derivative of sigmoid. silu is x * sigmoid(x), so the "
            "product rule gives s + x * s * (1 - s).",
            concept="autograd",
            see="m08.lesson.operator",
            model=lambda x, grad: (reference(x), grad * torch.sigmoid(x) * (1 - torch.sigmoid(x))),
            line=r"def backward\([\s\S]*?\breturn\b",
        ),
        Mistake(
            cause="saved_output",
            message="The gradient is that at silu(x): backward used the saved output in place of x.",
            concept="autograd",
            see="m08.lesson.operator",
            model=lambda x, grad: (reference(x), grad * slope(reference(x))),
            line=r"save_for_backward\(",
        ),
        Mistake(
            cause="exp_overflows",
            message="Far from 0 the result is NaN: exp overflowed, and inf / inf or inf * 0 is NaN. tl.sigmoid(x), or "
            "1 / (1 + exp(-x)), is safe on both sides.",
            concept="numerics",
            see="m04.lesson.softmax",
            model=nan_where_exp_overflows,
            line=r"(?m)^[^#\n]*tl\.exp\(",
        ),
        Mistake(
            cause="gradient_assumed_contiguous",
            message="The incoming gradient was read in memory order, as if it were contiguous. It may be transposed or "
            "expanded: call grad.contiguous(), or pass its strides.",
            concept="strides",
            see="m08.lesson.autograd",
            model=gradient_read_flat,
            line=r"def backward\(",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="backward pairs x in memory order with the gradient in row order. Make both contiguous before "
            "the launch.",
            concept="strides",
            see="m08.lesson.autograd",
            model=orders_mixed,
        ),
        Mistake(
            cause="assumes_contiguous",
            message="A transposed x was read in memory order, as if it were contiguous. Call x.contiguous() in silu.",
            concept="strides",
            see="m08.lesson.autograd",
            model=input_read_flat,
        ),
    ),
    hints=(
        "Three things are asked: kernels, an operator, a gradient. Write the value first and compare it with "
        "torch.nn.functional.silu before you think about the gradient.",
        "setup_context(ctx, inputs, output) saves x; backward(ctx, grad) returns one gradient; "
        "silu.register_autograd(backward, setup_context=setup_context) joins them. A launch in backward belongs in a "
        "triton_op of its own.",
        "wrap_triton(silu_kernel)[(triton.cdiv(n, 1024),)](x, out, n, BLOCK=1024); "
        "grad_x = grad * (s + x * s * (1 - s)) with s = tl.sigmoid(x) of x.to(tl.float32)",
    ),
)
