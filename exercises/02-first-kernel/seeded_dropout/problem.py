import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

from .philox import rand

HALF = (torch.float16, torch.bfloat16)
BLOCKS = tuple(2**k for k in range(4, 15))  # what a learner's BLOCK may be

# the one offset below 60, of the seeds tried, whose number is exactly 0.5: u >= p and u > p part here
SEED_OF_A_HALF, OFFSET_OF_A_HALF = 19268867, 18


def uniform(x, seed):
    return rand(seed, torch.arange(x.numel(), device=x.device))


def threshold(p: float) -> torch.Tensor:
    """p as the kernel gets it: a Python float arrives as float32."""
    return torch.tensor(p, dtype=torch.float32)


def kept_where(x, p, keep):
    """x / (1 - p) where keep, else 0: in float32 for half-precision inputs, and rounded once."""
    wide = x.float() if x.dtype in HALF else x
    scaled = wide / (1 - p) if p < 1 else torch.full_like(wide, float("inf"))
    return torch.where(keep, scaled, torch.zeros_like(wide)).to(x.dtype)


def keep_of(x, p, seed):
    return uniform(x, seed) >= threshold(p).to(x.device)


def reference(x, p, seed):
    return kept_where(x, p, keep_of(x, p, seed))


def eager(x, p, seed):
    return torch.nn.functional.dropout(x, p, training=True)


def work(x, p, seed):
    # what the random numbers cost is integer work: it is no floating-point operation
    return Work(bytes=2 * x.numel() * x.element_size(), flops=2 * x.numel())


def magnitude(x, p, seed):
    """1 - p is rounded once more in float32, and the division may be off by two units."""
    return reference(x, p, seed).abs().nan_to_num(posinf=0.0)


def case(n: int, p: float, seed: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), p, seed

    return Case(f"n={n} p={p} seed={seed} {str(dtype).removeprefix('torch.')}", make)


def with_specials(draw: Draw):
    x = draw.normal(300)
    x[::3], x[1::3] = float("inf"), float("nan")
    return x, 0.5, 11


def by_lanes(x, p, seed, seed_moves: bool):
    """The numbers of a kernel that counts offsets from the start of each tile; which BLOCK is the learner's choice."""
    n = x.numel()
    index = torch.arange(n)
    kept = []
    for block in (b for b in BLOCKS if b < n):
        if seed_moves:
            u = torch.cat([rand(seed + t, torch.arange(block)) for t in range(-(-n // block))])[:n]
        else:
            u = rand(seed, index % block)
        kept.append(u >= threshold(p))
    if not kept:
        return None

    def matches(out: torch.Tensor) -> bool:
        return any(torch.allclose(out, kept_where(x, p, keep), rtol=1e-2, equal_nan=True) for keep in kept)

    return matches


def by_multiplication(x, p, seed):
    """x * keep / (1 - p): inf and NaN survive being dropped, and 1 / 0 makes NaN of p = 1."""
    wide = x.float() if x.dtype in HALF else x
    scale = 1 / (1 - p) if p < 1 else float("inf")
    return (wide * keep_of(x, p, seed) * scale).to(x.dtype)


PROBLEM = Problem(
    slug="seeded_dropout",
    title="Dropout from a seed",
    entry="dropout",
    parameters=("x", "p", "seed"),
    reference=reference,
    eager=eager,
    eager_is_random=True,  # PyTorch's generator draws another mask
    work=work,
    tolerance=Tolerance(scale=magnitude, terms=8.0),
    cases=(
        case(40, 0.25, 7),
        case(1, 0.5, 3),
        case(40, 0.5, SEED_OF_A_HALF),
        case(0, 0.5, 3),
        case(300, 0.0, 1),
        case(300, 1.0, 5),
        case(1023, 0.1, 42),
        case(1024, 0.75, 0),
        case(1025, 0.5, 123),
        case(1531, 0.9, 2**40 + 12345),
        case(1100, 0.3, 9, torch.float16),
        case(1100, 0.3, 10, torch.bfloat16),
        Case("inf and nan, n=300 p=0.5", with_specials),
    ),
    # 64 machine instructions an element, most of them integer: on an H200 they take 1.6 times as long as its bytes
    timing=Timing("n=2^27 float32 p=0.5", lambda draw: (draw.normal(2**27), 0.5, 1234), fair=0.25, fast=0.4),
    mistakes=(
        Mistake(
            cause="missing_scale",
            message="The kept elements are x: divide them by 1 - p, so that the expected value stays that of x.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: kept_where(x, 0.0, keep_of(x, p, seed)),
            line=r"tl\.where\(",
        ),
        Mistake(
            cause="wrong_scale",
            message="The kept elements are multiplied by 1 - p: divide by it.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: (kept_where(x, 0.0, keep_of(x, p, seed)).double() * (1 - p)).to(x.dtype),
            line=r"\* \(1(?:\.0)? - p\)",
        ),
        Mistake(
            cause="wrong_scale",
            message="The kept elements are divided by p: a share of 1 - p is kept, so divide by 1 - p.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: kept_where(x, 1 - p, keep_of(x, p, seed)) if p > 0 else None,
            line=r"/ p\b",
        ),
        Mistake(
            cause="kept_and_dropped_exchanged",
            message="The elements that should be dropped are kept, and the other way round: kept is u >= p.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: kept_where(x, p, ~keep_of(x, p, seed)),
            line=r"u\w* <=? p|p >=? u",
        ),
        Mistake(
            cause="other_numbers_kept",
            message="The right share is kept, but of other elements: the task keeps where u >= p, not where u < 1 - p.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: kept_where(x, p, uniform(x, seed) < threshold(1 - p)),
            line=r"<=? ?\(?1(?:\.0)? - p",
        ),
        Mistake(
            cause="strict_comparison",
            message="An element with u equal to p was dropped: kept is u >= p. With > the share is off only by a hair, "
            "but the two passes of one network must agree on every element.",
            concept="arithmetic",
            see="m02.lesson.fusion",
            model=lambda x, p, seed: kept_where(x, p, uniform(x, seed) > threshold(p)),
            line=r"u\w* > p|p < u",
        ),
        Mistake(
            cause="lane_instead_of_element",
            message="Every tile drops the same lanes: tl.rand was given tl.arange alone. Its offset is the element's index.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x, p, seed: by_lanes(x, p, seed, seed_moves=False),
            line=r"tl\.rand\(",
        ),
        Mistake(
            cause="seed_moves_with_program",
            message="Each program drew from seed + its own number: the mask then depends on BLOCK, and program t with seed s "
            "repeats program t - 1 with seed s + 1. Keep the seed, and give tl.rand the element's index.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x, p, seed: by_lanes(x, p, seed, seed_moves=True),
            line=r"seed \+|\+ seed|tl\.rand\(",
        ),
        Mistake(
            cause="seed_ignored",
            message="The numbers are those of seed 0: pass the seed that the call gives.",
            concept="launch",
            see="m02.lesson.launch",
            model=lambda x, p, seed: kept_where(x, p, keep_of(x, p, 0)) if seed else None,
            line=r"tl\.rand\(",
        ),
        Mistake(
            cause="masked_by_product",
            message="A dropped element came out as NaN: inf or NaN times 0 is NaN, and so is x / 0 * 0 for p = 1. "
            "Choose with tl.where, do not multiply by the mask.",
            concept="numerics",
            see="m02.lesson.fusion",
            model=by_multiplication,
            line=r"(?m)^[^#\n]*keep\w*\.to\(|\* ?\(?keep",
        ),
    ),
    hints=(
        "Two programs call tl.rand(seed, tl.arange(0, BLOCK)). Which numbers does each of them get?",
        "The offset that tl.rand wants is the element's index, the same tile you load with. Choose with tl.where: a product "
        "with the mask turns inf into NaN.",
        "u = tl.rand(seed, offs); y = tl.where(u >= p, x / (1 - p), 0.0)",
    ),
)
