import math
from collections.abc import Callable

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

HALF = (torch.float16, torch.bfloat16)
C = math.sqrt(2 / math.pi)
Model = Callable[[torch.Tensor, str], torch.Tensor | None]


def reference(x, approximate):
    return torch.nn.functional.gelu(x, approximate=approximate)


def work(x, approximate):
    # exp or erf counted as one operation
    return Work(bytes=2 * x.numel() * x.element_size(), flops=(9 if approximate == "tanh" else 5) * x.numel())


def magnitude(x, approximate):
    """1 + erf and 1 + tanh are rounded near 1, however small their sum is: the error grows with x, not with the result."""
    return x.double().abs().nan_to_num(posinf=0.0)


def case(shape: tuple[int, ...], approximate: str, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return draw.normal(*shape, dtype=dtype, scale=2.0), approximate

    sizes = " x ".join(str(n) for n in shape)
    return Case(f"{sizes} {approximate} {str(dtype).removeprefix('torch.')}", make)


def large(approximate: str, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        x = draw.normal(300, dtype=dtype, scale=30.0)
        x[0], x[1], x[2] = 1e4, -1e4, float("inf")
        x[3], x[4], x[5] = 100.0, -100.0, float("nan")
        return x, approximate

    return Case(f"values to 1e4, inf and nan, {approximate} {str(dtype).removeprefix('torch.')}", make)


def small_results(approximate: str) -> Case:
    """Phi(x) is 3e-5 to 1e-3: an argument rounded to float16 shows in it."""

    def make(draw: Draw):
        return draw.uniform(200, low=-4.0, high=-3.0, dtype=torch.float16), approximate

    return Case(f"values -4 to -3, {approximate} float16", make)


def zero_and_tiny(draw: Draw):
    x = draw.normal(64, scale=1e-4)
    x[0], x[1] = 0.0, 1e-30
    return x, "none"


def instead(function: Callable[[torch.Tensor], torch.Tensor], variant: str | None = None) -> Model:
    """What comes out when `function` is computed in place of the given variant (None: of both), in float32."""

    def model(x, approximate):
        if variant is not None and approximate != variant:
            return None
        return function(x.float() if x.dtype in HALF else x).to(x.dtype)

    return model


def erf_gelu(x):
    return reference(x, "none")


def tanh_gelu(x):
    return reference(x, "tanh")


def by_exponentials(x, approximate):
    """tanh(z) = (exp(2z) - 1) / (exp(2z) + 1): inf / inf from z = 45 on."""
    right = reference(x, approximate)
    wide = x.float() if x.dtype in HALF else x
    e = torch.exp(2 * C * (wide + 0.044715 * wide**3))
    y = (wide * 0.5 * (1 + (e - 1) / (e + 1))).to(x.dtype)
    return y if approximate == "tanh" and bool((y.isnan() & ~right.isnan()).any()) else None


def argument_in_half(x, approximate):
    """tl.erf and tl.sigmoid get float32, but of an argument that was computed in float16."""
    if x.dtype != torch.float16:
        return None
    root, outer, inner = (
        torch.tensor(c, dtype=x.dtype) for c in (math.sqrt(0.5), C, 0.044715)
    )  # as Triton rounds them
    if approximate == "none":
        return (x * 0.5 * (1 + torch.erf((x * root).float()))).to(x.dtype)
    z = outer * (x + inner * x * x * x)
    return (x * torch.sigmoid((2 * z).float())).to(x.dtype)


PROBLEM = Problem(
    slug="gelu",
    title="GELU, two variants of one kernel",
    entry="gelu",
    parameters=("x", "approximate"),
    reference=reference,
    work=work,
    tolerance=Tolerance(scale=magnitude),
    cases=(
        case((7,), "none"),
        case((7,), "tanh"),
        case((1,), "none"),
        case((300,), "none"),
        case((300,), "tanh"),
        case((0, 3), "none"),
        case((1023,), "tanh"),
        case((1024,), "none"),
        case((5, 205), "tanh"),
        case((3, 7, 59), "none", torch.float16),
        case((3, 7, 59), "tanh", torch.float16),
        small_results("none"),
        small_results("tanh"),
        case((2, 547), "none", torch.bfloat16),
        case((2, 547), "tanh", torch.bfloat16),
        large("none"),
        large("tanh"),
        large("tanh", torch.float16),
        Case("0 and tiny values, n=64", zero_and_tiny),
    ),
    # 37 machine instructions an element: on an H200 they take 1.5 times as long as its 4 bytes
    timing=Timing(
        "n=2^27 bfloat16, none",
        lambda draw: (draw.normal(2**27, dtype=torch.bfloat16), "none"),
        fair=0.45,
        fast=0.65,
    ),
    mistakes=(
        Mistake(
            cause="other_variant",
            message='approximate="none" gave the tanh variant: pass the choice to the kernel as a constexpr.',
            concept="constexpr",
            see="m02.lesson.constexpr",
            model=instead(tanh_gelu, "none"),
            line=r"TANH\s*=(?!=)",
        ),
        Mistake(
            cause="other_variant",
            message='approximate="tanh" gave the exact variant: pass the choice to the kernel as a constexpr.',
            concept="constexpr",
            see="m02.lesson.constexpr",
            model=instead(erf_gelu, "tanh"),
            line=r"TANH\s*=(?!=)",
        ),
        Mistake(
            cause="other_activation",
            message="The output is x * sigmoid(1.702 * x), a rougher approximation than the one asked for.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: x * torch.sigmoid(1.702 * x)),
            line=r"1\.702",
        ),
        Mistake(
            cause="other_activation",
            message="The output is silu(x) = x * sigmoid(x), not gelu.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(torch.nn.functional.silu),
            line=r"sigmoid\(",
        ),
        Mistake(
            cause="missing_scale",
            message="The argument of erf is x: it is x / sqrt(2).",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: x * 0.5 * (1 + torch.erf(x)), "none"),
            line=r"erf\(",
        ),
        Mistake(
            cause="missing_scale",
            message="The argument of tanh is x + 0.044715 * x**3: it is sqrt(2 / pi) times that.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: x * 0.5 * (1 + torch.tanh(x + 0.044715 * x**3)), "tanh"),
            line=r"0\.044715",
        ),
        Mistake(
            cause="wrong_scale",
            message="0.5 * (1 + tanh(z)) is sigmoid(2z): the output is what sigmoid(z) gives.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: x * torch.sigmoid(C * (x + 0.044715 * x**3)), "tanh"),
            line=r"sigmoid\(",
        ),
        Mistake(
            cause="step_left_out",
            message="The cubic term is missing: tanh gets sqrt(2 / pi) * (x + 0.044715 * x**3).",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: x * torch.sigmoid(2 * C * x), "tanh"),
        ),
        Mistake(
            cause="step_left_out",
            message="The output is Phi(x), between 0 and 1: multiply it by x.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=instead(lambda x: 0.5 * (1 + torch.erf(x / math.sqrt(2))), "none"),
        ),
        Mistake(
            cause="step_left_out",
            message="The output is twice the answer: the factor 0.5 is missing.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, approximate: 2 * reference(x, approximate),
        ),
        Mistake(
            cause="exp_overflows",
            message="A large x gives NaN: exp(2z) is inf, and inf / inf is NaN. 0.5 * (1 + tanh(z)) is tl.sigmoid(2z).",
            concept="numerics",
            see="m02.lesson.fusion",
            model=by_exponentials,
            line=r"exp\(",
        ),
        Mistake(
            cause="activation_in_half",
            message="The argument of erf or tanh was computed in float16, which has too few digits where Phi(x) is small. "
            "Cast x to float32 as soon as it is loaded.",
            concept="numerics",
            see="m02.lesson.fusion",
            model=argument_in_half,
            line=r"tl\.load\((?!.*float32)",
        ),
    ),
    hints=(
        "What does the compiler do with an `if` whose condition it knows? And with one on a value that it loads?",
        "TANH is a constexpr, True or False, given at launch. 0.5 * (1 + tanh(z)) is the same as sigmoid(2z), and "
        "tl.sigmoid overflows nowhere. Cast to float32 first: tl.erf and tl.sigmoid take nothing shorter.",
        "TANH=approximate == 'tanh' at launch; y = x * tl.sigmoid(2 * 0.7978845608 * (x + 0.044715 * x * x * x)) or "
        "y = x * 0.5 * (1 + tl.erf(x * 0.70710678))",
    ),
)
