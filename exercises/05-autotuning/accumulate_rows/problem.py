import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

TILES = tuple(2**k for k in range(1, 10))  # what BLOCK_M may be


def reference(x):
    return x.sum(dim=0, dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)


def work(x):
    rows, columns = x.shape
    return Work(bytes=rows * columns * x.element_size() + columns * 4, flops=rows * columns)


# Whole numbers, so that float32 sums are exact: atomics add in any order, and every order must give the same bits.
def positive(draw: Draw, *shape: int, dtype: torch.dtype = torch.float32):
    return draw.integers(*shape, low=1, high=100, dtype=dtype)


def case(rows: int, columns: int, dtype: torch.dtype = torch.float32) -> Case:
    name = f"{rows}x{columns} {str(dtype).removeprefix('torch.')}"
    return Case(name, lambda draw: (positive(draw, rows, columns, dtype=dtype),))


def view(name: str, make) -> Case:
    return Case(name, lambda draw: (make(draw),))


def any_multiple(x):
    """Each run of each configuration added the whole answer once more; how many ran depends on the benchmark."""
    right = reference(x).double().cpu()

    def matches(out: torch.Tensor) -> bool:
        got = out.double().cpu()
        counted = right != 0
        if got.shape != right.shape or not bool(counted.any()) or bool((got[~counted] != 0).any()):
            return False
        times = got[counted] / right[counted]
        first = float(times.median())
        # float32 rounds once the sums outgrow 2^24: hence the slack, and "whole" only while that can be told
        even = bool((times - first).abs().max() <= 1e-3 * first) if first > 0 else False
        return even and first > 1.9 and (first > 500 or abs(first - round(first)) <= 1e-3 * first)

    return matches


def one_tile_of_rows(pick):
    """The sum over one tile of rows, for some power of two."""

    def model(x):
        right = reference(x)
        rows = x.shape[0]
        guesses = [pick(x, tile, rows) for tile in TILES if tile < rows]

        def matches(out: torch.Tensor) -> bool:
            got = out.cpu()
            if got.shape != right.shape or torch.equal(got, right.cpu()):
                return False
            return any(torch.equal(got, guess.cpu()) for guess in guesses)

        return matches if guesses else None

    return model


def padded_with_other_than_zero(x):
    """Every column got the same whole number too much: the lanes past the last row, each holding the fill."""
    right = reference(x)

    def matches(out: torch.Tensor) -> bool:
        extra = (out.double() - right.double()).cpu()
        if (
            extra.numel() < 2
            or not bool((extra == extra[0]).all())
            or float(extra[0]) == 0
            or not bool(extra.isfinite().all())
        ):
            return False
        lanes = [-x.shape[0] % tile for tile in TILES if -x.shape[0] % tile]
        return any(float(extra[0]) in (lanes_past, -lanes_past) for lanes_past in lanes)

    return matches


def only_the_first_columns(x):
    """Right up to a power of two, zero after it."""
    right = reference(x)
    columns = x.shape[1]

    def matches(out: torch.Tensor) -> bool:
        for tile in TILES:
            if 16 <= tile < columns and torch.equal(out[:tile], right[:tile]) and bool((out[tile:] == 0).all()):
                return bool((right[tile:] != 0).any())
        return False

    return matches


def half_sized(x: torch.Tensor):
    """float16 input, and an error as large as adding in float16 makes: inf past 65504, a few thousandths below."""
    if x.dtype != torch.float16 or x.numel() == 0 or not bool(x.isfinite().all()):
        return None
    right, size = reference(x).double(), x.double().abs().sum(dim=0)

    def matches(out: torch.Tensor) -> bool:
        error = (out.double() - right).abs()
        near = error <= 4e-3 * size
        return bool((near | (~out.isfinite() & (size > 60000))).all()) and bool((error > 1e-5 * size).any())

    return matches


def last_tile(x, tile, rows):
    return reference(x[(rows - 1) // tile * tile :])


def first_tile(x, tile, rows):
    return reference(x[:tile])


def read_with_strides(x, stride_m: int, stride_n: int):
    """The sums if x were addressed with these strides; None where that leaves x's memory or changes nothing."""
    rows, columns = x.shape
    if x.numel() == 0 or (stride_m, stride_n) == x.stride():
        return None
    last = x.storage_offset() + (rows - 1) * stride_m + (columns - 1) * stride_n
    if last >= x.untyped_storage().nbytes() // x.element_size():
        return None
    return reference(x.as_strided((rows, columns), (stride_m, stride_n)))


PROBLEM = Problem(
    slug="accumulate_rows",
    title="Accumulate rows",
    entry="accumulate_rows",
    parameters=("x",),
    reference=reference,
    work=work,
    out_dtype=lambda x: torch.float32,
    tolerance=Tolerance(scale=lambda x: x.double().abs().sum(dim=0)),
    cases=(
        case(4, 3),
        case(1, 1),
        case(0, 5),
        case(3, 0),
        case(64, 64),
        case(100, 70),
        case(129, 33, torch.float16),
        case(1, 300),
        view("100x70, negative ones too", lambda d: d.integers(100, 70, low=-50, high=51, dtype=torch.float32)),
        view("transposed 70x100", lambda d: positive(d, 70, 100).t()),
        view("every second column, 70x40", lambda d: positive(d, 70, 80)[:, ::2]),
        view("expanded 50x60", lambda d: positive(d, 60).expand(50, 60)),
        view(
            "float16 sums beyond float16, 80x20",
            lambda d: d.integers(80, 20, low=900, high=1000, dtype=torch.float16),
        ),
    ),
    autotuned=True,
    timing=Timing("16384x4096 float32", lambda draw: (draw.normal(16384, 4096),)),
    mistakes=(
        Mistake(
            cause="missing_reset_to_zero",
            message="The output is a whole multiple of the answer: every configuration ran while tuning, and each run "
            "added to out. Name the accumulator in reset_to_zero.",
            concept="autotuning",
            see="m05.bug.reset",
            model=any_multiple,
            line=r"@triton\.autotune",
        ),
        Mistake(
            cause="accumulates_in_half",
            message="The float16 terms were added in float16, which has 11 bits: tl.sum adds in the dtype of its tile. "
            "Cast the tile to float32 first.",
            concept="dtype",
            see="m04.lesson.dtype",
            model=half_sized,
            line=r"tl\.sum\((?!.*float32)",
        ),
        Mistake(
            cause="store_instead_of_add",
            message="The output is the sum over one tile of rows: each program stored its partial sums over those of "
            "the others. Several programs own a column, so they must add: tl.atomic_add.",
            concept="concurrency",
            see="m05.lesson.side-effects",
            model=one_tile_of_rows(last_tile),
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="first_tile_only",
            message="The output is the sum over the first rows: no program took the rows after the first tile.",
            concept="grid",
            see="m01.lesson.grid",
            model=one_tile_of_rows(first_tile),
        ),
        Mistake(
            cause="first_tile_only",
            message="The columns after the first tile are 0: no program took them. Axis 1 of the grid must cover all of N.",
            concept="grid",
            see="m01.lesson.grid",
            model=only_the_first_columns,
        ),
        Mistake(
            cause="wrong_fill_for_sum",
            message="Padded rows hold 1, and each adds to the sum; the identity of a sum is 0.",
            concept="masking",
            see="m03.lesson.fill",
            model=padded_with_other_than_zero,
            line=r"other=",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="Right for a contiguous x only: the address must be built from stride_m and stride_n.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: read_with_strides(x, x.shape[1], 1),
            line=r"x_ptr\s*\+(?!.*stride_m)|x_ptr\s*\+(?!.*stride_n)",
        ),
        Mistake(
            cause="swapped_axes",
            message="Row and column strides are exchanged: the row index belongs to stride_m, the column index to "
            "stride_n.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: read_with_strides(x, x.stride(1), x.stride(0)),
            line=r"x_ptr\s*\+.*stride_",
        ),
    ),
    hints=(
        "How often does the kernel run in the first call for a shape, and what does each run leave in out?",
        (
            "A tile mask combines rows and columns with &. Sum over axis 0, then add to out_ptr + cols under the "
            "column mask. The decorator must be told which argument to clear between trials."
        ),
        (
            "tl.atomic_add(out_ptr + cols, tl.sum(tile.to(tl.float32), axis=0), mask=cols < N), and "
            "@triton.autotune(configs=[…], key=['M', 'N'], reset_to_zero=['out_ptr'])"
        ),
    ),
    fixed={"accumulate_kernel": "the launcher launches it"},
)
