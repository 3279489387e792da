import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK, GROUP_M = 32, 4  # of the launcher the stub gives: BLOCK along M, N and K
MANY_TILES = "too many tiles for the interpreter"


def reference(a, b):
    return a @ b


def work(a, b):
    (m, k), n = a.shape, b.shape[1]
    return Work(bytes=(m * k + k * n + m * n) * a.element_size(), flops=2 * m * n * k)


def sum_of_magnitudes(a, b):
    """What rounding grows with: the sum of |a| * |b| along K, for each element of C."""
    return a.double().abs() @ b.double().abs()


def case(m: int, n: int, k: int, a_t: bool = False, b_t: bool = False, note: str = "", **options) -> Case:
    def make(draw: Draw):
        a = draw.normal(k, m, dtype=torch.float16).t() if a_t else draw.normal(m, k, dtype=torch.float16)
        b = draw.normal(n, k, dtype=torch.float16).t() if b_t else draw.normal(k, n, dtype=torch.float16)
        return a, b

    return Case(f"{m}x{n}x{k}{', ' + note if note else ''}", make, **options)


def zeros_and_ones(draw: Draw):
    a = draw.integers(130, 34, low=0, high=2, dtype=torch.float16)
    return a, draw.integers(34, 40, low=0, high=2, dtype=torch.float16)


def large_partial_sums(draw: Draw):
    """The first 32 products of each sum reach 320 000, past float16's 65 504; the next 32 take it away again."""
    a = draw.full(16, 64, value=100.0, dtype=torch.float16)
    b = draw.full(64, 16, value=100.0, dtype=torch.float16)
    b[32:] = -100.0
    b[0] += draw.integers(16, low=0, high=8, dtype=torch.float16)
    return a, b


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def written_by(a, b, tile_of):
    """C with only the tiles that some program owns under `tile_of(pid, tiles_m, tiles_n)`; NaN where nobody writes."""
    c = a @ b
    out = torch.full_like(c, float("nan"))
    tiles_m, tiles_n = ceil_div(c.shape[0], BLOCK), ceil_div(c.shape[1], BLOCK)
    for pid in range(tiles_m * tiles_n):
        m, n = (BLOCK * i for i in tile_of(pid, tiles_m, tiles_n))
        out[m : m + BLOCK, n : n + BLOCK] = c[m : m + BLOCK, n : n + BLOCK]
    return out if bool(out.isnan().any()) and not bool(c.isnan().any()) else None


def last_group_at_full_size(a, b):
    def tile_of(pid, tiles_m, tiles_n):
        group, place = divmod(pid, GROUP_M * tiles_n)
        return group * GROUP_M + place % GROUP_M, place // GROUP_M

    return written_by(a, b, tile_of)


def column_by_full_group(a, b):
    def tile_of(pid, tiles_m, tiles_n):
        group, place = divmod(pid, GROUP_M * tiles_n)
        return group * GROUP_M + place % min(tiles_m - group * GROUP_M, GROUP_M), place // GROUP_M

    return written_by(a, b, tile_of)


def row_and_column_exchanged(a, b):
    def tile_of(pid, tiles_m, tiles_n):
        group, place = divmod(pid, GROUP_M * tiles_n)
        rows = min(tiles_m - group * GROUP_M, GROUP_M)
        return group * GROUP_M + place // rows, place % rows

    return written_by(a, b, tile_of)


def group_row_not_scaled(a, b):
    def tile_of(pid, tiles_m, tiles_n):
        group, place = divmod(pid, GROUP_M * tiles_n)
        rows = max(min(tiles_m - group, GROUP_M), 1)
        return group + place % rows, place // rows

    return written_by(a, b, tile_of)


def whole_k_tiles(a, b):
    k = a.shape[1] // BLOCK * BLOCK
    return None if k == a.shape[1] else a[:, :k] @ b[:k]


def first_k_tile(a, b):
    return None if a.shape[1] <= BLOCK else a[:, :BLOCK] @ b[:BLOCK]


def last_k_tile(a, b):
    k = a.shape[1]
    if k <= BLOCK:
        return None
    start = (k - 1) // BLOCK * BLOCK
    return a[:, start:] @ b[start:]


def first_tile_again(a, b, again_a=True, again_b=True):
    """Every step takes the first tile of A, of B or of both, under the mask of the tile it should take."""
    k = a.shape[1]
    if k <= BLOCK:
        return None
    column = torch.arange(k, device=a.device)
    a = a[:, column % BLOCK] if again_a else a
    b = b[column % BLOCK] if again_b else b
    return (a.float() @ b.float()).to(a.dtype)


def only_the_first_group(a, b):
    """Programs of later groups take a place that no group has."""

    def tile_of(pid, tiles_m, tiles_n):
        return (pid % GROUP_M, pid // GROUP_M) if pid < GROUP_M * tiles_n else (tiles_m, tiles_n)

    return written_by(a, b, tile_of) if a.shape[0] > GROUP_M * BLOCK else None


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


def half_accumulator(a, b, each_tile=False):
    """`each_tile`: the product of a step is rounded as well, before it is added."""
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device, dtype=torch.float16)
    for start in range(0, a.shape[1], BLOCK):
        tile = a[:, start : start + BLOCK].float() @ b[start : start + BLOCK].float()
        tile = tile.half().float() if each_tile else tile
        acc = (acc.float() + tile).half()
    return acc


PROBLEM = Problem(
    slug="grouped_matmul",
    title="Matrix multiply in grouped order",
    entry="grouped_matmul",
    parameters=("a", "b"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(scale=sum_of_magnitudes),
    cases=(
        case(96, 64, 32, note="three tile rows"),
        case(1, 1, 1),
        case(32, 32, 32),
        case(17, 33, 65),
        case(128, 96, 32, note="one whole group"),
        case(224, 33, 32, note="a last group of three"),
        case(160, 64, 32, note="a last group of one"),
        case(33, 130, 40, note="fewer tile rows than a group"),
        case(0, 9, 4),
        case(5, 7, 0),
        case(70, 40, 50, b_t=True, note="B transposed"),
        case(40, 33, 50, a_t=True, note="A transposed"),
        case(288, 33, 32, note="three groups"),
        Case("130x40x34, zeros and ones", zeros_and_ones),
        Case("16x16x64, partial sums past 65504", large_partial_sums),
        case(16, 16, 300),
        # a launcher may choose its tiles by size: large ones must be right as well
        case(1000, 700, 150, needs_gpu=MANY_TILES, offline=False),
        case(1290, 2500, 150, needs_gpu=MANY_TILES, offline=False),
    ),
    timing=Timing(
        "4096x4096x4096 float16",
        lambda draw: (draw.normal(4096, 4096, dtype=torch.float16), draw.normal(4096, 4096, dtype=torch.float16)),
        limit="compute",
        fair=0.5,
        fast=0.8,
    ),
    sizes=tuple(
        Timing(
            f"{n}x{n}x{n} {name}",
            lambda draw, n=n, d=d: (draw.normal(n, n, dtype=d), draw.normal(n, n, dtype=d)),
            limit="compute",
            fair=0.5,
            fast=0.8,
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
            message="The running sum is rounded to float16 after every step along K. Keep it in float32 and cast once.",
            concept="numerics",
            see="m06.lesson.precision",
            model=half_accumulator,
            line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
        ),
        Mistake(
            cause="low_precision_accumulator",
            message="Each product of two tiles is rounded to float16 and added in float16, which overflows past 65504. Keep "
            "the sum in float32 and cast once.",
            concept="numerics",
            see="m06.lesson.precision",
            model=lambda a, b: half_accumulator(a, b, each_tile=True),
            line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
        ),
        Mistake(
            cause="last_group_full_size",
            message="The last group is treated as if it had GROUP_M tile rows: some of its programs own rows that do not "
            "exist, and real tiles are left out.",
            concept="program order",
            see="m06.lesson.grouping",
            model=last_group_at_full_size,
        ),
        Mistake(
            cause="column_by_full_group",
            message="In the last group the column is place // GROUP_M: divide by the rows that this group really has.",
            concept="program order",
            see="m06.lesson.grouping",
            model=column_by_full_group,
            line=r"//\s*GROUP_M\b",
        ),
        Mistake(
            cause="swapped_axes",
            message="Row and column within a group are exchanged: % gives the row, // the column.",
            concept="program order",
            see="m06.lesson.grouping",
            model=row_and_column_exchanged,
        ),
        Mistake(
            cause="group_row_not_scaled",
            message="The group's number is used as its first tile row: multiply it by GROUP_M.",
            concept="program order",
            see="m06.lesson.grouping",
            model=group_row_not_scaled,
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
            cause="first_group_only",
            message="Only the tiles of the first group were computed. A program's place is counted within its group: "
            "pid % programs_per_group, with GROUP_M * tiles_n programs a group.",
            concept="program order",
            see="m06.lesson.grouping",
            model=only_the_first_group,
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
    ),
    hints=(
        "Draw C for 5 x 2 tiles and GROUP_M = 4, and write the program numbers 0 to 9 into it. Which programs are in the last group?",
        "A group has GROUP_M * tiles_n programs. It starts in tile row group * GROUP_M and has "
        "min(tiles_m - first_row, GROUP_M) rows; within it, % walks down and // goes right.",
        "place = pid % (GROUP_M * tiles_n); return first_row + place % rows, place // rows",
    ),
)
