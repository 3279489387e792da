import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES


def reference(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, eps)


def work(x, weight, bias, eps, grad):
    # value: x in, out out; gradients: x and grad in, grad_x out; weight in twice, bias in, two gradients out
    elements = 5 * x.numel() + 5 * weight.numel()
    return Work(bytes=elements * x.element_size() + 16 * x.shape[0], flops=20 * x.numel())


def magnitudes(x, weight, bias, eps, grad):
    """Of out, grad_x, grad_weight and grad_bias; the rounding of the mean reaches xhat divided by the deviation."""
    centred = x - x.mean(dim=1, keepdim=True)
    rstd = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    xhat = (x.abs() + x.abs().mean(dim=1, keepdim=True) + 2 * centred.abs()) * rstd
    g = (grad * weight).abs()
    along = g.mean(dim=1, keepdim=True) + xhat * (g * xhat).mean(dim=1, keepdim=True)
    return (
        xhat * weight.abs() + bias.abs(),
        rstd * (g + along),
        (grad.abs() * xhat).sum(dim=0),
        grad.abs().sum(dim=0),
    )


def inputs(draw: Draw, m: int, n: int, dtype: torch.dtype = torch.float32):
    x = (draw.normal(m, n, scale=2.0) + 1.0).to(dtype)
    return x, draw.uniform(n, low=0.5, high=2.0, dtype=dtype), draw.normal(n, dtype=dtype), 1e-5


def case(
    m: int, n: int, dtype: torch.dtype = torch.float32, offline: bool = True, needs_gpu: str | None = None
) -> Case:
    def make(draw: Draw):
        return *inputs(draw, m, n, dtype), draw.normal(m, n, dtype=dtype)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make, needs_gpu, offline)


def expanded_gradient(draw: Draw):
    return *inputs(draw, 6, 40), draw.normal(1, 1).expand(6, 40)


def expanded_rows(draw: Draw):
    return *inputs(draw, 6, 40), draw.normal(1, 40).expand(6, 40)


def transposed_gradient(draw: Draw):
    return *inputs(draw, 6, 40), draw.normal(40, 6).t()


def transposed_input(draw: Draw):
    _, weight, bias, eps = inputs(draw, 6, 40)
    return draw.normal(40, 6).t(), weight, bias, eps, draw.normal(6, 40)


PROBLEM = Problem(
    slug="layer_norm_backward",
    title="Layer norm, backward",
    entry="layer_norm",
    parameters=("x", "weight", "bias", "eps"),
    contiguous=True,
    reference=reference,
    work=work,
    call="gradient",
    differentiable=("x", "weight", "bias"),
    tolerance=Tolerance(terms=8.0, scale=magnitudes),
    cases=(
        case(6, 5),
        case(1, 1, offline=False),
        case(1, 8, offline=False),
        case(4, 64, offline=False),
        case(5, 33, offline=False),
        case(23, 129),
        Case("gradient expanded from one number, 6 x 40", expanded_gradient, offline=False),
        Case("gradient expanded over rows, 6 x 40", expanded_rows, offline=False),
        Case("transposed gradient, 6 x 40", transposed_gradient, offline=False),
        Case("transposed input, 6 x 40", transposed_input, offline=False),
        case(9, 300, torch.float16),
        case(7, 257, torch.bfloat16),
        case(2, 1030),
        case(70, 8, offline=False),  # 35 programs
        case(2000, 8, needs_gpu="the interpreter takes seconds for so many rows"),  # 528 programs
    ),
    timing=Timing(
        "16384 x 4096 bfloat16, value and gradients",
        lambda draw: (
            *inputs(draw, 16384, 4096, torch.bfloat16),
            draw.normal(16384, 4096, dtype=torch.bfloat16),
        ),
    ),
    mistakes=MISTAKES,
    hints=(
        "grad_x needs the row only, grad_weight needs every row. How many programs would add to grad_weight[0] if each "
        "owned one row, and who could add up their numbers instead?",
        "Keep two tiles of running sums through the loop over range(program, n_rows, num_programs). After the loop store "
        "them in row `program` of the partial arrays; the second kernel is column sums. Make grad_out contiguous first.",
        "grad_x = rstd * (g - tl.sum(g, axis=0) / n_cols - xhat * (tl.sum(g * xhat, axis=0) / n_cols)); "
        "sum_weight += grad * xhat; sum_bias += grad; return grad_x, grad_weight, grad_bias, None",
    ),
)
