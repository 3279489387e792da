import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK_N = 1024  # of the launcher the stub gives
BF16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(x, scale):
    return x * scale[:, None]


def work(x, scale):
    return Work(bytes=(2 * x.numel() + scale.numel()) * x.element_size(), flops=x.numel())


def case(m: int, n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None) -> Case:
    def make(draw: Draw):
        return draw.normal(m, n, dtype=dtype), draw.normal(m, dtype=dtype)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make, needs_gpu=needs_gpu)


def transposed(draw: Draw):
    return draw.normal(37, 5).t(), draw.normal(5)


def square_transposed(draw: Draw):
    return draw.normal(33, 33).t(), draw.normal(33)


def every_second_column(draw: Draw):
    return draw.normal(4, 300)[:, ::2], draw.normal(4)


def inner_window(draw: Draw):
    return draw.normal(9, 1400)[2:7, 100:1200], draw.normal(5)


def one_row_repeated(draw: Draw):
    return draw.normal(1, 129).expand(6, 129), draw.normal(6)


def one_column_repeated(draw: Draw):
    return draw.normal(6, 1).expand(6, 129), draw.normal(6)


def specials(draw: Draw):
    x, scale = draw.normal(3, 40), draw.normal(3)
    x[0, 0], x[1, 1], x[2, 2] = float("inf"), float("-inf"), float("nan")
    scale[1] = 0.0
    return x, scale


def read_as_contiguous(x: torch.Tensor) -> torch.Tensor | None:
    """What a kernel sees that takes row * N + column for the offset."""
    m, n = x.shape
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() or m * n > in_storage:
        return None
    return x.as_strided((m, n), (n, 1))


def read_with_unit_column_stride(x: torch.Tensor) -> torch.Tensor | None:
    """What a kernel sees that uses the row stride and takes the column's for 1."""
    m, n = x.shape
    if x.numel() == 0 or x.stride(1) == 1 or n < 2:
        return None
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if (m - 1) * x.stride(0) + n > in_storage:
        return None
    return x.as_strided((m, n), (x.stride(0), 1)).clone()


def stored_with_strides_of_x(x: torch.Tensor, right: torch.Tensor) -> torch.Tensor | None:
    """A transposed x whose strides were used for out as well: the answer lies in out column by column."""
    m, n = x.shape
    return right.t().reshape(m, n) if x.stride() == (1, m) and m > 1 and n > 1 and m != n else None


def written_up_to(x: torch.Tensor, scale: torch.Tensor, columns: int) -> torch.Tensor:
    """The answer in the first columns, poison in the others."""
    out = torch.full(x.shape, float("nan"), dtype=x.dtype, device=x.device)
    out[:, :columns] = reference(x, scale)[:, :columns]
    return out


def first_chunk_only(x, scale):
    return written_up_to(x, scale, BLOCK_N) if x.shape[1] > BLOCK_N else None


def whole_chunks_only(x, scale):
    n = x.shape[1]
    return written_up_to(x, scale, n // BLOCK_N * BLOCK_N) if n % BLOCK_N else None


def unit_column_stride_model(x, scale):
    seen = read_with_unit_column_stride(x)
    return None if seen is None else seen * scale[:, None]


def contiguous_model(x, scale):
    seen = read_as_contiguous(x)
    return None if seen is None else seen * scale[:, None]


PROBLEM = Problem(
    slug="row_scale",
    title="Row scale",
    entry="row_scale",
    parameters=("x", "scale"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1),
        case(3, 7),
        Case("5 x 37 transposed", transposed),
        case(0, 5),
        case(3, 0),
        case(2, BLOCK_N - 1),
        case(2, BLOCK_N),
        case(2, BLOCK_N + 1),
        case(3, 2503),
        Case("33 x 33 transposed", square_transposed),
        Case("4 x 150, every second column", every_second_column),
        Case("5 x 1100 window of a 9 x 1400", inner_window),
        Case("6 x 129, one row expanded", one_row_repeated),
        Case("6 x 129, one column expanded", one_column_repeated),
        Case("inf, nan and a zero scale, 3 x 40", specials),
        case(5, 1031, torch.float16),
        case(5, 1031, torch.bfloat16, needs_gpu=BF16),
    ),
    timing=Timing("8192 x 8192 float32", lambda draw: (draw.normal(8192, 8192), draw.normal(8192))),
    mistakes=(
        Mistake(
            cause="assumes_contiguous",
            message="The columns are read at stride 1: column j lies j * stride_xn elements from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=unit_column_stride_model,
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="output_stored_with_input_strides",
            message="The answer lies in out column by column: out was addressed with the strides of x; it has its own.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x, scale: stored_with_strides_of_x(x, reference(x, scale)),
            line=r"out_ptr \+.*stride_x",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The rows are read from row * N + column, as if x were contiguous; use both strides of x.",
            concept="strides",
            see="m03.lesson.strides",
            model=contiguous_model,
            line=r"row \* n_cols|tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="swapped_axes",
            message="Every element comes from the mirrored place: the two strides of x are exchanged.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x, scale: x.t() * scale[:, None] if x.shape[0] == x.shape[1] else None,
            line=r"row \* stride_xn",
        ),
        Mistake(
            cause="scale_by_column",
            message="Element [i, j] is multiplied by scale[j]; the task scales by row, one scalar per program.",
            concept="broadcasting",
            see="m03.lesson.strides",
            model=lambda x, scale: x * scale[None, :] if x.shape[0] == x.shape[1] else None,
            line=r"scale_ptr \+ (?:cols|offs)",
        ),
        Mistake(
            cause="first_tile_only",
            message=f"Only the first {BLOCK_N} columns of each row are written: a longer row needs a loop over chunks.",
            concept="tiling",
            see="m04.lesson.long-rows",
            model=first_chunk_only,
            line=r"\brange\(",
        ),
        Mistake(
            cause="tail_dropped",
            message="Only whole chunks are written: the columns after the last multiple of BLOCK_N are left out.",
            concept="tiling",
            see="m02.lesson.mask",
            model=whole_chunks_only,
            line=r"//\s*BLOCK_N",
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row is row 0 scaled: the address of x lacks row * stride_xm.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x, scale: x[:1] * scale[:, None],
            line=r"tl\.load\(x_ptr(?!.*stride_xm)",
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is x + scale: the task asks for the product.",
            concept="arithmetic",
            see="m03.lesson.strides",
            model=lambda x, scale: x + scale[:, None],
        ),
        Mistake(
            cause="scale_not_indexed",
            message="Every row is multiplied by scale[0]: the load of the scale lacks + row.",
            concept="pointers",
            see="m03.lesson.strides",
            model=lambda x, scale: x * scale[:1, None],
            line=r"tl\.load\(scale_ptr\)",
        ),
    ),
    hints=(
        "Take x = torch.arange(6).reshape(2, 3).t(). What are its strides? At which offsets do x[0, 0], x[0, 1] and "
        "x[1, 0] lie from the base?",
        "The program id is the row. Inside a loop over start = 0, BLOCK_N, 2 * BLOCK_N, …, the columns are "
        "start + arange(0, BLOCK_N), and those at or past n_cols are masked off, in the load and in the store.",
        "x = tl.load(x_ptr + row * stride_xm + cols * stride_xn, mask=cols < n_cols); "
        "tl.store(out_ptr + row * stride_om + cols * stride_on, x * scale, mask=cols < n_cols)",
    ),
)
