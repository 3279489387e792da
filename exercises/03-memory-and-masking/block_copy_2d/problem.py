import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK_M, BLOCK_N = 32, 64  # of the stub


def reference(x):
    return x.clone(memory_format=torch.contiguous_format)


def work(x):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=0)


def case(m: int, n: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return (draw.normal(m, n, dtype=dtype),)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make)


def integers(draw: Draw):
    return (draw.integers(19, 131, low=-(2**31), high=2**31 - 1, dtype=torch.int32),)


def specials(draw: Draw):
    x = draw.normal(17, 40)
    x[0, 0], x[3, 1], x[16, 39] = float("inf"), float("-inf"), float("nan")
    return (x,)


def transposed(draw: Draw):
    return (draw.normal(150, 37).t(),)


def square_transposed(draw: Draw):
    return (draw.normal(129, 129).t(),)


def window(draw: Draw):
    return (draw.normal(40, 400)[3:36:2, 10:310:3],)


def one_row_repeated(draw: Draw):
    return (draw.normal(1, 130).expand(20, 130),)


def one_column_repeated(draw: Draw):
    return (draw.normal(20, 1).expand(20, 130),)


def read_as_contiguous(x: torch.Tensor) -> torch.Tensor | None:
    """What a kernel sees that takes row * N + column for the offset."""
    m, n = x.shape
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() or m * n > in_storage:
        return None
    return x.as_strided((m, n), (n, 1)).clone()


def read_with_unit_column_stride(x: torch.Tensor) -> torch.Tensor | None:
    """What a kernel sees that uses the row stride and takes the column's for 1."""
    m, n = x.shape
    if x.numel() == 0 or x.stride(1) == 1 or n < 2:
        return None
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if (m - 1) * x.stride(0) + n > in_storage:
        return None
    return x.as_strided((m, n), (x.stride(0), 1)).clone()


def rows_of_the_first_tile(x: torch.Tensor) -> torch.Tensor | None:
    m = x.shape[0]
    return x[torch.arange(m, device=x.device) % BLOCK_M] if m > BLOCK_M else None


def columns_of_the_first_tile(x: torch.Tensor) -> torch.Tensor | None:
    n = x.shape[1]
    return x[:, torch.arange(n, device=x.device) % BLOCK_N] if n > BLOCK_N else None


PROBLEM = Problem(
    slug="block_copy_2d",
    title="2-D block copy",
    entry="block_copy_2d",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    copies=("x",),
    cases=(
        case(1, 1),
        case(3, 5),
        case(BLOCK_M, BLOCK_N),
        case(0, 5),
        case(3, 0),
        case(BLOCK_M - 1, BLOCK_N - 1),
        case(BLOCK_M + 1, BLOCK_N + 1),
        case(37, 263),
        case(1, 300),
        case(50, 1),
        Case("37 x 150 transposed", transposed),
        Case("129 x 129 transposed", square_transposed),
        Case("17 x 100 window with steps 2 and 3", window),
        Case("20 x 130, one row expanded", one_row_repeated),
        Case("20 x 130, one column expanded", one_column_repeated),
        Case("inf and nan, 17 x 40", specials),
        case(19, 131, torch.float16),
        case(19, 131, torch.bfloat16),
        Case("19 x 131 int32", integers),
    ),
    timing=Timing("8192 x 8192 float32", lambda draw: (draw.normal(8192, 8192),)),
    mistakes=(
        Mistake(
            cause="assumes_contiguous",
            message="The columns are read at stride 1: column j lies j * stride_xn elements from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=read_with_unit_column_stride,
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="x is read from row * N + column, or with the strides of out; it has strides of its own.",
            concept="strides",
            see="m03.lesson.strides",
            model=read_as_contiguous,
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="swapped_axes",
            message="The output is x transposed: [:, None] and [None, :], or the two strides, are exchanged once.",
            concept="broadcasting",
            see="m03.lesson.tiles",
            model=lambda x: x.t().contiguous() if x.shape[0] == x.shape[1] else None,
        ),
        Mistake(
            cause="missing_tile_offset",
            message="Every tile repeats the rows of the first one: the row offsets lack program_id(0) * BLOCK_M.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=rows_of_the_first_tile,
        ),
        Mistake(
            cause="missing_tile_offset",
            message="Every tile repeats the columns of the first one: the column offsets lack program_id(1) * BLOCK_N.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=columns_of_the_first_tile,
        ),
    ),
    hints=(
        "For BLOCK_M = 2, BLOCK_N = 4 and a 3 x 6 matrix: how many tiles are there, and which rows and columns does "
        "tile (1, 1) own?",
        "rows[:, None] is a column of indices, cols[None, :] a row of indices; what you compute from both is a tile. "
        "The mask is the & of one comparison a dimension.",
        "tile = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn, mask=mask), the same with out "
        "for the store; grid = (triton.cdiv(n_rows, BLOCK_M), triton.cdiv(n_cols, BLOCK_N))",
    ),
)
