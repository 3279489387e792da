import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES


def reference(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[1],), weight, bias, eps)


def work(x, weight, bias, eps):
    elements = 2 * x.numel() + weight.numel() + bias.numel()
    return Work(bytes=elements * x.element_size(), flops=8 * x.numel())


def magnitude(x, weight, bias, eps):
    """The rounding of the mean, of the size of the row's values, reaches the result divided by the deviation."""
    centred = x - x.mean(dim=1, keepdim=True)
    rstd = torch.rsqrt(centred.square().mean(dim=1, keepdim=True) + eps)
    size = x.abs().mean(dim=1, keepdim=True) + x.abs() + 2 * centred.abs()
    return size * rstd * weight.abs() + bias.abs()


def parameters_of(draw: Draw, n: int, dtype: torch.dtype):
    # about 1 with a spread, and different from column to column
    return draw.uniform(n, low=0.5, high=2.0, dtype=dtype), draw.normal(n, dtype=dtype)


def case(
    m: int, n: int, dtype: torch.dtype = torch.float32, mean: float = 1.0, spread: float = 1.0, eps: float = 1e-5
) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')}"
    if (mean, spread) != (1.0, 1.0):
        name += f", {mean:g} give or take {spread:g}"
    if eps != 1e-5:
        name += f", eps {eps:g}"

    def make(draw: Draw):
        x = (draw.normal(m, n, scale=spread) + mean).to(dtype)
        return (x, *parameters_of(draw, n, dtype), eps)

    return Case(name, make)


def equal_values(draw: Draw):
    return (draw.full(3, 100, value=2.0), *parameters_of(draw, 100, torch.float32), 1e-3)


def window(draw: Draw):
    return (draw.normal(9, 700)[2:7, 100:400], *parameters_of(draw, 300, torch.float32), 1e-5)


PROBLEM = Problem(
    slug="layer_norm",
    title="Layer norm",
    entry="layer_norm",
    parameters=("x", "weight", "bias", "eps"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(terms=8.0, scale=magnitude),
    cases=(
        case(2, 5),
        case(2, 4),
        case(3, 1),
        case(0, 5),
        case(3, 127),
        case(3, 128),
        case(3, 129),
        case(2, 781),
        case(3, 100, mean=0.0, spread=0.01, eps=0.01),
        Case("3 x 100 all equal, eps 0.001", equal_values),
        case(3, 257, mean=3000.0),
        case(2, 1000, mean=-50.0, spread=20.0),
        case(2, 1000, torch.float16),
        case(2, 1000, torch.float16, mean=100.0, spread=10.0),
        case(2, 1025, torch.bfloat16),
        Case("5 x 300 window of a wider matrix", window),
        case(1, 8192),
    ),
    timing=Timing(
        "32768 x 4096 bfloat16",
        lambda draw: (
            draw.normal(32768, 4096, dtype=torch.bfloat16),
            *parameters_of(draw, 4096, torch.bfloat16),
            1e-5,
        ),
    ),
    sizes=tuple(
        Timing(
            f"{m} x {n} bfloat16",
            lambda draw, m=m, n=n: (
                draw.normal(m, n, dtype=torch.bfloat16),
                *parameters_of(draw, n, torch.bfloat16),
                1e-5,
            ),
        )
        for m, n in ((131072, 1024), (65536, 2048), (16384, 8192))
    ),
    mistakes=MISTAKES,
    hints=(
        "Take the row [1, 3, 5] in a tile of four lanes. What does the fourth lane hold after the load, and what after "
        "the mean was subtracted?",
        "Two sums over the same tile: the first gives the mean, the second the mean of (x - mean)^2. Divide both by "
        "n_cols. Between them the padded lanes must become 0 again.",
        "centred = tl.where(mask, x - mean, 0.0); var = tl.sum(centred * centred, axis=0) / n_cols; "
        "y = centred * tl.rsqrt(var + eps) * weight + bias",
    ),
)
