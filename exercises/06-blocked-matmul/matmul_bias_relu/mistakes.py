"""What the output would be if a mistake had been made, and the mistakes by name."""

import torch

from grader.problem import Mistake

BLOCK = 32  # of the launcher the stub gives: BLOCK along M, N and K


def widened(x):
    """At least float32: what the accumulator holds."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def affine(a, b, bias):
    return widened(a) @ widened(b) + widened(bias)


def relu(x):
    return torch.relu(x)  # keeps NaN


def cast_before_the_bias(a, b, bias):
    c = (widened(a) @ widened(b)).to(a.dtype)
    return relu(widened(c) + widened(bias)).to(a.dtype)


def bias_in_every_step(a, b, bias):
    steps = -(-a.shape[1] // BLOCK)
    return None if steps < 2 else relu(widened(a) @ widened(b) + steps * widened(bias)).to(a.dtype)


def relu_in_every_step(a, b, bias):
    if a.shape[1] <= BLOCK:
        return None
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for k in range(0, a.shape[1], BLOCK):
        acc = relu(acc + widened(a[:, k : k + BLOCK]) @ widened(b[k : k + BLOCK]))
    return relu(acc + widened(bias)).to(a.dtype)


def bias_by_row(a, b, bias):
    """The bias of column i added to row i; past the rows' own mask it would be read out of bounds."""
    m, n = a.shape[0], b.shape[1]
    return relu(widened(a) @ widened(b) + widened(bias)[:m, None]).to(a.dtype) if 1 < m <= n else None


def bias_tile_turned(a, b, bias):
    """The bias of a tile's columns, given a column axis: value j of a tile is added to its row j."""
    (m, n), missing = (a.shape[0], b.shape[1]), -b.shape[1] % BLOCK
    rows, columns = (torch.arange(size, device=a.device) for size in (m, n))
    tile = torch.nn.functional.pad(widened(bias), (0, missing))
    added = tile[columns[None, :] // BLOCK * BLOCK + rows[:, None] % BLOCK]
    return relu(widened(a) @ widened(b) + added).to(a.dtype)


def bias_of_the_first_tile(a, b, bias):
    n = bias.shape[0]
    if n <= BLOCK:
        return None
    return relu(affine(a, b, bias[torch.arange(n, device=bias.device) % BLOCK])).to(a.dtype)


def bias_read_flat(a, b, bias):
    if bias.stride(0) in (0, 1):
        return None
    return relu(affine(a, b, torch.as_strided(bias, bias.shape, (1,)))).to(a.dtype)


def nan_lost(a, b, bias):
    out = affine(a, b, bias)
    return torch.where(out.isnan(), 0.0, relu(out)).to(a.dtype) if bool(out.isnan().any()) else None


def whole_k_tiles(a, b, bias):
    k = a.shape[1] // BLOCK * BLOCK
    return None if k == a.shape[1] else relu(affine(a[:, :k], b[:k], bias)).to(a.dtype)


def half_accumulator(a, b, bias):
    if a.shape[1] <= BLOCK:
        return None
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for k in range(0, a.shape[1], BLOCK):
        acc = (acc + widened(a[:, k : k + BLOCK]) @ widened(b[k : k + BLOCK])).to(a.dtype).float()
    return relu(acc + widened(bias)).to(a.dtype)


MISTAKES = (
    Mistake(
        cause="activation_after_cast",
        message="The sum is rounded to the output's dtype before the bias is added: what the bias takes away leaves a large "
        "rounding error, and a sum past 65504 is inf by then. Add and clip in float32, cast last.",
        concept="numerics",
        see="m06.lesson.precision",
        model=cast_before_the_bias,
        line=r"\.to\((tl\.(b?float16)|\w+\.dtype\.element_ty|\w+\.dtype)\)",
    ),
    Mistake(
        cause="bias_every_step",
        message="The bias is added in each step along K: add it once, after the loop, or start the accumulator with it.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=bias_in_every_step,
        line=r"acc\s*(\+=|=).*bias",
    ),
    Mistake(
        cause="activation_inside_loop",
        message="ReLU is applied to partial sums, in each step along K: a sum may be negative on the way and positive in the end.",
        concept="k loop",
        see="m06.lesson.precision",
        model=relu_in_every_step,
        line=r"tl\.(where|maximum)\(",
    ),
    Mistake(
        cause="bias_by_row",
        message="The bias is added along the rows: value i belongs to column i, so it is bias[None, :], indexed by offs_n.",
        concept="tiles",
        see="m03.lesson.tiles",
        model=bias_by_row,
        line=r"bias.*\[:, None\]|bias_ptr\s*\+\s*offs_m",
    ),
    Mistake(
        cause="bias_by_row",
        message="The bias is added along the rows of each tile: value i belongs to column i, so it is bias[None, :].",
        concept="tiles",
        see="m03.lesson.tiles",
        model=bias_tile_turned,
        line=r"bias.*\[:, None\]",
    ),
    Mistake(
        cause="same_tile_again",
        message="Every tile adds the first BLOCK_N values of the bias: its offsets are offs_n, not tl.arange(0, BLOCK_N).",
        concept="offsets",
        see="m06.lesson.pointers",
        model=bias_of_the_first_tile,
        line=r"tl\.load\(\s*bias_ptr",
    ),
    Mistake(
        cause="activation_before_bias",
        message="ReLU comes before the bias: the task is relu(A @ B + bias).",
        concept="fusion",
        see="m06.lesson.precision",
        model=lambda a, b, bias: (relu(widened(a) @ widened(b)) + widened(bias)).to(a.dtype),
        line=r"tl\.(where|maximum)\(",
    ),
    Mistake(
        cause="missing_activation",
        message="The negative values are still there: ReLU is missing.",
        concept="fusion",
        see="m06.lesson.precision",
        model=lambda a, b, bias: affine(a, b, bias).to(a.dtype),
    ),
    Mistake(
        cause="missing_bias",
        message="The bias is missing: this is relu(A @ B).",
        concept="fusion",
        see="m06.lesson.precision",
        model=lambda a, b, bias: relu(widened(a) @ widened(b)).to(a.dtype),
    ),
    Mistake(
        cause="nan_becomes_zero",
        message="A NaN of the sum comes out as 0: tl.maximum(x, 0) drops NaN. Write tl.where(x < 0, 0.0, x).",
        concept="numerics",
        see="m02.lesson.fusion",
        model=nan_lost,
        line=r"tl\.(maximum|where)\(",
    ),
    Mistake(
        cause="assumes_contiguous",
        message="The bias was read as if its values lay side by side: multiply offs_n by stride_bias.",
        concept="strides",
        see="m03.lesson.strides",
        model=bias_read_flat,
        line=r"tl\.load\(\s*bias_ptr",
    ),
    Mistake(
        cause="k_tail_dropped",
        message="Only whole tiles along K are added: the loop runs K // BLOCK_K times, and the rest of K is lost.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=whole_k_tiles,
        line=r"range\([^)]*K\s*//\s*BLOCK_K",
    ),
    Mistake(
        cause="low_precision_accumulator",
        message="The running sum is rounded to 16 bits after every step along K. Keep it in float32 and cast once.",
        concept="numerics",
        see="m06.lesson.precision",
        model=half_accumulator,
        line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
    ),
)
