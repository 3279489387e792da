import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def reference(x, block):
    return x.clone()


def work(x, block):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=0)


def case(n: int, block: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), block

    return Case(f"n={n} block={block} {str(dtype).removeprefix('torch.')}", make)


def integer_case(n: int, block: int, dtype: torch.dtype) -> Case:
    def make(draw: Draw):
        low, high = (0, 2) if dtype == torch.bool else (-100, 100)
        return draw.integers(n, low=low, high=high, dtype=dtype), block

    return Case(f"n={n} block={block} {str(dtype).removeprefix('torch.')}", make)


def with_specials(draw: Draw):
    x = draw.normal(200)
    x[0], x[1], x[2], x[3] = float("inf"), float("-inf"), float("nan"), -0.0
    return x, 64


def only_the_first(x, filled: int):
    """x up to `filled`, and nothing of x after it: poison (NaN in a float tensor), or a zeros_like's zeros."""

    def matches(out: torch.Tensor) -> bool:
        rest = out[filled:]
        if not out.dtype.is_floating_point or not torch.equal(out[:filled], x[:filled]):
            return False
        return bool(rest.isnan().all()) or bool((rest == 0).all())

    return matches


def shifted_by_one(x, block):
    """Element i is x[i + 1]; the last one has no source, so this shows only what lies before it."""
    if x.numel() < 2:
        return None
    return torch.cat((x[1:], torch.zeros_like(x[:1])))


PROBLEM = Problem(
    slug="tile_copy",
    title="Copy by tiles",
    entry="tile_copy",
    parameters=("x", "block"),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 16),
        case(100, 16),
        case(0, 16),
        case(15, 16),
        case(16, 16),
        case(17, 16),
        case(1023, 1024),
        case(1025, 1024),
        case(509, 32, torch.float16),
        case(509, 64, torch.bfloat16),
        integer_case(301, 32, torch.int64),
        integer_case(301, 32, torch.int8),
        integer_case(301, 128, torch.bool),
        Case("inf, nan and -0.0, n=200 block=64", with_specials),
    ),
    timing=Timing("n=2^26 float32, block=1024", lambda draw: (draw.normal(2**26), 1024)),
    eager=reference,
    mistakes=(
        Mistake(
            cause="first_tile_only",
            message="Only the first tile was copied: either one program was launched, or every program owns tile 0 "
            "because its offsets do not depend on tl.program_id.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x, block: only_the_first(x, block) if x.numel() > block else None,
        ),
        Mistake(
            cause="floor_grid",
            message="The last, partial tile was not copied: n // block programs are too few when block does not divide n. "
            "Round up with triton.cdiv(n, block).",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x, block: (
                only_the_first(x, x.numel() // block * block) if x.numel() > block and x.numel() % block else None
            ),
            line=r"n(?:umel\(\))?\s*//\s*block\b",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every element is x[0]: x_ptr alone is the address of the first element. Add the tile of offsets to it.",
            concept="pointers",
            see="m01.lesson.model",
            model=lambda x, block: x[:1].expand_as(x).clone() if x.numel() > 1 else None,
            line=r"tl\.load\(\s*x_ptr\s*[,)]",
        ),
        Mistake(
            cause="shifted_by_one",
            message="Every element comes from one place further on: offsets start at pid * BLOCK, with tl.arange(0, BLOCK).",
            concept="grid",
            see="m01.lesson.grid",
            model=shifted_by_one,
        ),
    ),
    hints=(
        "For n = 17 and block = 16, how many programs are needed, and what does each of them own?",
        "The grid is a tuple with one number, rounded up: (triton.cdiv(n, block),). For n = 0 there is nothing to launch.",
        "copy_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block); inside: offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
    ),
    copies=("x",),
    fixed={"copy_kernel": "the task gives the kernel's signature; the launch is yours"},
)
