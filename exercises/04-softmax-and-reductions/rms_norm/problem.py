import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def reference(x, weight, eps):
    wide = x if x.dtype == torch.float64 else x.float()
    mean_square = wide.square().mean(dim=-1, keepdim=True)
    return (wide * torch.rsqrt(mean_square + eps) * weight).to(x.dtype)


def eager(x, weight, eps):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)


def work(x, weight, eps):
    return Work(bytes=(2 * x.numel() + weight.numel()) * x.element_size(), flops=5 * x.numel())


def weight_of(draw: Draw, n: int, dtype: torch.dtype):
    return draw.uniform(n, low=0.5, high=2.0, dtype=dtype)


def case(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0, eps: float = 1e-6) -> Case:
    name = f"{' x '.join(map(str, shape))} {str(dtype).removeprefix('torch.')}"
    name += f" of size {scale:g}" if scale != 1.0 else ""
    name += f", eps {eps:g}" if eps != 1e-6 else ""

    def make(draw: Draw):
        # 0.5 off 0, so that the mean is not
        x = (draw.normal(*shape) + 0.5).mul(scale).to(dtype)
        return x, weight_of(draw, shape[-1], dtype), eps

    return Case(name, make)


def with_rows_of_zero(draw: Draw):
    x = draw.normal(4, 100)
    x[1] = 0.0
    x[3] = 0.0
    return x, weight_of(draw, 100, torch.float32), 1e-6


def normed(x, weight, divisor_of):
    """x times the weight over what `divisor_of` makes of a row, in float64."""
    if x.numel() == 0:
        return None
    wide = x.double()
    return (wide / divisor_of(wide) * weight.double()).to(x.dtype)


def mean_square(wide):
    return wide.square().mean(dim=-1, keepdim=True)


def divided_by_the_tile(x, weight, eps):
    n = x.shape[-1]
    block = 1 << (n - 1).bit_length()
    return None if block == n else normed(x, weight, lambda t: (mean_square(t) * n / block + eps).sqrt())


def padded_with_one(x, weight, eps):
    n = x.shape[-1]
    padding = (1 << (n - 1).bit_length()) - n
    return None if padding == 0 else normed(x, weight, lambda t: (mean_square(t) + padding / n + eps).sqrt())


def squares_overflow(x, weight, eps):
    """A float16 square past 65504 is inf, and so is the mean: everything is divided by inf."""
    if x.dtype != torch.float16 or x.numel() == 0 or bool((x.double().abs().amax(dim=-1) < 260).any()):
        return None
    return torch.zeros_like(x)


def mean_taken_off(x, weight, eps):
    if x.numel() == 0:
        return None
    wide = x.double()
    centred = wide - wide.mean(dim=-1, keepdim=True)
    return (centred * torch.rsqrt(mean_square(centred) + eps) * weight.double()).to(x.dtype)


def first_row_for_all(x, weight, eps):
    if x.numel() == 0:
        return None
    rows = x.reshape(-1, x.shape[-1])
    return reference(rows[:1], weight, eps).expand(rows.shape).reshape(x.shape).clone()


PROBLEM = Problem(
    slug="rms_norm",
    title="RMS norm",
    entry="rms_norm",
    parameters=("x", "weight", "eps"),
    contiguous=True,
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(terms=8.0, scale=reference),
    cases=(
        case(2, 5),
        case(2, 4),
        case(3, 1),
        case(0, 5),
        case(2, 0, 7),
        case(7),
        case(3, 127),
        case(3, 128),
        case(3, 129),
        case(2, 3, 100),
        case(2, 781),
        case(3, 100, scale=1e-3, eps=1e-5),
        Case("4 x 100, two rows of 0", with_rows_of_zero),
        case(2, 257, scale=1e4),
        case(2, 1000, dtype=torch.float16),
        case(2, 1000, dtype=torch.float16, scale=300.0),
        case(2, 1025, dtype=torch.bfloat16),
        case(1, 8192),
    ),
    timing=Timing(
        "32768 x 4096 bfloat16",
        lambda draw: (draw.normal(32768, 4096, dtype=torch.bfloat16), weight_of(draw, 4096, torch.bfloat16), 1e-6),
    ),
    sizes=tuple(
        Timing(
            f"{m} x {n} bfloat16",
            lambda draw, m=m, n=n: (
                draw.normal(m, n, dtype=torch.bfloat16),
                weight_of(draw, n, torch.bfloat16),
                1e-6,
            ),
        )
        for m, n in ((131072, 1024), (65536, 2048), (16384, 8192))
    ),
    mistakes=(
        Mistake(
            cause="divided_by_block",
            message="The sum of squares is divided by BLOCK_N, the lanes of the tile. The row has n_cols elements.",
            concept="masking",
            see="m03.lesson.fill",
            model=divided_by_the_tile,
            line=r"/\s*BLOCK_N",
        ),
        Mistake(
            cause="wrong_fill_for_sum",
            message="Padded lanes hold 1, and each adds to the sum of the squares; the identity of a sum is 0.",
            concept="masking",
            see="m03.lesson.fill",
            model=padded_with_one,
            line=r"tl\.load\(x_ptr.*other=",
        ),
        Mistake(
            cause="sum_instead_of_mean",
            message="The sum of the squares is not divided by N: take the mean.",
            concept="reductions",
            see="m04.exercise.rms-norm",
            model=lambda x, weight, eps: normed(x, weight, lambda t: (mean_square(t) * t.shape[-1] + eps).sqrt()),
            line=r"(?m)^[^#\n]*tl\.sum\(",
        ),
        Mistake(
            cause="squared_in_half",
            message="The squares overflowed: x * x is a float16, and 65504 is the largest. Cast the row to float32 right "
            "after the load, before the square.",
            concept="numerics",
            see="m04.lesson.dtype",
            model=squares_overflow,
            line=r"tl\.load\(x_ptr",
        ),
        Mistake(
            cause="missing_eps",
            message="eps is not added to the mean of the squares: a row of 0 becomes 0/0.",
            concept="numerics",
            see="m04.exercise.rms-norm",
            model=lambda x, weight, eps: normed(x, weight, lambda t: mean_square(t).sqrt()),
            line=r"(?m)^[^#\n]*r?sqrt",
        ),
        Mistake(
            cause="eps_outside_root",
            message="eps was added to the root; it belongs under it: sqrt(mean of squares + eps).",
            concept="numerics",
            see="m04.exercise.rms-norm",
            model=lambda x, weight, eps: normed(x, weight, lambda t: mean_square(t).sqrt() + eps),
            line=r"(?m)^[^#\n]*sqrt",
        ),
        Mistake(
            cause="missing_square_root",
            message="The row is divided by the mean of the squares; divide by its root.",
            concept="numerics",
            see="m04.exercise.rms-norm",
            model=lambda x, weight, eps: normed(x, weight, lambda t: mean_square(t) + eps),
            line=r"(?m)^[^#\n]*/[^#\n]*eps",
        ),
        Mistake(
            cause="mean_subtracted",
            message="The mean was taken off: that is layer norm. RMS norm leaves it in.",
            concept="numerics",
            see="m04.exercise.rms-norm",
            model=mean_taken_off,
            line=r"(?m)^[^#\n]*-\s*\w*mean",
        ),
        Mistake(
            cause="missing_weight",
            message="The result is not multiplied by weight.",
            concept="fusion",
            see="m04.exercise.rms-norm",
            model=lambda x, weight, eps: reference(x, torch.ones_like(weight), eps),
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row of the output is that of row 0: the address of x lacks row * n_cols.",
            concept="strides",
            see="m03.lesson.strides",
            model=first_row_for_all,
            line=r"tl\.load\(x_ptr(?!.*n_cols \+)",
        ),
    ),
    hints=(
        "How many rows has a tensor of shape (2, 3, 100), and where in memory does row 4 begin?",
        "No mean is subtracted, so padding with 0 stays 0 in the square. Cast, square, sum, divide by n_cols, and let "
        "the store round. rows = x.numel() // x.shape[-1].",
        "x = tl.load(…, other=0.0).to(tl.float32); y = x * tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps) * weight",
    ),
)
