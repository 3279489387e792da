import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES

BFLOAT16 = "the interpreter computes bfloat16 dots wrongly"


def reference(a, b):
    return torch.bmm(a, b)


def stored_bytes(x) -> int:
    """What must be read of an input: a batch of stride 0 is one matrix."""
    matrices = 1 if x.stride(0) == 0 else x.shape[0]
    return matrices * x.shape[1] * x.shape[2] * x.element_size()


def work(a, b):
    (s, m, k), n = a.shape, b.shape[2]
    return Work(bytes=stored_bytes(a) + stored_bytes(b) + s * m * n * a.element_size(), flops=2 * s * m * n * k)


def sum_of_magnitudes(a, b):
    """What rounding grows with: the sum of |a| * |b| along K, for each element of C."""
    return a.double().abs() @ b.double().abs()


def case(s: int, m: int, n: int, k: int, dtype: torch.dtype = torch.float16, **options) -> Case:
    def make(draw: Draw):
        return draw.normal(s, m, k, dtype=dtype), draw.normal(s, k, n, dtype=dtype)

    return Case(f"{s} of {m}x{n}x{k} {str(dtype).removeprefix('torch.')}", make, **options)


def shared_weight(draw: Draw):
    return draw.normal(3, 17, 40, dtype=torch.float16), draw.normal(1, 40, 20, dtype=torch.float16).expand(3, 40, 20)


def shared_input(draw: Draw):
    return draw.normal(17, 40, dtype=torch.float16).expand(3, 17, 40), draw.normal(3, 40, 20, dtype=torch.float16)


def batch_in_the_middle(draw: Draw):
    """Attention's layout, [tokens, heads, features] seen as [heads, tokens, features]; b is k transposed."""
    q, k = draw.normal(35, 3, 32, dtype=torch.float16), draw.normal(41, 3, 32, dtype=torch.float16)
    return q.transpose(0, 1), k.permute(1, 2, 0)


def both_transposed(draw: Draw):
    a, b = draw.normal(2, 40, 33, dtype=torch.float16), draw.normal(2, 21, 40, dtype=torch.float16)
    return a.transpose(1, 2), b.transpose(1, 2)


def every_second(draw: Draw):
    """Every second matrix, every second column."""
    a = draw.normal(4, 20, 90, dtype=torch.float16)[::2, :, ::2]
    return a, draw.normal(2, 60, 50, dtype=torch.float16)[:, 10:55, 4:41]


def zeros_and_ones(draw: Draw):
    a = draw.integers(2, 33, 40, low=0, high=2, dtype=torch.float16)
    return a, draw.integers(2, 40, 33, low=0, high=2, dtype=torch.float16)


def large_partial_sums(draw: Draw):
    """The first 32 products of each sum reach 320 000, past float16's 65 504; the next 32 take it away again."""
    a = draw.full(2, 16, 64, value=100.0, dtype=torch.float16)
    b = draw.full(2, 64, 16, value=100.0, dtype=torch.float16)
    b[:, 32:] = -100.0
    b[:, 0] += draw.integers(2, 16, low=0, high=8, dtype=torch.float16)
    return a, b


PROBLEM = Problem(
    slug="batched_matmul",
    title="A batch of matrix products",
    entry="batched_matmul",
    parameters=("a", "b"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(scale=sum_of_magnitudes),
    cases=(
        case(2, 16, 16, 16),
        case(3, 17, 33, 65),
        case(1, 32, 32, 32),
        case(5, 1, 1, 1),
        case(0, 4, 5, 6),
        case(2, 0, 5, 7),
        case(2, 5, 7, 0),
        case(2, 40, 70, 33),
        Case("3 of 17x20x40, one b for all, stride 0", shared_weight),
        Case("3 of 17x20x40, one a for all, stride 0", shared_input),
        Case("3 of 35x41x32, the batch is the middle axis", batch_in_the_middle),
        Case("2 of 33x21x40, both transposed", both_transposed),
        Case("2 of 20x37x45, slices", every_second),
        Case("2 of 33x33x40, zeros and ones", zeros_and_ones),
        Case("2 of 16x16x64, partial sums past 65504", large_partial_sums),
        case(3, 65, 33, 100, torch.bfloat16, needs_gpu=BFLOAT16),
        case(70000, 1, 2, 3, needs_gpu="70000 programs are too many for the interpreter", offline=False),
    ),
    timing=Timing(
        "16 of 1024x1024x1024 float16",
        lambda draw: (
            draw.normal(16, 1024, 1024, dtype=torch.float16),
            draw.normal(16, 1024, 1024, dtype=torch.float16),
        ),
        limit="compute",
        fair=0.35,
        fast=0.55,
    ),
    mistakes=MISTAKES,
    hints=(
        "Before any code: how many tiles has one C[i], and how many has the whole batch? Number them; divide the number.",
        "One axis will do: tiles_m * tiles_n * S programs, matrix = pid // tiles, tile = pid % tiles. Then a_ptr, b_ptr and "
        "c_ptr each move by matrix * their own batch stride, and the rest is matmul.",
        "matrix = (pid // (tiles_m * tiles_n)).to(tl.int64); a_ptr += matrix * stride_as; b_ptr += matrix * stride_bs; "
        "c_ptr += matrix * stride_cs",
    ),
)
