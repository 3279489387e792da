import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BF16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(x):
    return x.amax(dim=1)


def work(x):
    return Work(bytes=(x.numel() + x.shape[0]) * x.element_size(), flops=x.numel())


def case(m: int, n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None) -> Case:
    def make(draw: Draw):
        return (draw.normal(m, n, dtype=dtype),)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make, needs_gpu=needs_gpu)


def all_negative(m: int, n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None) -> Case:
    def make(draw: Draw):
        return (draw.uniform(m, n, low=-9.0, high=-1.0, dtype=dtype),)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')} all negative", make, needs_gpu=needs_gpu)


def very_negative(draw: Draw):
    """Below every "large negative number" that people use for a fill; row 1 is all -inf."""
    x = draw.uniform(3, 21, low=-9e37, high=-8e37)
    x[1] = float("-inf")
    x[2, 4] = float("inf")
    return (x,)


def equal_values(draw: Draw):
    return (draw.full(3, 100, value=-0.5),)


def transposed(draw: Draw):
    return (draw.uniform(37, 5, low=-9.0, high=-1.0).t(),)


def square_transposed(draw: Draw):
    return (draw.normal(33, 33).t(),)


def every_third_column(draw: Draw):
    return (draw.normal(4, 300)[:, ::3],)


def one_row_repeated(draw: Draw):
    return (draw.normal(1, 129).expand(6, 129),)


def padded(x: torch.Tensor) -> bool:
    n = x.shape[1]
    return n & (n - 1) != 0


def filled_with(value: float):
    return lambda x: x.amax(dim=1).double().clamp(min=value).to(x.dtype) if padded(x) else None


def never_below_zero(x: torch.Tensor) -> torch.Tensor | None:
    """A maximum that starts at 0 shows in every negative row, padded or not."""
    right = reference(x)
    return right.clamp(min=0) if bool((right < 0).any()) else None


def columns_of_one_tile(x: torch.Tensor):
    """The maximum of the first columns, as many as some tile has."""
    n, right = x.shape[1], reference(x)
    guesses = [reference(x[:, : 2**k]) for k in range(4, 13) if 2**k < n]
    return lambda out: not torch.equal(out, right) and any(torch.equal(out, guess) for guess in guesses)


def some_other_fill(x: torch.Tensor):
    """Rows below the fill give the fill back: one number that stands nowhere in x, the same for all of them."""
    right = x.amax(dim=1)

    def matches(out: torch.Tensor) -> bool:
        wrong = out != right
        if not padded(x) or int(wrong.sum()) < 2:
            return False
        fill = out[wrong][0]
        return (
            bool(fill.isfinite())
            and float(fill) < 0
            and not bool((x == fill).any())
            and torch.equal(out, right.clamp(min=fill))
        )

    return matches


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
    return x.as_strided((m, n), (n, 1)).amax(dim=1)


PROBLEM = Problem(
    slug="row_max",
    title="Row maximum",
    entry="row_max",
    parameters=("x",),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1),
        case(3, 4),
        all_negative(3, 5),
        case(0, 7),
        case(4, 127),
        all_negative(4, 128),
        all_negative(4, 129),
        all_negative(2, 4099),
        Case("3 x 21 near the end of float32, -inf and inf", very_negative),
        Case("3 x 100 all equal", equal_values),
        Case("5 x 37 transposed, all negative", transposed),
        Case("33 x 33 transposed", square_transposed),
        Case("4 x 100, every third column", every_third_column),
        Case("6 x 129, one row expanded", one_row_repeated),
        all_negative(4, 1000, torch.float16),
        all_negative(4, 1000, torch.bfloat16, needs_gpu=BF16),
    ),
    timing=Timing("16384 x 4096 float32", lambda draw: (draw.normal(16384, 4096),)),
    mistakes=(
        Mistake(
            cause="wrong_fill_for_max",
            message="Padded lanes hold 0, and 0 beats every negative value: load them with other=-float('inf').",
            concept="masking",
            see="m03.bug.fill",
            model=filled_with(0.0),
            line=r"other=\s*0|tl\.where\(.*,\s*0|tl\.load\((?!.*inf)",
        ),
        Mistake(
            cause="finite_fill_for_max",
            message="Padding is filled with a finite number: a row that lies below it, or all -inf, gets the fill back.",
            concept="masking",
            see="m03.lesson.fill",
            model=some_other_fill,
            line=r"other=\s*-?\s*\d|tl\.where\(.*-\s*\d",
        ),
        Mistake(
            cause="max_starts_at_zero",
            message="No maximum is below 0, not even of a row that fills its tile: the running maximum starts at 0. Start it "
            "at -float('inf').",
            concept="reductions",
            see="m03.lesson.fill",
            model=never_below_zero,
            line=r"tl\.maximum\(|tl\.zeros\(",
        ),
        Mistake(
            cause="first_tile_only",
            message="The columns after the first tile are ignored: take a tile as wide as the row, or a loop over chunks.",
            concept="reductions",
            see="m04.lesson.long-rows",
            model=columns_of_one_tile,
            line=r"BLOCK_N\s*=\s*\d+",
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
        Mistake(
            cause="swapped_axes",
            message="The output holds the maximum of each column: the two strides are exchanged.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: x.amax(dim=0) if x.shape[0] == x.shape[1] else None,
            line=r"row \* stride_n",
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row reports the maximum of row 0: the address lacks row * stride_m.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: x.amax(dim=1)[:1].expand(x.shape[0]).clone(),
            line=r"tl\.load\(x_ptr(?!.*stride_m)",
        ),
        Mistake(
            cause="minimum_not_maximum",
            message="The output holds the smallest value of each row.",
            concept="reductions",
            see="m03.lesson.fill",
            model=lambda x: x.amin(dim=1),
            line=r"tl\.min\(",
        ),
    ),
    hints=(
        "Write down the tile for the row [-3, -1, -2] when BLOCK_N is 4. What stands in the fourth lane, and what is "
        "the maximum of the four?",
        "The fill must be the identity of the reduction: the value e with max(x, e) == x for every x.",
        'x = tl.load(x_ptr + row * stride_m + cols * stride_n, mask=cols < n_cols, other=-float("inf")); '
        "tl.store(out_ptr + row, tl.max(x, axis=0))",
    ),
)
