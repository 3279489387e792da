import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 64  # as the task says


def reference(rows, cols):
    return rows[:, None] * cols[None, :]


def work(rows, cols):
    m, n = rows.numel(), cols.numel()
    return Work(bytes=(m + n + m * n) * rows.element_size(), flops=m * n)


def case(m: int, n: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return draw.normal(m, dtype=dtype), draw.normal(n, dtype=dtype)

    return Case(f"M={m} N={n} {str(dtype).removeprefix('torch.')}", make)


def with_specials(draw: Draw):
    rows, cols = draw.normal(3), draw.normal(70)
    rows[0], cols[1], cols[2] = float("inf"), 0.0, float("nan")
    return rows, cols


def first_columns_only(rows, cols):
    return None if cols.numel() <= BLOCK else only(rows, cols, rows.numel(), BLOCK)


def only(rows, cols, m: int, n: int):
    """The upper left m x n corner, and nothing written elsewhere: poison (NaN), or a torch.zeros' zeros."""
    right = reference(rows, cols)

    def matches(out: torch.Tensor) -> bool:
        written = torch.zeros(out.shape, dtype=torch.bool)
        written[:m, :n] = True
        if bool(written.all()) or not torch.equal(out[written], right[written]):
            return False
        return bool(out[~written].isnan().all()) or bool((out[~written] == 0).all())

    return matches


def swapped(rows, cols):
    if rows.numel() != cols.numel():
        return None
    return reference(cols, rows)


def grid_axes_exchanged(rows, cols):
    """As many rows as there should be tiles of columns, and as many tiles as rows."""
    m, n = -(-cols.numel() // BLOCK), rows.numel() * BLOCK
    return only(rows, cols, m, n) if 1 < m < rows.numel() else None


def stored_by_column(rows, cols):
    """out[row + col * M]: the answer lies in memory column by column."""
    if rows.numel() < 2 or cols.numel() < 2:
        return None
    return reference(rows, cols).t().reshape(rows.numel(), cols.numel())


PROBLEM = Problem(
    slug="grid_2d",
    title="A grid with two axes",
    entry="outer",
    parameters=("rows", "cols"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1),
        case(7, 193),  # several tiles a row, fewer than rows: an exchange shows
        case(3, 5),
        case(5, 5),
        case(0, 5),
        case(4, 0),
        case(2, 63),
        case(2, 64),
        case(2, 65),
        case(11, 131, torch.float16),
        Case("inf, nan and 0, M=3 N=70", with_specials),
    ),
    # 1,048,576 programs of 64 elements: about 0.61 ns a program on an H200 whatever it does, 0.10 of copy bandwidth
    timing=Timing("M=N=8192 float32", lambda draw: (draw.normal(8192), draw.normal(8192)), fair=0.02, fast=0.05),
    mistakes=(
        Mistake(
            cause="swapped_axes",
            message="The output is transposed: the program took its row from the columns' axis of the grid, or the other way.",
            concept="grid",
            see="m01.lesson.grid",
            model=swapped,
        ),
        Mistake(
            cause="swapped_axes",
            message="Only the upper rows were written: axis 0 of the grid has as many programs as a row has tiles, and axis 1 as "
            "there are rows. Axis 0 is the row, in the grid and in tl.program_id.",
            concept="grid",
            see="m01.lesson.grid",
            model=grid_axes_exchanged,
            line=r"(?m)^[^#\n]*(?:grid\s*=\s*\((?!\s*M\b)|row\s*=\s*tl\.program_id\((?:axis=)?1)",
        ),
        Mistake(
            cause="swapped_axes",
            message="The output was stored column by column: a row of out has N elements, so out[row, col] lies at row * N + col.",
            concept="pointers",
            see="m01.lesson.model",
            model=stored_by_column,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every column was multiplied by cols[0]: cols_ptr alone is the address of the first value. Add the columns.",
            concept="pointers",
            see="m01.lesson.model",
            model=lambda rows, cols: reference(rows, cols[:1].expand_as(cols)) if cols.numel() > 1 else None,
            line=r"tl\.load\(\s*cols_ptr\s*[,)]",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every row was multiplied by rows[0]: rows_ptr alone is the address of the first row's value. Add the row.",
            concept="pointers",
            see="m01.lesson.model",
            model=lambda rows, cols: reference(rows[:1].expand_as(rows), cols) if rows.numel() > 1 else None,
            line=r"tl\.load\(\s*rows_ptr\s*[,)]",
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first BLOCK columns of each row were written: axis 1 of the grid must cover all of N, and the "
            "columns a program owns must depend on tl.program_id(1).",
            concept="grid",
            see="m01.lesson.grid",
            model=first_columns_only,
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is rows[i] + cols[j]: the task asks for the product.",
            concept="arithmetic",
            see="m01.lesson.model",
            model=lambda rows, cols: rows[:, None] + cols[None, :],
        ),
    ),
    hints=(
        "How many programs are there for M = 2 and N = 65? Which columns does program (1, 1) own?",
        "grid = (M, triton.cdiv(N, 64)). In the kernel: row = tl.program_id(0), and the columns come from tl.program_id(1).",
        "cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK); tl.store(out_ptr + row * N + cols, r * c, mask=cols < N)",
    ),
)
