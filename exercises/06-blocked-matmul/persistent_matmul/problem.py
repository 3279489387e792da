import torch

from grader.problem import Case, Draw, Problem, Timing, Tolerance, Work

from .mistakes import MISTAKES


def reference(a, b, programs):
    return a @ b


def work(a, b, programs):
    (m, k), n = a.shape, b.shape[1]
    return Work(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def sum_of_magnitudes(a, b, programs):
    """What rounding grows with: the sum of |a| * |b| along K, for each element of C."""
    return a.double().abs() @ b.double().abs()


def case(m: int, n: int, k: int, programs: int = 4, note: str = "", **options) -> Case:
    def make(draw: Draw):
        return draw.normal(m, k, dtype=torch.float16), draw.normal(k, n, dtype=torch.float16), programs

    name = f"{m}x{n}x{k}, {programs} program{'s' if programs > 1 else ''}"
    return Case(f"{name}, {note}" if note else name, make, **options)


def rows_of_wider_matrices(draw: Draw):
    """Columns 8 to 48 and 16 to 72 of matrices with 64 and 88: row strides larger than the rows."""
    return draw.normal(40, 64, dtype=torch.float16)[:, 8:48], draw.normal(40, 88, dtype=torch.float16)[:, 16:72], 4


def zeros_and_ones(draw: Draw):
    a = draw.integers(70, 40, low=0, high=2, dtype=torch.float16)
    return a, draw.integers(40, 72, low=0, high=2, dtype=torch.float16), 4


def large_partial_sums(draw: Draw):
    """The first 32 products of each sum reach 320 000, past float16's 65 504; the next 32 take it away again."""
    a = draw.full(16, 64, value=100.0, dtype=torch.float16)
    b = draw.full(64, 16, value=100.0, dtype=torch.float16)
    b[32:] = -100.0
    b[0] += draw.integers(16, low=0, high=8, dtype=torch.float16)
    return a, b, 4


def full_size(draw: Draw, n: int = 4096):
    """One program for each multiprocessor of this GPU."""
    on_gpu = draw.device.type == "cuda"
    programs = torch.cuda.get_device_properties(draw.device).multi_processor_count if on_gpu else 132
    return draw.normal(n, n, dtype=torch.float16), draw.normal(n, n, dtype=torch.float16), programs


PROBLEM = Problem(
    slug="persistent_matmul",
    title="Persistent matmul with descriptors",
    entry="persistent_matmul",
    parameters=("a", "b", "programs"),
    contiguous=True,
    reference=reference,
    eager=lambda a, b, programs: a @ b,
    work=work,
    tolerance=Tolerance(scale=sum_of_magnitudes),
    cases=(
        case(96, 72, 40, note="nine tiles"),
        case(16, 16, 16, note="one tile"),
        case(1, 8, 8, 1),
        case(32, 64, 32, note="two tiles"),
        case(64, 64, 64, note="four tiles"),
        case(0, 8, 8),
        case(65, 40, 72, 1, note="six tiles"),
        case(130, 64, 24, 3, note="ten tiles"),
        Case("40x56x40, 4 programs, rows of wider matrices", rows_of_wider_matrices),
        Case("70x72x40, 4 programs, zeros and ones", zeros_and_ones),
        Case("16x16x64, 4 programs, partial sums past 65504", large_partial_sums),
        case(700, 1000, 520, 132, needs_gpu="too many tiles for the interpreter", offline=False),
    ),
    timing=Timing("4096x4096x4096 float16", full_size, limit="compute", fair=0.5, fast=0.75),
    sizes=tuple(
        Timing(f"{n}x{n}x{n} float16", lambda draw, n=n: full_size(draw, n), limit="compute", fair=0.5, fast=0.75)
        for n in (2048, 8192)
    ),
    mistakes=MISTAKES,
    hints=(
        "Nine tiles and four programs: write down which tiles program 1 computes. What must be new for each tile, and what is "
        "made once for all of them?",
        "for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0)): the tile's row and column, acc = zeros, the K loop "
        "with a_desc.load([row * BLOCK_M, k * BLOCK_K]) and b_desc.load([k * BLOCK_K, column * BLOCK_N]), then c_desc.store.",
        "a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[stride_am, 1], block_shape=[BLOCK_M, BLOCK_K])",
    ),
)
