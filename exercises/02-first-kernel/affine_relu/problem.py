import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def reference(x, scale, bias):
    return torch.relu(x * scale + bias)


def work(x, scale, bias):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=3 * x.numel())


def magnitude(x, scale, bias):
    """What the rounding of x * scale + bias grows with, also where the two nearly cancel."""
    return (x.double() * scale).abs() + abs(bias)


def case(
    n: int,
    scale: float = 0.5,
    bias: float = 1.0,
    dtype: torch.dtype = torch.float32,
    needs_gpu: str | None = None,
) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), scale, bias

    return Case(f"n={n} scale={scale} bias={bias} {str(dtype).removeprefix('torch.')}", make, needs_gpu)


def large_values(draw: Draw):
    return draw.normal(1500, scale=1e30), -3.0, 2.5


def with_specials(draw: Draw):
    x = draw.normal(1100)
    x[0], x[1], x[2], x[1099] = float("nan"), float("inf"), float("-inf"), float("nan")
    return x, 1.5, -0.25


def nan_becomes_zero(x, scale, bias):
    y = reference(x, scale, bias)
    return torch.where(y.isnan(), torch.zeros_like(y), y) if bool(y.isnan().any()) else None


PROBLEM = Problem(
    slug="affine_relu",
    title="Affine and ReLU, fused",
    entry="affine_relu",
    parameters=("x", "scale", "bias"),
    reference=reference,
    work=work,
    tolerance=Tolerance(scale=magnitude),
    cases=(
        case(1000, -0.7, 0.1),  # about half of it is negative: every step shows
        case(1, 0.5, 10.0),
        case(7),
        case(0),
        case(1023),
        case(1024, 1.0, 0.0),
        case(1025, 0.5, -0.5),
        case(4099, 0.3, 0.2, torch.float16),
        # times a runtime float, a bfloat16 tile is float32 when compiled, but not in the interpreter
        case(4099, 0.3, 0.2, torch.bfloat16, needs_gpu="the interpreter computes bfloat16 arithmetic wrongly"),
        case(1031, 0.0, -1.0),
        Case("large values, n=1500", large_values),
        Case("inf and nan, n=1100", with_specials),
    ),
    timing=Timing("n=2^26 float32", lambda draw: (draw.normal(2**26), 0.5, 1.0)),
    mistakes=(
        Mistake(
            cause="missing_activation",
            message="The output is x * scale + bias: negative values were not set to 0.",
            concept="fusion",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: x * scale + bias,
        ),
        Mistake(
            cause="bias_before_scale",
            message="The output is relu((x + bias) * scale): multiply first, then add the bias.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: torch.relu((x + bias) * scale),
        ),
        Mistake(
            cause="activation_before_affine",
            message="The output is relu(x) * scale + bias: the ReLU comes last, after the bias.",
            concept="fusion",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: torch.relu(x) * scale + bias,
        ),
        Mistake(
            cause="activation_before_bias",
            message="The output is relu(x * scale) + bias: the ReLU comes last, after the bias.",
            concept="fusion",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: torch.relu(x * scale) + bias,
        ),
        Mistake(
            cause="step_left_out",
            message="The output is relu(x * scale): the bias was not added.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: torch.relu(x * scale),
        ),
        Mistake(
            cause="step_left_out",
            message="The output is relu(x + bias): x was not multiplied by scale.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: torch.relu(x + bias),
        ),
        Mistake(
            cause="arguments_exchanged",
            message="The output is relu(x * bias + scale): scale and bias are exchanged. The launch passes arguments by position.",
            concept="launch",
            see="m02.lesson.launch",
            model=lambda x, scale, bias: torch.relu(x * bias + scale),
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is |x * scale + bias|: relu sets negative values to 0, it does not turn them round.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, scale, bias: (x * scale + bias).abs(),
            line=r"(?m)^[^#\n]*tl\.abs\(",
        ),
        Mistake(
            cause="nan_becomes_zero",
            message="A NaN came out as 0. PyTorch's relu keeps it: tl.where(y < 0, 0.0, y) does, tl.maximum(y, 0.0) does not "
            "on a GPU, unless it is given propagate_nan=tl.PropagateNan.ALL.",
            concept="numerics",
            see="m02.lesson.fusion",
            model=nan_becomes_zero,
            line=r"(?m)^[^#\n]*(?:tl\.maximum\(|tl\.where\(.*>)",
        ),
    ),
    hints=(
        "How many tensors does the unfused version write to memory, and how many does yours?",
        "Load a tile and cast it to float32, then do all three operations on the tile in registers, then store once. "
        "scale and bias are plain numbers: use them as they are.",
        "x = tl.load(x_ptr + offs, mask=mask).to(tl.float32); y = x * scale + bias; y = tl.where(y < 0, 0.0, y); tl.store(…)",
    ),
)
