import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BF16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(x, y):
    return torch.relu(2 * x + y)


def work(x, y):
    # what one fused kernel would move; with a kernel launch in the middle it is 7 passes instead of 3
    return Work(bytes=3 * x.numel() * x.element_size(), flops=3 * x.numel())


def flat(n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None, offline: bool = True) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), draw.normal(n, dtype=dtype)

    return Case(f"n={n} {str(dtype).removeprefix('torch.')}", make, needs_gpu, offline)


def tiny(draw: Draw):
    return draw.normal(7), draw.normal(7)


def with_specials(draw: Draw):
    x, y = draw.normal(1500), draw.normal(1500)
    x[0], x[1], y[2] = float("inf"), float("nan"), float("-inf")
    return x, y


def transposed_x(draw: Draw):
    return draw.normal(40, 33).t(), draw.normal(33, 40)


def transposed_y(draw: Draw):
    return draw.normal(33, 40), draw.normal(40, 33).t()


def sliced(draw: Draw):
    return draw.normal(33, 80)[:, ::2], draw.normal(33, 40)


def memory_order(x, y):
    if x.dim() != 2 or (x.is_contiguous() and y.is_contiguous()) or x.stride(1) == 2:
        return None
    x, y = (torch.as_strided(t, (t.numel(),), (1,)).reshape(t.shape) for t in (x, y))
    return torch.relu(2 * x + y)


def result_keeps_strides(x, y):
    if x.dim() != 2 or x.is_contiguous() or x.stride(0) != 1:
        return None
    return reference(x, y).reshape(x.t().shape).t()


def transposed_y_with_transposed_result(x, y):
    if y.dim() != 2 or y.stride(0) != 1 or y.is_contiguous():
        return None
    return torch.relu(2 * x.reshape(y.t().shape).t() + y)


PROBLEM = Problem(
    slug="compiled_add",
    title="A kernel inside torch.compile",
    entry="compiled_add",
    parameters=("x", "y"),
    contiguous=True,
    reference=reference,
    work=work,
    call="compiled",
    torch_ops=(
        "aten.mul.Tensor",
        "aten.mul_.Tensor",
        "aten.relu.default",
        "aten.relu_.default",
        "aten.clamp.default",
        "aten.clamp_min.default",
    ),
    tolerance=Tolerance(exact=True),
    cases=(
        flat(1025),  # enough elements for every step to show
        flat(1, offline=False),  # the kernels compiled for 1024 and 1025 elements and each dtype tell enough
        Case("n=7", tiny, offline=False),
        flat(0),
        flat(1023),
        flat(1024),
        Case("x transposed, 33 x 40", transposed_x, offline=False),
        Case("y transposed, 33 x 40", transposed_y, offline=False),
        Case("x sliced, 33 x 40", sliced, offline=False),
        Case("inf and nan, n=1500", with_specials, offline=False),
        flat(4099, torch.float16),
        flat(4099, torch.bfloat16, needs_gpu=BF16),
    ),
    # the launch in the middle costs four more passes over memory: 3/7 of the limit is all that can be had with it
    timing=Timing("n=2^26 float32", lambda draw: (draw.normal(2**26), draw.normal(2**26)), fair=0.25, fast=0.38),
    mistakes=(
        Mistake(
            cause="step_left_out",
            message="The output is relu(x + y): x was not doubled.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: torch.relu(x + y),
        ),
        Mistake(
            cause="activation_left_out",
            message="The output is 2 * x + y: relu was not applied.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: 2 * x + y,
        ),
        Mistake(
            cause="wrong_order_of_operations",
            message="The output is relu(2 * (x + y)): y was doubled as well. Double x before the kernel.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: torch.relu(2 * (x + y)),
        ),
        Mistake(
            cause="wrong_order_of_operations",
            message="The output is relu(2 * x) + y: relu comes last, after the addition.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: torch.relu(2 * x) + y,
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is relu(2 * x - y): the kernel subtracts.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: torch.relu(2 * x - y),
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is relu(x + 2 * y): y was doubled in place of x.",
            concept="arithmetic",
            see="m08.lesson.compile",
            model=lambda x, y: torch.relu(x + 2 * y),
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The result was stored row by row into a tensor that is transposed: empty_like keeps the strides of its "
            "argument. Call .contiguous() on it first.",
            concept="strides",
            see="m03.lesson.strides",
            model=result_keeps_strides,
        ),
        Mistake(
            cause="assumes_contiguous",
            message="y was read in memory order, and out has its strides: x and y do not meet. Call .contiguous() on both.",
            concept="strides",
            see="m03.lesson.strides",
            model=transposed_y_with_transposed_result,
        ),
        Mistake(
            cause="assumes_contiguous",
            message="An operand was read in memory order, as if it were contiguous: 2 * x of a transposed x is "
            "transposed as well. Call .contiguous() on both before the launch.",
            concept="strides",
            see="m03.lesson.strides",
            model=memory_order,
        ),
    ),
    hints=(
        "Write it as if there were no compiler: three lines of PyTorch and one launch. Then look for whatever needs a "
        "tensor's value in Python.",
        "Shapes, strides and dtypes are known while the function is traced, so n = out.numel(), if n > 0, "
        ".contiguous() and a grid lambda are all fine.",
        "add_kernel[(triton.cdiv(n, 1024),)]((2 * x).contiguous(), y.contiguous(), out, n, BLOCK=1024), "
        "then torch.relu(out)",
    ),
)
