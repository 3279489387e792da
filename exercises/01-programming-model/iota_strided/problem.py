import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 1024  # of the launcher that the stub gives


def index_of(out):
    m, n = out.shape
    return torch.arange(m * n, device=out.device).reshape(m, n)


def reference(out, step):
    return (index_of(out) * step).to(out.dtype)


def work(out, step):
    return Work(bytes=out.numel() * out.element_size(), flops=0)


def case(m: int, n: int, step: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return old_values(draw, m, n, dtype=dtype), step

    return Case(f"{m} x {n} step={step} {str(dtype).removeprefix('torch.')}", make)


def old_values(draw: Draw, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What lies in the memory before the call; no value of the answer is among the floats."""
    if dtype.is_floating_point:
        return draw.normal(*shape, dtype=dtype)
    return draw.integers(*shape, low=-(2**30), high=2**30, dtype=dtype)


def transposed(draw: Draw):
    return old_values(draw, 7, 3).t(), 5


def square_transposed(draw: Draw):
    return old_values(draw, 33, 33).t(), -2


def every_third_column(draw: Draw):
    return old_values(draw, 4, 60)[:, ::3], 1


def every_second_row(draw: Draw):
    return old_values(draw, 11, 29)[::2], 7


def window(draw: Draw):
    return old_values(draw, 9, 2300, dtype=torch.int32)[2:8:2, 100:2210:2], 3


def one_row_of_a_matrix(draw: Draw):
    return old_values(draw, 5, 40)[3:4], 4


def memory_after(out, offsets, values):
    """`out` after `values` were stored at these offsets from its first element; None where one lies past its end."""
    span = 1 + sum((n - 1) * s for n, s in zip(out.shape, out.stride(), strict=True))
    if out.numel() == 0 or int(offsets.max()) >= span:
        return None
    memory = out.as_strided((span,), (1,)).clone()
    memory[offsets.flatten()] = values.to(out.dtype).flatten()
    return memory.as_strided(out.shape, out.stride())


def columns_in_a_row(out, step):
    """Stored at i * stride_m + j: the column's stride was taken for 1."""
    if out.stride(1) == 1 or out.shape[1] < 2:
        return None
    rows = torch.arange(out.shape[0])[:, None] * out.stride(0)
    return memory_after(out, rows + torch.arange(out.shape[1]), reference(out, step))


def strides_exchanged(out, step):
    if out.stride(0) == out.stride(1):
        return None
    rows, cols = torch.arange(out.shape[0])[:, None], torch.arange(out.shape[1])
    return memory_after(out, rows * out.stride(1) + cols * out.stride(0), reference(out, step))


def offset_for_value(out, step):
    """Worth its offset times step. In a transposed view, which has no gaps, a store to index * 1 leaves the same."""
    rows, cols = torch.arange(out.shape[0])[:, None], torch.arange(out.shape[1])
    return ((rows * out.stride(0) + cols * out.stride(1)) * step).to(out.dtype)


def lane_for_column(out, step):
    """The right places, but the value counts from the start of the tile."""
    m, n = out.shape
    if n <= BLOCK:
        return None
    return ((torch.arange(m)[:, None] * n + torch.arange(n) % BLOCK) * step).to(out.dtype)


def first_tile_only(out, step):
    right = out.clone()
    right[:, :BLOCK] = reference(out, step)[:, :BLOCK]
    return right if out.shape[1] > BLOCK else None


def row_left_out_of_value(out, step):
    return (torch.arange(out.shape[1]) * step).to(out.dtype).expand(out.shape)


PROBLEM = Problem(
    slug="iota_strided",
    title="Fill a strided view",
    entry="fill_iota",
    parameters=("out", "step"),
    mutates=("out",),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1, 3),
        case(5, 5, 2),
        Case("3 x 7 transposed", transposed),
        case(3, 5, 2),
        case(0, 5, 2),
        case(3, 0, 2),
        Case("4 x 20, every third column of 60", every_third_column),
        Case("6 x 29, every second row of 11", every_second_row),
        Case("1 x 40, one row of a matrix", one_row_of_a_matrix),
        Case("33 x 33 transposed", square_transposed),
        case(2, BLOCK - 1, -1, torch.int32),
        case(2, BLOCK, 3, torch.int64),
        case(2, BLOCK + 1, 3),
        Case("3 x 1055 int32, window with steps 2 and 2", window),
        case(3, 2503, 1, torch.int64),
    ),
    timing=Timing("8192 x 8192 float32", lambda draw: (draw.normal(8192, 8192), 1)),
    mistakes=(
        Mistake(
            cause="index_and_offset_confused",
            message="Each element holds its offset in memory times step: the value was made from the offset, or the store went "
            "to out_ptr + index. The index, i * N + j, is for the value; the offset, with both strides, for the address.",
            concept="pointers",
            see="m01.lesson.model",
            model=offset_for_value,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The columns are stored side by side: column j lies j * stride_n elements from the row's start.",
            concept="strides",
            see="m01.lesson.model",
            model=columns_in_a_row,
            line=r"(?m)^[^#\n]*(?:row|pid\w*|program_id\(0\)) \* stride_m(?!.*stride_n)",
        ),
        Mistake(
            cause="swapped_strides",
            message="The two strides are exchanged: one row down is stride_m elements, one column on is stride_n.",
            concept="strides",
            see="m01.lesson.model",
            model=strides_exchanged,
            line=r"stride_n\b.*\+.*stride_m\b",
        ),
        Mistake(
            cause="lane_instead_of_column",
            message="The value starts again at 0 in every tile: it is made from tl.arange alone. "
            "The column is tl.program_id(1) * BLOCK + tl.arange(0, BLOCK).",
            concept="grid",
            see="m01.lesson.grid",
            model=lane_for_column,
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first BLOCK columns of each row were written: the columns that a program owns must depend "
            "on tl.program_id(1).",
            concept="grid",
            see="m01.lesson.grid",
            model=first_tile_only,
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row holds the values of row 0: element (i, j) has index i * N + j.",
            concept="grid",
            see="m01.lesson.grid",
            model=row_left_out_of_value,
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is index + step: the task asks for the product.",
            concept="arithmetic",
            see="m01.lesson.model",
            model=lambda out, step: (index_of(out) + step).to(out.dtype),
        ),
    ),
    hints=(
        "Take out = torch.empty(2, 6)[:, ::3]. Which index has out[1, 1], and how many elements from out_ptr does it lie?",
        "You need two formulas. The index, row * n_cols + cols, gives the value; the offset, with the two strides, gives "
        "the address. For a contiguous out they agree, for no other.",
        "tl.store(out_ptr + row * stride_m + cols * stride_n, (row * n_cols + cols) * step, mask=cols < n_cols)",
    ),
)
