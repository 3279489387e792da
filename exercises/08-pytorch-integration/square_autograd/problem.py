import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BF16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(x):
    return x * x


def work(x, grad):
    # value: x in, out out; gradient: x and grad in, grad_x out
    return Work(bytes=5 * x.numel() * x.element_size(), flops=3 * x.numel())


def flat(n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None, offline: bool = True) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), draw.normal(n, dtype=dtype)

    return Case(f"n={n} {str(dtype).removeprefix('torch.')}", make, needs_gpu, offline)


def expanded_gradient(draw: Draw):
    return draw.normal(1030), draw.normal(1).expand(1030)


def expanded_rows(draw: Draw):
    return draw.normal(33, 40), draw.normal(1, 40).expand(33, 40)


def transposed_gradient(draw: Draw):
    return draw.normal(33, 40), draw.normal(40, 33).t()


def transposed_input(draw: Draw):
    return draw.normal(40, 33).t(), draw.normal(33, 40)


def tiny(draw: Draw):
    return draw.normal(7), draw.normal(7)


def memory_order(t):
    """t's elements as they lie in memory, put into t's shape row by row: what a flat kernel takes for t."""
    return torch.as_strided(t, (t.numel(),), (1,)).reshape(t.shape)


def gradient_read_flat(x, grad):
    if grad.dim() != 2 or grad.is_contiguous() or 0 in grad.stride():
        return None
    return x * x, 2 * x * memory_order(grad)


def orders_mixed(x, grad):
    # empty_like(x.t()) keeps the strides: the value comes out right, the gradient pairs x with the wrong elements
    if x.dim() != 2 or x.is_contiguous():
        return None
    return x * x, 2 * x * grad.reshape(x.t().shape).t()


def input_read_flat(x, grad):
    if x.dim() != 2 or x.is_contiguous():
        return None
    return memory_order(x) ** 2, 2 * memory_order(x) * grad


PROBLEM = Problem(
    slug="square_autograd",
    title="A kernel with a gradient",
    entry="square",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    work=work,
    call="gradient",
    differentiable=("x",),
    tolerance=Tolerance(ulps=2.0),
    cases=(
        flat(1, offline=False),  # the kernels compiled for 1024 and 1025 elements and each dtype tell enough
        Case("n=7", tiny, offline=False),
        flat(0),
        flat(1024),
        flat(1025),
        Case("expanded gradient, n=1030", expanded_gradient, offline=False),
        Case("gradient expanded over rows, 33 x 40", expanded_rows, offline=False),
        Case("transposed gradient, 33 x 40", transposed_gradient, offline=False),
        Case("transposed input, 33 x 40", transposed_input, offline=False),
        flat(4099, torch.float16),
        flat(4099, torch.bfloat16, needs_gpu=BF16),
    ),
    timing=Timing("n=2^26 float32, value and gradient", lambda draw: (draw.normal(2**26), draw.normal(2**26))),
    mistakes=(
        Mistake(
            cause="missing_upstream_gradient",
            message="The gradient is 2 * x: it is the derivative alone, without the gradient that came in. "
            "backward must multiply by grad_out (the chain rule).",
            concept="autograd",
            see="m08.lesson.autograd",
            model=lambda x, grad: (x * x, 2 * x),
            line=r"def backward\(",
        ),
        Mistake(
            cause="wrong_derivative",
            message="The gradient is grad_out * x: the derivative of x * x is 2 * x.",
            concept="autograd",
            see="m08.lesson.autograd",
            model=lambda x, grad: (x * x, x * grad),
            line=r"def backward\(",
        ),
        Mistake(
            cause="forward_reused_as_backward",
            message="The gradient is grad_out * x * x: multiply by the derivative, not by the function's value.",
            concept="autograd",
            see="m08.lesson.autograd",
            model=lambda x, grad: (x * x, x * x * grad),
            line=r"def backward\(",
        ),
        Mistake(
            cause="saved_output",
            message="The gradient is grad_out * 2 * x * x: backward used the saved output in place of x.",
            concept="autograd",
            see="m08.lesson.autograd",
            model=lambda x, grad: (x * x, 2 * x * x * grad),
            line=r"save_for_backward\(",
        ),
        Mistake(
            cause="gradient_passed_through",
            message="The gradient is grad_out as it came in: multiply it by the derivative 2 * x.",
            concept="autograd",
            see="m08.lesson.autograd",
            model=lambda x, grad: (x * x, grad),
            line=r"def backward\(",
        ),
        Mistake(
            cause="gradient_assumed_contiguous",
            message="The incoming gradient was read in memory order, as if it were contiguous. It may be transposed or "
            "expanded: call grad_out.contiguous(), or pass its strides.",
            concept="strides",
            see="m08.lesson.autograd",
            model=gradient_read_flat,
            line=r"def backward\(",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="backward pairs x in memory order with the gradient in row order: the saved x was not contiguous. "
            "Make it contiguous before the launch and save that tensor.",
            concept="strides",
            see="m08.lesson.autograd",
            model=orders_mixed,
        ),
        Mistake(
            cause="assumes_contiguous",
            message="A transposed x was read in memory order, as if it were contiguous. Call x.contiguous() in forward.",
            concept="strides",
            see="m08.lesson.autograd",
            model=input_read_flat,
        ),
    ),
    hints=(
        "PyTorch knows about a kernel only what an autograd.Function tells it. What does backward need to compute "
        "2 * x * grad_out, and where can forward leave it?",
        "forward: make x contiguous, launch square_kernel into an empty_like, save x with ctx.save_for_backward. "
        "backward: take x from ctx.saved_tensors, make grad_out contiguous, launch the other kernel. With n = 0 launch "
        "nothing.",
        "square_backward_kernel[(triton.cdiv(n, 1024),)](x, grad_out.contiguous(), grad_x, n, BLOCK=1024), and in it: "
        "tl.store(grad_x_ptr + offs, 2 * x * grad, mask=mask)",
    ),
)
