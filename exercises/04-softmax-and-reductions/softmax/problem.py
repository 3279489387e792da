import math

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def reference(x):
    return torch.softmax(x, dim=1)


def work(x):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=5 * x.numel())


def magnitude(x, *_):
    """The rounding of x - m reaches the exponential: exp(d) is off by about |d| eps, and the sum by its own eps."""
    if x.numel() == 0:
        return x
    finite = torch.nan_to_num(x, nan=0.0, posinf=0.0, neginf=0.0)
    distance = (finite.amax(dim=1, keepdim=True) - finite).clamp(max=200.0)
    p = torch.nan_to_num(torch.softmax(x, dim=1), nan=0.0)
    return p * (2.0 + distance)


def case(m: int, n: int, dtype: torch.dtype = torch.float32, scale: float = 1.0) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')}" + (f" of size {scale:g}" if scale != 1.0 else "")
    return Case(name, lambda draw: (draw.normal(m, n, dtype=dtype, scale=scale),))


def all_negative(m: int, n: int, dtype: torch.dtype = torch.float32) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')} all negative"
    return Case(name, lambda draw: (draw.uniform(m, n, low=-9.0, high=-5.0, dtype=dtype),))


def beyond_exp(draw: Draw):
    """exp overflows float32 above 88.7, and is 0 below -104."""
    x = draw.normal(3, 100)
    x[0] += 1000.0
    x[1] -= 1000.0
    x[2, ::2] = 10000.0
    return (x,)


def equal_values(draw: Draw):
    return (draw.full(3, 100, value=-50.0),)


def masked_logits(draw: Draw):
    x = draw.normal(4, 70)
    x[0, 5:] = float("-inf")
    x[1, :69] = float("-inf")
    x[2] = float("-inf")
    x[3, 3] = float("nan")
    return (x,)


def transposed(draw: Draw):
    return (draw.normal(37, 5).t(),)


def square_transposed(draw: Draw):
    return (draw.normal(33, 33).t(),)


def window(draw: Draw):
    return (draw.normal(9, 700)[2:7, 100:700:2],)


def one_row_repeated(draw: Draw):
    return (draw.normal(1, 129).expand(6, 129),)


def padding(x: torch.Tensor) -> int:
    """Lanes of the tile that are no column."""
    n = x.shape[1]
    return (1 << max(n - 1, 0).bit_length()) - n


def padded_with_zero(x: torch.Tensor) -> torch.Tensor | None:
    if x.numel() == 0 or padding(x) == 0:
        return None
    wide = x.float()
    m = wide.amax(dim=1, keepdim=True).clamp(min=0.0)
    e = torch.exp(wide - m)
    return (e / (e.sum(dim=1, keepdim=True) + padding(x) * torch.exp(-m))).to(x.dtype)


def without_maximum(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x.float())
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)


def without_division(x: torch.Tensor) -> torch.Tensor | None:
    if x.numel() == 0:
        return None
    wide = x.float()
    return torch.exp(wide - wide.amax(dim=1, keepdim=True)).to(x.dtype)


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


def with_unit_column_stride(x: torch.Tensor) -> torch.Tensor | None:
    seen = read_with_unit_column_stride(x)
    return None if seen is None else reference(seen)


def result_like_a_transposed_input(x: torch.Tensor) -> torch.Tensor | None:
    """out has the strides of x (empty_like keeps them), and its columns are stored side by side: rows overlap."""
    m, n = x.shape
    if x.stride() != (1, m) or m < 2 or n < 2 or m == n:
        return None
    right = reference(x)
    memory = torch.full((m * n,), float("nan"), dtype=x.dtype)
    for row in range(m):  # a later program stores over the earlier ones
        memory[row : row + n] = right[row]
    return memory.as_strided((m, n), (1, m)).clone()


def rows_of_minus_inf_as_zero(x: torch.Tensor) -> torch.Tensor | None:
    empty = (x == float("-inf")).all(dim=1, keepdim=True)
    if x.numel() == 0 or not bool(empty.any()):
        return None
    return torch.where(empty, torch.zeros_like(x), reference(x))


def base_two(x: torch.Tensor) -> torch.Tensor | None:
    return torch.softmax(x.double() * math.log(2), dim=1).to(x.dtype) if x.numel() else None


def maximum_from_zero(x: torch.Tensor) -> torch.Tensor | None:
    """Right in exact arithmetic; rows far below 0 underflow to 0/0."""
    if x.numel() == 0:
        return None
    e = torch.exp(x.float() - x.float().amax(dim=1, keepdim=True).clamp(min=0.0))
    return (e / e.sum(dim=1, keepdim=True)).to(x.dtype)


def read_as_contiguous(x: torch.Tensor) -> torch.Tensor | None:
    m, n = x.shape
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if x.is_contiguous() or m * n > in_storage:
        return None
    return torch.softmax(x.as_strided((m, n), (n, 1)), dim=1)


PROBLEM = Problem(
    slug="softmax",
    title="Fused softmax",
    entry="softmax",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(terms=8.0, scale=magnitude),
    cases=(
        case(1, 1),
        case(2, 4),
        all_negative(3, 5),
        case(0, 5),
        case(3, 0),
        case(3, 127),
        case(3, 128),
        case(3, 129),
        case(3, 781),
        all_negative(2, 1025),
        Case("3 x 100 shifted by 1000, -1000 and 10000", beyond_exp),
        case(3, 257, scale=100.0),
        Case("3 x 100 all equal", equal_values),
        Case("-inf, all -inf and nan, 4 x 70", masked_logits),
        case(1, 32768),
        case(3, 1000, torch.float16),
        case(3, 1000, torch.float16, scale=100.0),
        all_negative(3, 1000, torch.bfloat16),
        Case("5 x 37 transposed", transposed),
        Case("33 x 33 transposed", square_transposed),
        Case("5 x 300 window, every second column", window),
        Case("6 x 129, one row expanded", one_row_repeated),
    ),
    timing=Timing("32768 x 4096 float16", lambda draw: (draw.normal(32768, 4096, dtype=torch.float16),)),
    sizes=tuple(
        Timing(f"{m} x {n} {name}", lambda draw, m=m, n=n, d=d: (draw.normal(m, n, dtype=d),))
        for m, n, name, d in (
            (131072, 781, "float16", torch.float16),
            (131072, 1024, "float16", torch.float16),
            (16384, 8192, "float16", torch.float16),
            (8192, 16384, "float16", torch.float16),
            (4096, 32768, "float16", torch.float16),
            (32768, 4096, "bfloat16", torch.bfloat16),
            (16384, 4096, "float32", torch.float32),
        )
    ),
    mistakes=(
        Mistake(
            cause="missing_max_subtraction",
            message="exp overflows (or every term is 0): subtract the maximum of the row before the exponential.",
            concept="numerics",
            see="m04.lesson.softmax",
            model=without_maximum,
            line=r"tl\.exp2?\(",
        ),
        Mistake(
            cause="wrong_fill_for_max",
            message="Rows do not sum to 1: padded lanes hold 0, which enters the maximum and the sum. "
            "Load them with other=-float('inf').",
            concept="masking",
            see="m03.lesson.fill",
            model=padded_with_zero,
            line=r"other=\s*0|tl\.where\(.*,\s*0|tl\.load\((?!.*inf)",
        ),
        Mistake(
            cause="missing_denominator",
            message="The exponentials are stored without the division by their sum.",
            concept="reductions",
            see="m04.lesson.softmax",
            model=without_division,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="swapped_axes",
            message="Columns sum to 1, not rows: the two strides of x are exchanged, and the output with them.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: torch.softmax(x, dim=0) if x.shape[0] == x.shape[1] else None,
        ),
        Mistake(
            cause="swapped_strides",
            message="Row i of the output is the softmax of column i: the two strides of x are exchanged.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: torch.softmax(x.t(), dim=1) if x.shape[0] == x.shape[1] else None,
            line=r"row \* stride_xn",
        ),
        Mistake(
            cause="missing_row_offset",
            message="Every row is the softmax of row 0: the address of x lacks row * stride_xm.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: torch.softmax(x[:1], dim=1).expand(x.shape).clone(),
            line=r"tl\.load\(x_ptr(?!.*stride_xm)",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The columns are read at stride 1: column j lies j * stride_xn elements from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=with_unit_column_stride,
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="output_stored_with_input_strides",
            message="The answer lies in out column by column: out was addressed with the strides of x; it has its own.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: stored_with_strides_of_x(x, reference(x)),
            line=r"out_ptr \+.*stride_x",
        ),
        Mistake(
            cause="output_keeps_input_strides",
            message="out has the strides of x: empty_like keeps those of a transposed x, and the store takes the columns for "
            "neighbours. Make it with torch.empty(x.shape, …).",
            concept="strides",
            see="m03.quiz.empty-like",
            model=result_like_a_transposed_input,
            line=r"empty_like\(",
        ),
        Mistake(
            cause="row_of_minus_inf",
            message="A row that is all -inf came out as zeros; PyTorch and the task give NaN. Padding with a finite number does "
            "this (its lanes win the maximum), and so does replacing NaN by 0.",
            concept="masking",
            see="m03.lesson.fill",
            model=rows_of_minus_inf_as_zero,
            line=r"other=\s*-\s*\d",
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
            cause="max_starts_at_zero",
            message="The maximum that is subtracted is never below 0: rows far below 0 underflow to 0/0.",
            concept="numerics",
            see="m04.lesson.softmax",
            model=maximum_from_zero,
            line=r"(?m)^[^#\n]*tl\.max",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The rows are read from row * N + column, as if x were contiguous; use both strides of x.",
            concept="strides",
            see="m03.lesson.strides",
            model=read_as_contiguous,
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
    ),
    hints=(
        "Write the five steps for the row [-3, -1] in a tile of four lanes. What must the two other lanes hold before "
        "the maximum, and what do they hold after exp?",
        "One fill serves both reductions: -inf never wins the maximum, and exp(-inf) = 0. BLOCK_N is "
        "triton.next_power_of_2(n_cols); cast to float32 before the maximum is subtracted.",
        'x = tl.load(…, mask=mask, other=-float("inf")).to(tl.float32); e = tl.exp(x - tl.max(x, axis=0)); '
        "tl.store(…, e / tl.sum(e, axis=0), mask=mask)",
    ),
)
