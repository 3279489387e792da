import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

HEIGHTS = (1, 2, 4, 8, 16)  # what BLOCK_M may be
WIDTHS = tuple(2**k for k in range(1, 13))  # what BLOCK_N may be


def reference(x):
    return torch.softmax(x, dim=1)


def work(x):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=5 * x.numel())


def magnitude(x):
    """The rounding of x - m reaches the exponential: exp(d) is off by about |d| eps, and the sum by its own eps."""
    if x.numel() == 0:
        return x
    distance = (x.amax(dim=1, keepdim=True) - x).clamp(max=200.0)
    return torch.softmax(x, dim=1) * (2.0 + distance)


def case(m: int, n: int, dtype: torch.dtype = torch.float32, scale: float = 1.0, mean: float = 0.0) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')}"
    name += f" of size {scale:g}" if scale != 1.0 else ""
    name += f" about {mean:g}" if mean else ""
    return Case(name, lambda draw: ((draw.normal(m, n, scale=scale) + mean).to(dtype),))


def window(draw: Draw):
    return (draw.normal(9, 500)[2:7, 100:400],)


def padded_with_zero(x):
    m, n = x.shape
    padding = (1 << (n - 1).bit_length()) - n
    if x.numel() == 0 or padding == 0:
        return None
    wide = torch.cat([x.double(), torch.zeros(m, padding, dtype=torch.float64)], dim=1)
    return torch.softmax(wide, dim=1)[:, :n].to(x.dtype)


def without_maximum(x):
    e = torch.exp(x.float())
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)


def without_division(x):
    if x.numel() == 0:
        return None
    wide = x.double()
    return torch.exp(wide - wide.amax(dim=1, keepdim=True)).to(x.dtype)


def near(out, guess) -> bool:
    slack = 16 * torch.finfo(out.dtype).eps
    return torch.allclose(out.double(), guess.double(), rtol=slack, atol=slack)


def of_bands(x, softmax):
    """`softmax` of each band of BLOCK_M rows, for some height."""
    if x.shape[0] < 2 or x.shape[1] == 0:
        return None
    right = reference(x)
    guesses = [torch.cat([softmax(band) for band in x.double().split(height)]) for height in HEIGHTS]

    def matches(out) -> bool:
        return not near(out, right) and any(near(out, guess) for guess in guesses)

    return matches


def over_the_whole_tile(band):
    return torch.softmax(band.flatten(), dim=0).reshape(band.shape)


def along_the_columns(band):
    return torch.softmax(band, dim=0)


def too_narrow(x):
    """The softmax of a row's first BLOCK_N elements; the others were never looked at."""
    n = x.shape[1]
    narrow = [width for width in WIDTHS if width < n]
    if x.numel() == 0 or not narrow:
        return None
    guesses = [(width, reference(x[:, :width])) for width in narrow]
    return lambda out: any(near(out[:, :width], guess) for width, guess in guesses)


def one_row_a_program(x):
    """Rows of the first bands only: each program wrote one row, or moved on by one row and not by BLOCK_M."""
    m = x.shape[0]
    right = reference(x)

    def matches(out) -> bool:
        rows = [near(o, r) for o, r in zip(out, right, strict=True)]
        return any(rows == [i % height == 0 for i in range(m)] for height in HEIGHTS if 1 < height < m)

    return matches if m > 2 and x.shape[1] > 1 else None


PROBLEM = Problem(
    slug="heuristic_softmax",
    title="Softmax with heuristics",
    entry="heuristic_softmax",
    parameters=("x",),
    contiguous=True,
    autotuned=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(terms=8.0, scale=magnitude),
    cases=(
        case(5, 5, mean=-4.0),
        case(1, 1),
        case(7, 4),
        case(0, 5),
        case(3, 127),
        case(6, 128),
        case(9, 129),
        case(2, 781, mean=-5.0),
        case(5, 100, scale=100.0),
        case(4, 64, mean=-1000.0),
        case(3, 1025),
        case(3, 1000, torch.float16, scale=30.0),
        case(3, 300, torch.bfloat16),
        Case("5 x 300 window of a wider matrix", window),
        case(1, 4096),
    ),
    timing=Timing("262144 x 512 float16", lambda draw: (draw.normal(262144, 512, dtype=torch.float16),)),
    mistakes=(
        Mistake(
            cause="missing_max_subtraction",
            message="exp overflows (or every term is 0): subtract the maximum of the row before the exponential.",
            concept="numerics",
            see="m04.lesson.softmax",
            model=without_maximum,
            line=r"tl\.exp2?\(",
        ),
        Mistake(
            cause="wrong_fill_for_max",
            message="Rows do not sum to 1: padded lanes hold 0, which enters the maximum and the sum. "
            "Load them with other=-float('inf').",
            concept="masking",
            see="m03.lesson.fill",
            model=padded_with_zero,
            line=r"other=\s*0|tl\.load\((?!.*inf)",
        ),
        Mistake(
            cause="missing_denominator",
            message="The exponentials are stored without the division by their sum.",
            concept="reductions",
            see="m04.lesson.softmax",
            model=without_division,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="reduced_over_whole_tile",
            message="All rows of a tile sum to 1 together: maximum and sum were taken over the whole tile. Reduce along "
            "axis=1, and keep the dimension.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=lambda x: of_bands(x, over_the_whole_tile),
            line=r"tl\.sum\(",
        ),
        Mistake(
            cause="wrong_axis",
            message="The columns of a tile sum to 1: the reductions run along axis 0, over the tile's rows. A row's "
            "elements lie along axis 1.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=lambda x: of_bands(x, along_the_columns),
            line=r"axis=0, keep_dims|tl\.sum\(",
        ),
        Mistake(
            cause="columns_beyond_block",
            message="Only the first columns of a row were looked at: BLOCK_N is smaller than the row. It must be the least "
            "power of two that covers n_cols.",
            concept="heuristics",
            see="m05.lesson.heuristics",
            model=too_narrow,
            line=r"[\"']BLOCK_N[\"']\s*:",
        ),
        Mistake(
            cause="rows_skipped",
            message="Only the first row of each tile is there: the program owns BLOCK_M rows, from pid * BLOCK_M on.",
            concept="grid",
            see="m03.lesson.tiles",
            model=one_row_a_program,
            line=r"program_id",
        ),
    ),
    hints=(
        "A launch enters the decorators from the top. Who knows BLOCK_M at that moment, and who wants to read it?",
        "autotune on top hands BLOCK_M down; a heuristic is called with a dictionary of all arguments so far, the "
        "results of earlier heuristics included. In the kernel both reductions run along axis=1 with keep_dims=True.",
        "@triton.heuristics({'BLOCK_N': lambda a: triton.next_power_of_2(a['n_cols']), 'num_warps': lambda a: "
        "min(max(a['BLOCK_M'] * a['BLOCK_N'] // 512, 1), 16)}), between autotune and jit",
    ),
    fixed={"softmax_kernel": "the launcher launches it"},
)
