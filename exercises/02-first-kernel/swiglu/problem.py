import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

HALF = (torch.float16, torch.bfloat16)


def halves(x):
    n = x.shape[1] // 2
    return x[:, :n], x[:, n:]


def in_float32(function):
    """`function(gate, up)` computed in float32 for half-precision inputs and rounded once; in float64 for float64."""

    def whole(x):
        gate, up = halves(x.float() if x.dtype in HALF else x)
        return function(gate, up).to(x.dtype)

    return whole


def silu(v):
    return torch.nn.functional.silu(v)


reference = in_float32(lambda gate, up: silu(gate) * up)


def eager(x):
    gate, up = halves(x)
    return silu(gate) * up


def work(x):
    return Work(bytes=x.numel() * x.element_size() * 3 // 2, flops=5 * (x.numel() // 2))


def magnitude(x):
    """The rounding of exp(-gate) grows with the gate's size; all else is relative to the result."""
    gate, up = halves(x.double())
    return (silu(gate) * up).abs() * (1 + gate.abs())


def case(m: int, n: int, dtype: torch.dtype = torch.float32, scale: float = 2.0) -> Case:
    def make(draw: Draw):
        return (draw.normal(m, 2 * n, dtype=dtype, scale=scale),)

    return Case(f"M={m} N={n} {str(dtype).removeprefix('torch.')}", make)


def large_gates(draw: Draw):
    x = draw.normal(3, 80)
    x[:, :40] = draw.uniform(3, 40, low=-120.0, high=120.0)
    x[0, 0], x[0, 1], x[1, 0] = 1e4, -1e4, 100.0
    return (x,)


def small_sigmoids(draw: Draw):
    """sigmoid(gate) is 1e-7 to 2e-5: float16 has few digits left there, though it holds the results well."""
    gate = draw.uniform(4, 60, low=-16.0, high=-11.0)
    return (torch.cat((gate, draw.normal(4, 60, scale=50.0)), dim=1).half(),)


def with_specials(draw: Draw):
    x = draw.normal(2, 10)
    x[0, 0], x[0, 6], x[1, 2] = float("inf"), float("nan"), float("nan")
    return (x,)


def interleaved(x):
    return silu(x[:, ::2].float() if x.dtype in HALF else x[:, ::2]) * x[:, 1::2]


def rows_of_n(x):
    """Row i read from i * N on, as if x had the shape of out."""
    m, n = x.shape[0], x.shape[1] // 2
    if m < 2 or n == 0:
        return None
    start = torch.arange(m)[:, None] * n + torch.arange(n)
    flat = x.flatten()
    return reference(torch.cat((flat[start], flat[start + n]), dim=1))


def sigmoid_in_half(x):
    if x.dtype not in HALF:
        return None
    gate, up = halves(x)
    return gate * torch.sigmoid(gate.float()).to(x.dtype) * up


def overflowing(x):
    y = in_float32(lambda gate, up: gate * torch.exp(gate) / (1 + torch.exp(gate)) * up)(x)
    return y if bool((y.isnan() & ~reference(x).isnan()).any()) else None


PROBLEM = Problem(
    slug="swiglu",
    title="SwiGLU, fused",
    entry="swiglu",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(scale=magnitude),
    cases=(
        case(2, 5),
        case(1, 1),
        case(3, 37),
        case(0, 5),
        case(3, 0),
        case(2, 1023),
        case(2, 1024),
        case(2, 1025),
        case(3, 2503),
        case(5, 131, torch.float16),
        case(5, 131, torch.bfloat16),
        Case("gates to 1e4, M=3 N=40", large_gates),
        Case("gates -16 to -11, M=4 N=60 float16", small_sigmoids),
        Case("inf and nan, M=2 N=5", with_specials),
    ),
    timing=Timing("M=16384 N=11008 bfloat16", lambda draw: (draw.normal(16384, 22016, dtype=torch.bfloat16),)),
    mistakes=(
        Mistake(
            cause="halves_exchanged",
            message="The output is gate * silu(up): the gate is the first half of a row, and silu belongs to it.",
            concept="fusion",
            see="m02.lesson.fusion",
            model=in_float32(lambda gate, up: gate * silu(up)),
            line=r"sigmoid\(up\)|up \* tl|exp\(-up\)",
        ),
        Mistake(
            cause="interleaved_for_halves",
            message="Gate and up were taken from alternate columns: the gate is columns 0 to N - 1, the up is N to 2N - 1.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=interleaved,
            line=r"2 \* (?:cols|offs)|(?:cols|offs) \* 2",
        ),
        Mistake(
            cause="wrong_row_length",
            message="Row i of x was read from i * N on: its rows are 2N long, so row i begins at i * 2N.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=rows_of_n,
            line=r"x_ptr \+ (?:row|pid\w*) \* n_cols",
        ),
        Mistake(
            cause="step_left_out",
            message="The output is sigmoid(gate) * up: silu multiplies the sigmoid by the gate itself.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=in_float32(lambda gate, up: torch.sigmoid(gate) * up),
            line=r"sigmoid\(",
        ),
        Mistake(
            cause="step_left_out",
            message="The output is silu(gate): it was not multiplied by up.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=in_float32(lambda gate, up: silu(gate)),
        ),
        Mistake(
            cause="activation_after_product",
            message="The output is silu(gate * up): the activation comes first, then the product with up.",
            concept="fusion",
            see="m02.lesson.fusion",
            model=in_float32(lambda gate, up: silu(gate * up)),
        ),
        Mistake(
            cause="wrong_sign",
            message="The output is gate * sigmoid(-gate) * up: silu(v) = v / (1 + exp(-v)), with the minus.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=in_float32(lambda gate, up: gate * torch.sigmoid(-gate) * up),
            line=r"exp\((?!-)|sigmoid\(-",
        ),
        Mistake(
            cause="exp_overflows",
            message="A large gate gives NaN: exp(gate) is inf from 89 on, and inf / inf is NaN. Write v / (1 + exp(-v)), "
            "or tl.sigmoid.",
            concept="numerics",
            see="m02.lesson.fusion",
            model=overflowing,
            line=r"exp\(",
        ),
        Mistake(
            cause="activation_in_half",
            message="The sigmoid was rounded to half precision before it was multiplied: for gates of -11 and less few of its "
            "digits are left. Keep everything in float32 until the store.",
            concept="numerics",
            see="m02.lesson.fusion",
            model=sigmoid_in_half,
            line=r"\.to\(\s*(?:tl\.float16|tl\.bfloat16|\w+\.dtype)",
        ),
    ),
    hints=(
        "For M = 2 and N = 3, x has 12 elements. Where in memory does row 1 begin, and where does its up?",
        "Row i of x begins at i * 2 * n_cols, its up n_cols further on; row i of out begins at i * n_cols. Cast both tiles "
        "to float32 as soon as they are loaded. tl.sigmoid needs float32.",
        "gate = tl.load(x_ptr + row * 2 * n_cols + cols, mask=mask).to(tl.float32), up with + n_cols; "
        "tl.store(out_ptr + row * n_cols + cols, gate * tl.sigmoid(gate) * up, mask=mask)",
    ),
)
