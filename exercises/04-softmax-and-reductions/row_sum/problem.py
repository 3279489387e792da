import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK_N = 1024  # of the launcher the stub gives


def reference(x):
    return x.sum(dim=1) if x.dtype == torch.float64 else x.sum(dim=1, dtype=torch.float32)


def work(x):
    return Work(bytes=x.numel() * x.element_size() + 4 * x.shape[0], flops=x.numel())


def magnitude(x, *_):
    """Rounding of a float32 sum grows with the sum of |terms|. Infinite terms need no allowance."""
    return torch.nan_to_num(x.abs(), nan=0.0, posinf=0.0).sum(dim=1)


def case(m: int, n: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return (draw.normal(m, n, dtype=dtype),)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make)


def constant(m: int, n: int, value: float, dtype: torch.dtype) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')} all {value:g}"
    return Case(name, lambda draw: (draw.full(m, n, value=value, dtype=dtype),))


def cancelling(draw: Draw):
    x = draw.normal(3, 1500, scale=1e6)
    x[:, 750:] = -x[:, :750]
    return (x,)


def partial_sums_past_half(draw: Draw):
    """The first two chunks reach 80 000, past float16's 65 504; the total is odd and above 2048: no float16 holds it."""
    x = draw.full(2, 3 * BLOCK_N + 10, value=0.0, dtype=torch.float16)
    x[:, 5 : 2 * BLOCK_N : BLOCK_N], x[:, 2 * BLOCK_N + 5 :: BLOCK_N] = 40000.0, -40000.0
    x[:, 0], x[:, 1] = 1025 + 2 * draw.integers(2, low=0, high=100), 1026.0
    return (x,)


def specials(draw: Draw):
    x = draw.normal(3, 40)
    x[0, 3], x[1, 5], x[2, 7], x[2, 8] = float("inf"), float("nan"), float("inf"), float("-inf")
    return (x,)


def transposed(draw: Draw):
    return (draw.normal(37, 5).t(),)


def square_transposed(draw: Draw):
    return (draw.normal(33, 33).t(),)


def window(draw: Draw):
    return (draw.normal(9, 2900)[2:7, 100:2700:2],)


def one_row_repeated(draw: Draw):
    return (draw.normal(1, 129).expand(6, 129),)


def one_column_repeated(draw: Draw):
    return (draw.normal(6, 1).expand(6, 129),)


def padding(x: torch.Tensor) -> int:
    """Lanes of the last chunk that are no column."""
    return -x.shape[1] % BLOCK_N


def filled_with(value: float):
    return lambda x: reference(x) + padding(x) * value if padding(x) else None


def filled_with_minus_inf(x: torch.Tensor):
    # asked of the output: as a model's value, an infinity would lie within the error of any number
    return (lambda out: bool((out == float("-inf")).all())) if padding(x) and x.shape[0] > 1 else None


def overflowing(x: torch.Tensor):
    """float16 rows whose partial sums pass 65504: additions in float16 end in inf, or in inf - inf."""
    if x.dtype != torch.float16 or x.numel() == 0 or not bool(x.isfinite().all()):
        return None
    passes = (x.double().cumsum(dim=1).abs().amax(dim=1) > 66000).all()
    return (lambda out: not bool(out.isfinite().any())) if bool(passes) else None


def half_sized(x: torch.Tensor):
    """float16 input, and an error as large as adding in float16 makes: inf past 65504, a few thousandths below."""
    if x.dtype != torch.float16 or x.numel() == 0 or not bool(x.isfinite().all()):
        return None
    right, size = reference(x).double(), x.double().abs().sum(dim=1)

    def matches(out: torch.Tensor) -> bool:
        error = (out.double() - right).abs()
        near = error <= 4e-3 * size
        return bool((near | (~out.isfinite() & (size > 60000))).all()) and bool((error > 1e-5 * size).any())

    return matches


def rounded_to_input(x: torch.Tensor) -> torch.Tensor | None:
    return None if x.dtype == torch.float32 else reference(x).to(x.dtype).to(torch.float32)


def last_chunk(x: torch.Tensor) -> torch.Tensor | None:
    n = x.shape[1]
    return reference(x[:, (n - 1) // BLOCK_N * BLOCK_N :]) if n > BLOCK_N else None


def first_chunk_again(x: torch.Tensor) -> torch.Tensor | None:
    """The columns do not depend on where the loop is."""
    n = x.shape[1]
    return reference(x[:, :BLOCK_N]) * -(-n // BLOCK_N) if n > BLOCK_N else None


def whole_chunks(x: torch.Tensor) -> torch.Tensor | None:
    n = x.shape[1]
    return reference(x[:, : n // BLOCK_N * BLOCK_N]) if n % BLOCK_N else None


def read_with_unit_column_stride(x: torch.Tensor) -> torch.Tensor | None:
    """What a kernel sees that uses the row stride and takes the column's for 1."""
    m, n = x.shape
    if x.numel() == 0 or x.stride(1) == 1 or n < 2:
        return None
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if (m - 1) * x.stride(0) + n > in_storage:
        return None
    return x.as_strided((m, n), (x.stride(0), 1)).clone()


def with_unit_column_stride(x: torch.Tensor) -> torch.Tensor | None:
    seen = read_with_unit_column_stride(x)
    return None if seen is None else reference(seen)


def read_as_contiguous(x: torch.Tensor) -> torch.Tensor | None:
    m, n = x.shape
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() or m * n > in_storage:
        return None
    return reference(x.as_strided((m, n), (n, 1)))


PROBLEM = Problem(
    slug="row_sum",
    title="Row sum",
    entry="row_sum",
    parameters=("x",),
    reference=reference,
    work=work,
    # 1024 lanes: a chain of N / 1024 additions, then a tree of depth 10
    tolerance=Tolerance(terms=16.0, scale=magnitude),
    out_dtype=lambda x: torch.float32,
    cases=(
        case(3, 7),
        case(1, 1),
        Case("2 x 3082 float16, partial sums past 65504", partial_sums_past_half),
        constant(2, 1000, 100.0, torch.float16),
        case(0, 5),
        case(3, 0),
        case(3, BLOCK_N - 1),
        case(3, BLOCK_N),
        case(3, BLOCK_N + 1),
        case(3, 4099),
        case(3, 4099, torch.float16),
        case(3, 4099, torch.bfloat16),
        constant(2, 5000, 1.0, torch.float16),
        Case("3 x 1500, large terms that cancel", cancelling),
        Case("inf and nan, 3 x 40", specials),
        Case("5 x 37 transposed", transposed),
        Case("33 x 33 transposed", square_transposed),
        Case("5 x 1300 window, every second column", window),
        Case("6 x 129, one row expanded", one_row_repeated),
        Case("6 x 129, one column expanded", one_column_repeated),
    ),
    timing=Timing("16384 x 4096 float32", lambda draw: (draw.normal(16384, 4096),)),
    mistakes=(
        Mistake(
            cause="accumulates_in_half",
            message="The float16 sum overflowed to inf: tl.sum adds in the dtype of its tile. Cast to float32 first.",
            concept="dtype",
            see="m04.lesson.dtype",
            model=overflowing,
            line=r"tl\.(?:zeros|sum)\((?!.*float32)|acc \+=",
        ),
        Mistake(
            cause="rounded_to_input",
            message="The sum was rounded to the dtype of x before it was stored; the task returns float32.",
            concept="dtype",
            see="m04.lesson.dtype",
            model=rounded_to_input,
            line=r"\.to\(x\.dtype\)|\.to\(tl\.float16\)",
        ),
        Mistake(
            cause="accumulates_in_half",
            message="The float16 terms were added in float16, which has 11 bits: tl.sum and + add in the dtype of their "
            "operands. Cast to float32 first.",
            concept="dtype",
            see="m04.lesson.dtype",
            model=half_sized,
            line=r"tl\.sum\((?!acc)(?!.*float32)|tl\.zeros\((?!.*float32)|acc \+=",
        ),
        Mistake(
            cause="first_tile_only",
            message=f"Only the first {BLOCK_N} columns are summed: a longer row needs a loop over chunks.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=lambda x: reference(x[:, :BLOCK_N]) if x.shape[1] > BLOCK_N else None,
        ),
        Mistake(
            cause="tail_dropped",
            message="Only whole chunks are summed: the columns after the last multiple of BLOCK_N are lost.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=whole_chunks,
            line=r"//\s*BLOCK_N",
        ),
        Mistake(
            cause="same_tile_again",
            message="Every turn of the loop sums the first chunk again: the columns must start at the loop's variable.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=first_chunk_again,
            line=r"tl\.arange\(",
        ),
        Mistake(
            cause="accumulator_overwritten",
            message="Only the last chunk counts: the loop assigns the accumulator instead of adding to it.",
            concept="reductions",
            see="m04.lesson.reduce",
            model=last_chunk,
            line=r"acc = (?!tl\.zeros)",
        ),
        Mistake(
            cause="wrong_fill_for_sum",
            message="Padded lanes hold -inf, the identity of max; the identity of a sum is 0.",
            concept="masking",
            see="m03.lesson.fill",
            model=filled_with_minus_inf,
            line=r"other=",
        ),
        Mistake(
            cause="wrong_fill_for_sum",
            message="Padded lanes hold 1, and each adds to the sum; the identity of a sum is 0.",
            concept="masking",
            see="m03.lesson.fill",
            model=filled_with(1.0),
            line=r"other=",
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row reports the sum of row 0: the address lacks row * stride_m.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: reference(x)[:1].expand(x.shape[0]).clone(),
            line=r"tl\.load\(x_ptr(?!.*stride_m)",
        ),
        Mistake(
            cause="swapped_axes",
            message="The output holds the sum of each column: the two strides are exchanged.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: reference(x.t()) if x.shape[0] == x.shape[1] else None,
            line=r"row \* stride_n",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The columns are read at stride 1: column j lies j * stride_n elements from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=with_unit_column_stride,
            line=r"tl\.load\(x_ptr(?!.*stride_n)",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The rows are read from row * N + column, as if x were contiguous; use both strides of x.",
            concept="strides",
            see="m03.lesson.strides",
            model=read_as_contiguous,
            line=r"row \* n_cols|tl\.load\(x_ptr(?!.*stride_n)",
        ),
    ),
    hints=(
        "What is 100 + 100 + … (1000 times) in float16? In which dtype does tl.sum add?",
        "Keep acc = tl.zeros((BLOCK_N,), dtype=tl.float32) outside the loop, add one chunk to it a turn, and call "
        "tl.sum once, after the loop.",
        "x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=0.0); "
        "acc += x.to(tl.float32); after the loop: tl.store(out_ptr + row, tl.sum(acc, axis=0))",
    ),
)
