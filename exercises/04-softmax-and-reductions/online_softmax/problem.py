import math

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 1024  # of the launcher the stub gives


def reference(x):
    return torch.softmax(x, dim=1)


def work(x):
    """The second walk reads the row again: from device memory when the rows in flight exceed the L2."""
    return Work(bytes=2 * x.numel() * x.element_size(), flops=8 * x.numel())


def magnitude(x, *_):
    """The rounding of x - m reaches the exponential: exp(d) is off by about |d| eps, and the sum by its own eps."""
    if x.numel() == 0:
        return x
    finite = torch.nan_to_num(x, neginf=0.0)
    distance = (finite.amax(dim=1, keepdim=True) - finite).clamp(max=200.0)
    return torch.softmax(x, dim=1) * (4.0 + distance)


def case(m: int, n: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')}" + (f" of size {scale:g}" if scale != 1.0 else "")
    return Case(name, lambda draw: (draw.normal(m, n, dtype=dtype, scale=scale),))


def rising(draw: Draw):
    """Every tile raises the maximum."""
    x = draw.normal(2, 3 * BLOCK + 5)
    return (x + torch.arange(x.shape[1]) / 256.0,)


def all_negative(draw: Draw):
    return (draw.uniform(2, BLOCK + 7, low=-9.0, high=-5.0),)


def masked_start(draw: Draw):
    """The whole first tile is -inf, as for a masked prefix of attention scores."""
    x = draw.normal(2, 2 * BLOCK + 3)
    x[:, : BLOCK + 1] = float("-inf")
    return (x,)


def sliced_rows(draw: Draw):
    return (draw.normal(3, 2 * BLOCK)[:, : BLOCK + 100],)


def tiles(x: torch.Tensor) -> list[torch.Tensor]:
    return list(x.double().split(BLOCK, dim=1))


def never_rescaled(x: torch.Tensor) -> torch.Tensor | None:
    """Each tile's sum is taken against the maximum so far and never moved to a later one."""
    if x.numel() == 0 or x.shape[1] <= BLOCK:
        return None
    m = torch.full((x.shape[0], 1), float("-inf"), dtype=torch.float64)
    total = torch.zeros_like(m)
    for tile in tiles(x):
        m = torch.maximum(m, tile.amax(dim=1, keepdim=True))
        total = total + torch.exp(tile - m).sum(dim=1, keepdim=True)
    return _unless_nan(torch.exp(x.double() - m) / total, x)


def of_tiles(x: torch.Tensor, pick) -> torch.Tensor | None:
    """Maximum over the row; the sum over what `pick` makes of the row's tiles."""
    if x.numel() == 0 or x.shape[1] <= BLOCK:
        return None
    m = x.double().amax(dim=1, keepdim=True)
    total = sum(torch.exp(tile - m).sum(dim=1, keepdim=True) for tile in pick(tiles(x)))
    return _unless_nan(torch.exp(x.double() - m) / total, x)


def sum_of_last_tile(x: torch.Tensor) -> torch.Tensor | None:
    return of_tiles(x, lambda all_tiles: all_tiles[-1:])


def first_tile_statistics(x: torch.Tensor) -> torch.Tensor | None:
    """Maximum and sum of the first tile only."""
    if x.numel() == 0 or x.shape[1] <= BLOCK:
        return None
    m = tiles(x)[0].amax(dim=1, keepdim=True)
    total = torch.exp(tiles(x)[0] - m).sum(dim=1, keepdim=True)
    return _unless_nan(torch.exp(x.double() - m) / total, x)


def first_tile_again(x: torch.Tensor) -> torch.Tensor | None:
    """The first walk reads the first tile in every turn, under the mask of the tile it should read."""
    if x.numel() == 0 or x.shape[1] <= BLOCK:
        return None
    first = tiles(x)[0]
    m = first.amax(dim=1, keepdim=True)
    total = sum(torch.exp(first[:, : tile.shape[1]] - m).sum(dim=1, keepdim=True) for tile in tiles(x))
    return _unless_nan(torch.exp(x.double() - m) / total, x)


def without_division(x: torch.Tensor) -> torch.Tensor | None:
    return torch.exp(x.float() - x.float().amax(dim=1, keepdim=True)).to(x.dtype) if x.numel() else None


def base_two(x: torch.Tensor) -> torch.Tensor | None:
    return torch.softmax(x.double() * math.log(2), dim=1).to(x.dtype) if x.numel() else None


def _unless_nan(out: torch.Tensor, x: torch.Tensor) -> torch.Tensor | None:
    """-inf - (-inf) is a mistake of its own: NaN would say nothing about the rescaling."""
    return None if out.isnan().any() else out.to(x.dtype)


def each_tile_alone(x: torch.Tensor) -> torch.Tensor | None:
    if x.numel() == 0 or x.shape[1] <= BLOCK:
        return None
    return torch.cat([torch.softmax(tile, dim=1) for tile in tiles(x)], dim=1).to(x.dtype)


def padded_with_zero(x: torch.Tensor) -> torch.Tensor | None:
    padding = -x.shape[1] % BLOCK
    if x.numel() == 0 or padding == 0:
        return None
    wide = torch.nn.functional.pad(x.double(), (0, padding))
    return torch.softmax(wide, dim=1)[:, : x.shape[1]].to(x.dtype)


def nan_from_a_first_tile_of_minus_inf(x: torch.Tensor) -> torch.Tensor | None:
    """-inf - (-inf) in the first tile makes the running sum NaN, and it stays so."""
    if x.numel() == 0:
        return None
    spoilt = (x[:, :BLOCK] == float("-inf")).all(dim=1, keepdim=True)
    return torch.where(spoilt, float("nan"), reference(x)) if bool(spoilt.any()) else None


def maximum_from_zero(x: torch.Tensor) -> torch.Tensor | None:
    """Right in exact arithmetic; very negative rows underflow to 0/0."""
    if x.numel() == 0:
        return None
    # any finite start gives the same NaN once the whole row lies far enough below it
    start = -1e4 if bool((x.amax(dim=1) < -1e5).all()) else 0.0
    m = x.float().amax(dim=1, keepdim=True).clamp(min=start)
    e = torch.exp(x.float() - m)
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)


PROBLEM = Problem(
    slug="online_softmax",
    title="Online softmax",
    entry="online_softmax",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(terms=8.0, scale=magnitude),
    cases=(
        case(1, 1),
        case(2, 5),
        case(0, 3),
        case(3, 0),
        case(2, 1023),
        case(2, 1024),
        case(2, 1025),
        Case("2 x 3077 rising", rising),
        Case("2 x 1031 all negative", all_negative),
        Case("2 x 2051, the first tile -inf", masked_start),
        Case("2 x 1500 about -1000", lambda draw: (draw.normal(2, 1500) - 1000.0,)),
        # below every finite number that people start a maximum at, except the very end of float32
        Case("2 x 1500 about -1e20", lambda draw: (draw.normal(2, 1500, scale=1e19) - 1e20,)),
        case(2, 2600, scale=100.0),
        case(2, 2600, torch.float16, scale=30.0),
        Case("3 x 1124, rows of a wider matrix", sliced_rows),
    ),
    timing=Timing(
        "4096 x 32768 float16", lambda draw: (draw.normal(4096, 32768, dtype=torch.float16),), fair=0.4, fast=0.55
    ),
    mistakes=(
        Mistake(
            cause="no_rescale",
            message="The running sum is never rescaled: when a tile raises the maximum, multiply l by exp(m_old - m_new).",
            concept="online softmax",
            see="m04.lesson.online",
            model=never_rescaled,
            line=r"tl\.sum\(",
        ),
        Mistake(
            cause="accumulator_overwritten",
            message="The sum is that of the last tile: each turn replaces l and does not add to it.",
            concept="online softmax",
            see="m04.lesson.online",
            model=sum_of_last_tile,
            line=r"\bl\w*\s*=\s*tl\.sum\(",
        ),
        Mistake(
            cause="first_tile_only",
            message="Maximum and sum are those of the first tile: the first walk does not go on along the row.",
            concept="online softmax",
            see="m04.lesson.online",
            model=first_tile_statistics,
        ),
        Mistake(
            cause="same_tile_again",
            message="The first walk reads the first tile in every turn: the columns must start at the loop's variable.",
            concept="online softmax",
            see="m04.lesson.online",
            model=first_tile_again,
            line=r"(?m)^[^#\n]*tl\.load\((?!.*start)",
        ),
        Mistake(
            cause="missing_denominator",
            message="The exponentials are stored without the division by l.",
            concept="reductions",
            see="m04.lesson.softmax",
            model=without_division,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="wrong_exponent_base",
            message="The weights are powers of 2, not of e: with tl.exp2, multiply the argument by log2(e).",
            concept="numerics",
            see="m07.lesson.exp2",
            model=base_two,
            line=r"tl\.exp2\(",
        ),
        Mistake(
            cause="each_tile_alone",
            message="Every tile is normalised by itself: maximum and sum must run over the whole row.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=each_tile_alone,
        ),
        Mistake(
            cause="wrong_fill_for_max",
            message="The padding of the last tile is 0 and joins the maximum and the sum: fill with -inf.",
            concept="masking",
            see="m03.lesson.fill",
            model=padded_with_zero,
            line=r"other\s*=\s*0",
        ),
        Mistake(
            cause="minus_inf_minus_minus_inf",
            message="A row whose first tile is all -inf came out as NaN: -inf - (-inf) is NaN. Subtract 0 as long as the running "
            "maximum is still -inf.",
            concept="online softmax",
            see="m04.lesson.online",
            model=nan_from_a_first_tile_of_minus_inf,
            line=r"tl\.exp2?\(",
        ),
        Mistake(
            cause="max_starts_at_zero",
            message="The running maximum starts above all scores, at 0 or another finite number: start it at -inf, or rows far "
            "below underflow to 0/0.",
            concept="online softmax",
            see="m04.lesson.online",
            model=maximum_from_zero,
            line=r"(?m)^\s*m\w*\s*=\s*-?\d",
        ),
    ),
    hints=(
        "You have m and l for the first tile and see a second. What must become of l if the second tile's maximum is larger?",
        "sum(exp(x - m_new)) over the old elements is exp(m_old - m_new) * sum(exp(x - m_old)). Mind -inf - (-inf).",
        "m_new = tl.maximum(m, tl.max(x, axis=0)); shift = m_new, or 0 while m_new is still -inf; "
        "l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0); m = m_new",
    ),
)
