import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK_K = 32  # of the launcher the stub gives
BFLOAT16 = "the interpreter computes bfloat16 dots wrongly"
MANY_TILES = "too many tiles for the interpreter"


def reference(a, b):
    return a @ b


def work(a, b):
    (m, k), n = a.shape, b.shape[1]
    return Work(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def sum_of_magnitudes(a, b):
    """What rounding grows with: the sum of |a| * |b| along K, for each element of C."""
    return a.double().abs() @ b.double().abs()


def case(
    m: int, n: int, k: int, dtype: torch.dtype = torch.float16, a_t: bool = False, b_t: bool = False, **options
) -> Case:
    def make(draw: Draw):
        a = draw.normal(k, m, dtype=dtype).t() if a_t else draw.normal(m, k, dtype=dtype)
        b = draw.normal(n, k, dtype=dtype).t() if b_t else draw.normal(k, n, dtype=dtype)
        return a, b

    which = {(True, False): ", A transposed", (False, True): ", B transposed", (True, True): ", both transposed"}
    return Case(f"{m}x{n}x{k} {str(dtype).removeprefix('torch.')}{which.get((a_t, b_t), '')}", make, **options)


def sliced(draw: Draw):
    return draw.normal(20, 90, dtype=torch.float16)[:, ::2], draw.normal(60, 50, dtype=torch.float16)[10:55, 4:41]


def zeros_and_ones(draw: Draw):
    a = draw.integers(40, 72, low=0, high=2, dtype=torch.float16)
    return a, draw.integers(72, 48, low=0, high=2, dtype=torch.float16)


def reversal(draw: Draw):
    """Times a permutation matrix: C is A with its columns reversed, exactly."""
    a = draw.normal(35, 40)
    return a, torch.eye(40, device=a.device).flip(0)


def large_partial_sums(draw: Draw):
    """The first 32 products of each sum reach 320 000, past float16's 65 504; the next 32 take it away again."""
    a = draw.full(16, 64, value=100.0, dtype=torch.float16)
    b = draw.full(64, 16, value=100.0, dtype=torch.float16)
    b[32:] = -100.0
    b[0] += draw.integers(16, low=0, high=8, dtype=torch.float16)
    return a, b


def nan_and_inf(draw: Draw):
    a, b = draw.normal(34, 40), draw.normal(40, 20)
    a[2, 3], a[33, 39] = float("inf"), float("nan")
    return a, b


def row_major_despite_strides(names: str):
    """These operands are read as if they were row-major, whatever their strides say."""

    def model(a, b):
        chosen = [x for x, name in ((a, "a"), (b, "b")) if name in names]
        # a slice: what lies between its elements is not ours to know
        if all(x.is_contiguous() for x in chosen) or not all(
            x.is_contiguous() or x.t().is_contiguous() for x in chosen
        ):
            return None
        flat = lambda x: x if x.is_contiguous() else x.t().reshape(x.shape)
        return (flat(a) if "a" in names else a) @ (flat(b) if "b" in names else b)

    return model


def first_k_tile(a, b):
    return None if a.shape[1] <= BLOCK_K else a[:, :BLOCK_K] @ b[:BLOCK_K]


def last_k_tile(a, b):
    k = a.shape[1]
    if k <= BLOCK_K:
        return None
    start = (k - 1) // BLOCK_K * BLOCK_K
    return a[:, start:] @ b[start:]


def whole_k_tiles(a, b):
    k = a.shape[1] // BLOCK_K * BLOCK_K
    return None if k == a.shape[1] else a[:, :k] @ b[:k]


def first_tile_again(a, b, again_a=True, again_b=True):
    """Every step takes the first tile of A, of B or of both, under the mask of the tile it should take."""
    k = a.shape[1]
    if k <= BLOCK_K:
        return None
    column = torch.arange(k, device=a.device)
    a = a[:, column % BLOCK_K] if again_a else a
    b = b[column % BLOCK_K] if again_b else b
    return (a.float() @ b.float()).to(a.dtype)


def b_moved_by_elements(a, b):
    """b_ptrs += BLOCK_K: along B's columns, not down its rows."""
    (k, n), rows = b.shape, torch.arange(b.shape[0], device=b.device)[:, None]
    if k <= BLOCK_K or n < 2 or not b.is_contiguous():
        return None
    offsets = rows // BLOCK_K * BLOCK_K + rows % BLOCK_K * n + torch.arange(n, device=b.device)[None, :]
    return (a.float() @ b.flatten()[offsets].float()).to(a.dtype)


def half_accumulator(a, b):
    if a.dtype == torch.float32:
        return rounded_to_half_on_the_way(a, b)
    if a.dtype != torch.float16:
        return None  # bfloat16 is coarser: a result does not tell
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device, dtype=torch.float16)
    for start in range(0, a.shape[1], BLOCK_K):
        tile = a[:, start : start + BLOCK_K].float() @ b[start : start + BLOCK_K].float()
        acc = (acc.float() + tile).half()
    return acc


def rounded_to_half_on_the_way(a, b):
    """float32 operands, and a result that float16 holds exactly, but that is not the product rounded once."""
    if a.shape[1] <= BLOCK_K or not bool(a.isfinite().all() & b.isfinite().all()):
        return None
    right = a @ b

    def matches(out):
        error = (out.double() - right.double()).abs()
        near = error <= 4e-3 * sum_of_magnitudes(a, b)
        return torch.equal(out, out.half().float()) and bool(near.all()) and bool((out != right.half().float()).any())

    return matches


def square_operands(model):
    return lambda a, b: model(a, b) if a.shape[0] == a.shape[1] == b.shape[1] > 1 else None


def cut_to_tf32(x):
    """TF32 keeps 10 of float32's 23 mantissa bits; Hopper drops the others without rounding."""
    return (x.contiguous().view(torch.int32) & -8192).view(torch.float32)


def tf32(a, b):
    return cut_to_tf32(a) @ cut_to_tf32(b) if a.dtype == torch.float32 else None


def transposed_output(a, b):
    c = a @ b
    return None if c.shape[0] != c.shape[1] or c.shape[0] < 2 else c.t().contiguous()


PROBLEM = Problem(
    slug="matmul",
    title="Blocked matrix multiply",
    entry="matmul",
    parameters=("a", "b"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(scale=sum_of_magnitudes),
    cases=(
        case(16, 16, 16),
        case(17, 33, 65),
        case(1, 1, 1),
        case(0, 5, 7),
        case(32, 32, 32),
        case(33, 31, 64, torch.float32),
        case(5, 7, 0),
        case(1, 70, 97, torch.float32),
        case(40, 40, 40),
        case(40, 50, 60, a_t=True),
        case(50, 40, 70, b_t=True),
        case(37, 41, 43, torch.float32, a_t=True, b_t=True),
        Case("20x37x45 float16, slices", sliced),
        Case("40x48x72 float16, zeros and ones", zeros_and_ones),
        Case("35x40x40 float32, columns reversed", reversal),
        Case("16x16x64 float16, partial sums past 65504", large_partial_sums),
        Case("34x20x40 float32, nan and inf", nan_and_inf),
        case(16, 16, 300),
        case(65, 33, 100, torch.bfloat16, needs_gpu=BFLOAT16),
        # a launcher may choose its tiles by size: large ones must be right as well
        case(1025, 1030, 150, needs_gpu=MANY_TILES, offline=False),
        case(1025, 1030, 150, torch.float32, needs_gpu=MANY_TILES, offline=False),
    ),
    timing=Timing(
        "4096x4096x4096 float16",
        lambda draw: (draw.normal(4096, 4096, dtype=torch.float16), draw.normal(4096, 4096, dtype=torch.float16)),
        limit="compute",
        fair=0.5,
        fast=0.7,
    ),
    sizes=tuple(
        Timing(
            f"{n}x{n}x{n} {name}",
            lambda draw, n=n, d=d: (draw.normal(n, n, dtype=d), draw.normal(n, n, dtype=d)),
            limit="compute",
            fair=0.5,
            fast=0.7,
        )
        for n, name, d in (
            (1024, "float16", torch.float16),
            (2048, "float16", torch.float16),
            (8192, "float16", torch.float16),
            (4096, "bfloat16", torch.bfloat16),
        )
    ),
    mistakes=(
        Mistake(
            cause="low_precision_accumulator",
            message="The running sum is rounded to float16 on the way along K. Keep it in float32 and cast once.",
            concept="numerics",
            see="m06.lesson.precision",
            model=half_accumulator,
            line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
        ),
        Mistake(
            cause="k_tail_dropped",
            message="Only whole tiles along K are added: the loop runs K // BLOCK_K times, and the rest of K is lost.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=whole_k_tiles,
            line=r"range\([^)]*K\s*//\s*BLOCK_K",
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first BLOCK_K terms of each sum are there: the kernel does not go on along K.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=first_k_tile,
        ),
        Mistake(
            cause="accumulator_overwritten",
            message="Only the last tile along K is there: each step replaces the accumulator and does not add to it.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=last_k_tile,
            line=r"acc\s*=\s*tl\.dot\([^,()]+,[^,()]+\)",
        ),
        Mistake(
            cause="pointers_not_advanced",
            message="Every step multiplies the first tiles of A and B again: the pointers are not moved along K.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=first_tile_again,
        ),
        Mistake(
            cause="pointers_not_advanced",
            message="Every step takes the first tile of A again: a_ptrs are not moved along K.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=lambda a, b: first_tile_again(a, b, again_b=False),
        ),
        Mistake(
            cause="pointers_not_advanced",
            message="Every step takes the first tile of B again: b_ptrs are not moved along K.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=lambda a, b: first_tile_again(a, b, again_a=False),
        ),
        Mistake(
            cause="wrong_pointer_step",
            message="b_ptrs move along the columns of B: K runs down its rows, so a step is BLOCK_K * stride_bk.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=b_moved_by_elements,
            line=r"b_ptrs\s*\+=",
        ),
        Mistake(
            cause="swapped_axes",
            message="A was read transposed: its row index belongs to stride_am, its column index to stride_ak.",
            concept="strides",
            see="m03.lesson.strides",
            model=square_operands(lambda a, b: a.t() @ b),
            line=r"a_ptr\s*\+",
        ),
        Mistake(
            cause="swapped_axes",
            message="B was read transposed: its row index belongs to stride_bk, its column index to stride_bn.",
            concept="strides",
            see="m03.lesson.strides",
            model=square_operands(lambda a, b: a @ b.t()),
            line=r"b_ptr\s*\+",
        ),
        Mistake(
            cause="operands_exchanged",
            message="The output is B @ A: the operands of tl.dot, or of the launch, are exchanged.",
            concept="k loop",
            see="m06.lesson.kloop",
            model=square_operands(lambda a, b: b @ a),
            line=r"tl\.dot\(",
        ),
        *(
            Mistake(
                cause="assumes_contiguous",
                message=f"A transposed {' or '.join(names.upper())} was read as if it were row-major: its strides were not used.",
                concept="strides",
                see="m03.lesson.strides",
                model=row_major_despite_strides(names),
                line="|".join(
                    rf"\b{n}_ptr\s*\+(?!.*stride_{n}{m})" for n in names for m in ("mk" if n == "a" else "kn")
                ),
            )
            for names in ("a", "b", "ab")
        ),
        Mistake(
            cause="tf32_inputs",
            message='float32 inputs were cut to TF32, the default of tl.dot. Ask for input_precision="ieee".',
            concept="numerics",
            see="m06.lesson.precision",
            model=tf32,
            line=r"tl\.dot\(",
        ),
        Mistake(
            cause="swapped_axes",
            message="C is transposed: rows and columns are exchanged where the tile is stored.",
            concept="tiles",
            see="m03.lesson.tiles",
            model=transposed_output,
        ),
    ),
    hints=(
        "Write down the shapes: my tile of C, and the tiles of A and B that one step along K needs. Which offsets give each?",
        "Row-major: pid_m = pid // tiles_n, pid_n = pid % tiles_n. Masks: rows against M, columns against N, and along K "
        "against what is left of K, on A and on B, with other=0.0. The accumulator is float32.",
        'acc = tl.dot(a, b, acc, input_precision="ieee"); a_ptrs += BLOCK_K * stride_ak; b_ptrs += BLOCK_K * stride_bk',
    ),
)
