"""What the output would be if a mistake had been made, and the mistakes by name."""

import torch

from grader.problem import Mistake

BLOCK, BLOCK_K = 32, 64  # of the launcher the stub gives: BLOCK along M and N


def whole_sum(a, b):
    """A @ B, exact: every partial sum is below 2^53."""
    return a.double() @ b.double()


def scaled(sums, a_scale, b_scale):
    return (sums.float() * a_scale[:, None] * b_scale[None, :]).half()


def of_sums(change):
    """The output after `change(a, b)` in place of the exact sum; None where change says so."""

    def model(a, b, a_scale, b_scale):
        sums = change(a, b)
        return None if sums is None else scaled(sums, a_scale, b_scale)

    return model


def in_steps(a, b, rounding):
    """Tile after tile along K, the running sum rounded by `rounding`."""
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device, dtype=torch.float64)
    for k in range(0, a.shape[1], BLOCK_K):
        acc = rounding(acc + whole_sum(a[:, k : k + BLOCK_K], b[k : k + BLOCK_K]))
    return acc


def in_float32(a, b):
    sums = in_steps(a, b, lambda x: x.float().double())
    return None if torch.equal(sums, whole_sum(a, b)) else sums


def float32_on_the_way(a, b, a_scale, b_scale):
    """A float32 sum in whatever order: off by a little, and only where sums pass 2^24."""
    right = whole_sum(a, b)
    if float((a.double().abs() @ b.double().abs()).max() if right.numel() else 0) < 2**24:
        return None

    def matches(out):
        sums = out.double() / (a_scale.double()[:, None] * b_scale.double()[None, :])
        error = (sums - right).abs()
        whole = (sums - sums.round()).abs() <= 2**-10 * sums.abs() + 0.01
        return bool(out.isfinite().all() & whole.all() & (error < 2048).all() & (error > 0.01).any())

    return matches


def in_float16(a, b):
    return in_steps(a, b, lambda x: x.half().double()) if a.shape[1] else None


def wrapped(bits: int):
    """The sum kept in so few bits: it wraps round."""

    def sums(a, b):
        half = 2.0 ** (bits - 1)
        right = whole_sum(a, b)
        return torch.remainder(right + half, 2 * half) - half if bool((right.abs() >= half).any()) else None

    return sums


def turned_scales(a, b, a_scale, b_scale):
    """Within each tile, column j gets the scale of the tile's row j and row i that of its column i."""
    padded = [torch.nn.functional.pad(scale, (0, -scale.shape[0] % BLOCK)) for scale in (a_scale, b_scale)]
    rows, columns = torch.arange(a.shape[0])[:, None], torch.arange(b.shape[1])[None, :]
    of_columns = padded[0][rows // BLOCK * BLOCK + columns % BLOCK]
    of_rows = padded[1][columns // BLOCK * BLOCK + rows % BLOCK]
    return (whole_sum(a, b).float() * of_columns * of_rows).half()


def cast_before_the_scales(a, b, a_scale, b_scale):
    return (whole_sum(a, b).half().float() * a_scale[:, None] * b_scale[None, :]).half()


def half_scales(a, b, a_scale, b_scale):
    return (whole_sum(a, b).float() * a_scale.half().float()[:, None] * b_scale.half().float()[None, :]).half()


def read_flat(x):
    """Element (i, j) at i * columns + j of x's memory; None where that leaves it."""
    reach = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    fits = 0 not in x.shape and x.numel() <= reach
    return torch.as_strided(x, x.shape, (x.shape[1], 1)) if fits else None


def row_major(a, b):
    if a.is_contiguous() and b.is_contiguous():
        return None
    read = [read_flat(x) for x in (a, b)]
    return None if any(x is None for x in read) else whole_sum(*read)


def first_k_tile(a, b):
    return None if a.shape[1] <= BLOCK_K else whole_sum(a[:, :BLOCK_K], b[:BLOCK_K])


def whole_k_tiles(a, b):
    k = a.shape[1] // BLOCK_K * BLOCK_K
    return None if k == a.shape[1] else whole_sum(a[:, :k], b[:k])


MISTAKES = (
    Mistake(
        cause="missing_scale",
        message="The row scales are missing: each row of the output has its own a_scale[m].",
        concept="quantisation",
        see="m06.lesson.precision",
        model=lambda a, b, a_scale, b_scale: scaled(whole_sum(a, b), torch.ones_like(a_scale), b_scale),
    ),
    Mistake(
        cause="missing_scale",
        message="The column scales are missing: each column of the output has its own b_scale[n].",
        concept="quantisation",
        see="m06.lesson.precision",
        model=lambda a, b, a_scale, b_scale: scaled(whole_sum(a, b), a_scale, torch.ones_like(b_scale)),
    ),
    Mistake(
        cause="missing_scale",
        message="Both scales are missing: this is the sum of int8 products itself.",
        concept="quantisation",
        see="m06.lesson.precision",
        model=lambda a, b, a_scale, b_scale: whole_sum(a, b).float().half(),
    ),
    Mistake(
        cause="swapped_axes",
        message="The scales are on the wrong axes: a_scale runs down the rows, [:, None], b_scale along the columns, [None, :].",
        concept="tiles",
        see="m03.lesson.tiles",
        model=turned_scales,
        line=r"scale\w*\[(:, None|None, :)\]",
    ),
    Mistake(
        cause="scale_not_indexed",
        message="Every row is multiplied by the first row's scale: load a_scale_ptr + offs_m.",
        concept="quantisation",
        see="m03.lesson.tiles",
        model=lambda a, b, a_scale, b_scale: scaled(whole_sum(a, b), a_scale[:1].expand_as(a_scale), b_scale),
        line=r"tl\.load\(\s*a_scale_ptr",
    ),
    Mistake(
        cause="scale_not_indexed",
        message="Every column is multiplied by the first column's scale: load b_scale_ptr + offs_n.",
        concept="quantisation",
        see="m03.lesson.tiles",
        model=lambda a, b, a_scale, b_scale: scaled(whole_sum(a, b), a_scale, b_scale[:1].expand_as(b_scale)),
        line=r"tl\.load\(\s*b_scale_ptr",
    ),
    Mistake(
        cause="activation_after_cast",
        message="The sum is rounded to float16 before it is scaled: past 65504 it is inf. Scale in float32, cast last.",
        concept="numerics",
        see="m06.lesson.precision",
        model=cast_before_the_scales,
        line=r"\.to\((tl\.float16|c_ptr\.dtype\.element_ty)\)",
    ),
    Mistake(
        cause="low_precision_accumulator",
        message="The sum is rounded to float16 on the way along K: past 2048 it loses units, past 65504 it is inf. int8 "
        "products are added in int32.",
        concept="numerics",
        see="m06.lesson.precision",
        model=of_sums(in_float16),
        line=r"tl\.float16",
    ),
    Mistake(
        cause="integers_added_in_float",
        message="The sum is kept in float32: past 2^24 it loses units. int8 products are added in int32, exactly.",
        concept="numerics",
        see="m06.lesson.precision",
        model=of_sums(in_float32),
        line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float32|\.to\(tl\.float(16|32)\)",
    ),
    Mistake(
        cause="integers_added_in_float",
        message="The sum is kept in float32: past 2^24 it loses units. int8 products are added in int32, exactly.",
        concept="numerics",
        see="m06.lesson.precision",
        model=float32_on_the_way,
        line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float32|\.to\(tl\.float(16|32)\)",
    ),
    Mistake(
        cause="integer_overflow",
        message="The sum is kept in int8 and wraps round: a single product may be 16384. Add in int32.",
        concept="numerics",
        see="m06.lesson.precision",
        model=of_sums(wrapped(8)),
        line=r"tl\.int8",
    ),
    Mistake(
        cause="integer_overflow",
        message="The sum is kept in int16 and wraps round past 32767: two products are enough. Add in int32.",
        concept="numerics",
        see="m06.lesson.precision",
        model=of_sums(wrapped(16)),
        line=r"tl\.int16",
    ),
    Mistake(
        cause="scales_in_half",
        message="The scales are rounded to float16, which has neither their digits nor their range: multiply in float32.",
        concept="numerics",
        see="m06.lesson.precision",
        model=half_scales,
        line=r"scale.*\.to\(tl\.float16\)",
    ),
    Mistake(
        cause="assumes_contiguous",
        message="An operand was read as if it were row-major: its strides were not used.",
        concept="strides",
        see="m03.lesson.strides",
        model=of_sums(row_major),
    ),
    Mistake(
        cause="k_tail_dropped",
        message="Only whole tiles along K are added: the loop runs K // BLOCK_K times, and the rest of K is lost.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=of_sums(whole_k_tiles),
        line=r"range\([^)]*K\s*//\s*BLOCK_K",
    ),
    Mistake(
        cause="first_tile_only",
        message="Only the first BLOCK_K terms of each sum are there: the kernel does not go on along K.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=of_sums(first_k_tile),
    ),
)
