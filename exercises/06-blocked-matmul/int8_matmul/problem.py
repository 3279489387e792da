import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES, whole_sum


def reference(a, b, a_scale, b_scale):
    """The sum in float64 is exact; float16 comes last."""
    scaled = whole_sum(a, b).double() * a_scale.double()[:, None] * b_scale.double()[None, :]
    return scaled if a_scale.dtype == torch.float64 else scaled.half()


def eager(a, b, a_scale, b_scale):
    """torch._int_mm wants more than 16 rows, and on CUDA K and N that are multiples of 8."""
    return (torch._int_mm(a, b) * a_scale[:, None] * b_scale).half()


def work(a, b, a_scale, b_scale):
    (m, k), n = a.shape, b.shape[1]
    return Work(bytes=m * k + k * n + 4 * (m + n) + 2 * m * n, flops=2 * m * n * k)


def int8(draw: Draw, *shape: int) -> torch.Tensor:
    return draw.integers(*shape, low=-128, high=128, dtype=torch.int8)


def scales(draw: Draw, m: int, n: int, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """As a quantiser would choose them, for outputs of about one."""
    typical = 5500 * max(k, 1) ** 0.5  # standard deviation of a sum of k products
    return draw.uniform(m, low=0.5, high=2.0), draw.uniform(n, low=0.5, high=2.0) / typical


def case(m: int, n: int, k: int, note: str = "", **options) -> Case:
    def make(draw: Draw):
        return int8(draw, m, k), int8(draw, k, n), *scales(draw, m, n, k)

    return Case(f"{m}x{n}x{k}{', ' + note if note else ''}", make, **options)


def linear_layer(draw: Draw):
    return int8(draw, 40, 70), int8(draw, 50, 70).t(), *scales(draw, 40, 50, 70)


def transposed_and_sliced(draw: Draw):
    return int8(draw, 66, 33).t(), int8(draw, 70, 60)[2:68, 3:59:2], *scales(draw, 33, 28, 66)


def extremes(draw: Draw):
    """All values -128: each product is 16384, and no int8 or int16 holds it."""
    a, b = (draw.full(*shape, value=-128, dtype=torch.int8) for shape in ((20, 96), (96, 24)))
    return a, b, *scales(draw, 20, 24, 96**2)


def far_and_back(draw: Draw):
    """Sums climb past 2^24, where float32 loses the odd numbers, and come back to a few units: K = 2176."""
    a = draw.full(16, 2176, value=127, dtype=torch.int8)
    b = draw.full(2176, 16, value=127, dtype=torch.int8)
    b[1088:] = -127
    few = draw.integers(16, low=1, high=5, dtype=torch.int8)
    a[:, 1040:1050] = 1  # small odd terms, added while the sum is large
    b[1040] = few
    a[:, 2126:2136] = 1
    b[1041:1050], b[2126:2136] = 1, -1
    return a, b, draw.uniform(16, low=0.5, high=2.0), draw.uniform(16, low=0.5, high=2.0)


def scales_of_another_size(draw: Draw):
    """Row scales near 1e-6 and column scales near 1e6: float16 holds neither, and their product is an ordinary number."""
    a_scale, b_scale = scales(draw, 20, 33, 64)
    return int8(draw, 20, 64), int8(draw, 64, 33), a_scale * 1e-6, b_scale * 1e6


PROBLEM = Problem(
    slug="int8_matmul",
    title="int8 matmul with scales",
    entry="int8_matmul",
    parameters=("a", "b", "a_scale", "b_scale"),
    contiguous=True,
    reference=reference,
    eager=eager,
    work=work,
    out_dtype=lambda *args: torch.float16,
    tolerance=Tolerance(ulps=1.0),
    cases=(
        case(17, 33, 65),
        case(1, 1, 1),
        case(32, 32, 64),
        case(0, 5, 7),
        case(5, 7, 0),
        case(33, 31, 64),
        case(40, 40, 40),
        Case("40x50x70, b = w.t()", linear_layer),
        Case("33x28x66, a transposed, b sliced", transposed_and_sliced),
        Case("20x24x96, all -128", extremes),
        Case("16x16x2176, sums past 2^24 and back", far_and_back),
        Case("20x33x64, scales of 1e-6 and 1e6", scales_of_another_size),
        case(300, 500, 1000, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "4096x4096x4096, b = w.t()",
        lambda draw: (
            int8(draw, 4096, 4096),
            int8(draw, 4096, 4096).t(),
            draw.uniform(4096, low=0.5, high=2.0),
            draw.uniform(4096, low=0.5, high=2.0) / 4e5,
        ),
        limit="compute",
        fair=0.5,
        fast=0.7,
    ),
    mistakes=MISTAKES,
    hints=(
        "Where in the formula do the scales stand: inside the sum over k, or outside? What does that leave for the loop?",
        "An int32 accumulator and int8 tiles: acc = tl.dot(a, b, acc, out_dtype=tl.int32). After the loop acc.to(tl.float32), "
        "times the row scales as a column and the column scales as a row.",
        "c = acc.to(tl.float32) * a_scale[:, None] * b_scale[None, :]; tl.store(c_ptrs, c.to(tl.float16), mask=…)",
    ),
)
