import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES, affine, relu, widened

BFLOAT16 = "the interpreter computes bfloat16 dots wrongly"


def reference(a, b, bias):
    """Rounded once, unlike PyTorch's three calls at float16: these would accept what the task forbids."""
    return relu(affine(a, b, bias)).to(a.dtype)


def eager(a, b, bias):
    return torch.relu(torch.addmm(bias, a, b))


def work(a, b, bias):
    (m, k), n = a.shape, b.shape[1]
    return Work(bytes=(m * k + k * n + n + m * n) * a.element_size(), flops=2 * m * n * k)


def sum_of_magnitudes(a, b, bias):
    """What rounding grows with: the sum of |a| * |b| along K and |bias|, for each element of the output."""
    return widened(a).abs() @ widened(b).abs() + widened(bias).abs()


def case(m: int, n: int, k: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        return draw.normal(m, k, dtype=dtype), draw.normal(k, n, dtype=dtype), draw.normal(n, dtype=dtype, scale=4)

    return Case(f"{m}x{n}x{k} {str(dtype).removeprefix('torch.')}", make, **options)


def linear_layer(draw: Draw):
    """x @ w.t(), and a bias that is a column of a table: stride 3."""
    w, table = draw.normal(50, 70, dtype=torch.float16), draw.normal(50, 3, dtype=torch.float16, scale=4)
    return draw.normal(40, 70, dtype=torch.float16), w.t(), table[:, 1]


def transposed_and_sliced(draw: Draw):
    a, b = draw.normal(50, 33, dtype=torch.float16).t(), draw.normal(60, 50, dtype=torch.float16)[5:55, 4:41]
    return a, b, draw.normal(1, dtype=torch.float16, scale=4).expand(37)


def one_bias(value: float):
    def make(draw: Draw):
        a, b = draw.normal(20, 40, dtype=torch.float16), draw.normal(40, 33, dtype=torch.float16)
        return a, b, draw.full(33, value=value, dtype=torch.float16)

    return make


def bias_cancels(draw: Draw):
    """Sums near 4410, where float16 numbers lie 4 apart, and a bias that leaves a few units of them."""
    a = draw.uniform(20, 40, low=10.0, high=11.0, dtype=torch.float16)
    b = draw.uniform(40, 24, low=10.0, high=11.0, dtype=torch.float16)
    return a, b, draw.uniform(24, low=-4420.0, high=-4400.0, dtype=torch.float16)


def bias_brings_back(draw: Draw):
    """Sums near 80 000, beyond float16; with the bias they are near 20 000."""
    a = draw.uniform(20, 32, low=49.0, high=51.0, dtype=torch.float16)
    b = draw.uniform(32, 24, low=49.0, high=51.0, dtype=torch.float16)
    return a, b, draw.full(24, value=-60000.0, dtype=torch.float16)


def with_nan(draw: Draw):
    a, b = draw.normal(20, 40, dtype=torch.float16), draw.normal(40, 33, dtype=torch.float16)
    bias = draw.normal(33, dtype=torch.float16)
    a[2, 3], bias[5], bias[7], bias[8] = float("nan"), float("nan"), float("inf"), -float("inf")
    return a, b, bias


PROBLEM = Problem(
    slug="matmul_bias_relu",
    title="Matmul with a fused epilogue",
    entry="matmul_bias_relu",
    parameters=("a", "b", "bias"),
    contiguous=True,
    reference=reference,
    eager=eager,
    work=work,
    tolerance=Tolerance(scale=sum_of_magnitudes),
    cases=(
        case(17, 33, 65),  # three steps along K, partial tiles on each side
        case(1, 1, 1),
        case(32, 32, 32),
        case(31, 33, 32),
        case(0, 5, 7),
        case(5, 7, 0),
        Case("40x50x70 float16, b = w.t(), bias of stride 3", linear_layer),
        Case("33x37x50 float16, a transposed, b sliced, bias expanded", transposed_and_sliced),
        Case("20x33x40 float16, every output 0", one_bias(-2000.0)),
        Case("20x24x40 float16, the bias takes most of the sum away", bias_cancels),
        Case("20x24x32 float16, sums past 65504 before the bias", bias_brings_back),
        Case("20x33x40 float16, nan and inf", with_nan),
        case(33, 65, 97, torch.bfloat16, needs_gpu=BFLOAT16),
        case(300, 500, 1000, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing(
        "4096x4096x4096 float16",
        lambda draw: (
            draw.normal(4096, 4096, dtype=torch.float16),
            draw.normal(4096, 4096, dtype=torch.float16),
            draw.normal(4096, dtype=torch.float16),
        ),
        limit="compute",
        fair=0.5,
        fast=0.7,
    ),
    mistakes=MISTAKES,
    hints=(
        "After the loop, what shape has acc, and which of its axes does the bias run along? In which dtype is it still exact?",
        "Load BLOCK_N values with the mask offs_n < N, give them a row axis with [None, :], add them to acc in float32, apply "
        "ReLU with tl.where (tl.maximum(nan, 0) is 0), and cast once.",
        "acc += tl.load(bias_ptr + offs_n * stride_bias, mask=offs_n < N, other=0.0)[None, :]; acc = tl.where(acc < 0, 0.0, acc)",
    ),
)
