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
    if cols.numel() <= BLOCK:
        return None
    out = torch.zeros_like(reference(rows, cols))
    out[:, :BLOCK] = reference(rows, cols[:BLOCK])
    return out


def swapped(rows, cols):
    if rows.numel() != cols.numel():
        return None
    return reference(cols, rows)


PROBLEM = Problem(
    slug="grid_2d",
    title="A grid with two axes",
    entry="outer",
    parameters=("rows", "cols"),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1),
        case(3, 5),
        case(5, 5),
        case(0, 5),
        case(4, 0),
        case(2, 63),
        case(2, 64),
        case(2, 65),
        case(7, 193),
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
