import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 4096  # of the launcher the stub gives
TILES = tuple(2**k for k in range(5, 16))


def reference(x, bins):
    return torch.bincount(x[(x >= 0) & (x < bins)].to(torch.int64), minlength=bins).to(torch.int32)


def work(x, bins):
    return Work(bytes=x.numel() * x.element_size() + 4 * bins, flops=x.numel())


def case(n: int, bins: int, dtype: torch.dtype = torch.int32, low: int | None = None, high: int | None = None) -> Case:
    lowest, above = 0 if low is None else low, bins if high is None else high
    name = f"n={n} {str(dtype).removeprefix('torch.')}, {bins} bins"
    name += f", values {lowest} to {above - 1}" if (low, high) != (None, None) else ""
    return Case(name, lambda draw: (draw.integers(n, low=lowest, high=above, dtype=dtype), bins))


def all_in_one(draw: Draw):
    return draw.integers(5000, low=6, high=7, dtype=torch.int32), 7


def far_beyond(draw: Draw):
    """What int32 cannot hold: cut to 32 bits before the comparison, it lands in a bin."""
    x = draw.integers(3000, low=0, high=10, dtype=torch.int64)
    x[::3] += 2**32
    x[1::3] -= 2**32
    return x, 10


def padding_counted(x, bins):
    """One bin has what the lanes past n hold, for some tile."""
    right = reference(x, bins).long()
    lanes = {-x.numel() % tile for tile in TILES} - {0}

    def matches(out: torch.Tensor) -> bool:
        extra = out.long() - right
        wrong = extra.nonzero().flatten()
        return wrong.numel() == 1 and int(extra[wrong[0]]) in lanes

    return matches if lanes and bins else None


def only_the_beginning(x, bins):
    """The counts of the first p elements, for some p."""
    inside = ((x >= 0) & (x < bins)).long().cumsum(0)

    def matches(out: torch.Tensor) -> bool:
        total = int(out.sum())
        if total <= 0 or total >= int(inside[-1]):
            return False
        end = int((inside == total).nonzero()[0]) + 1 if bool((inside == total).any()) else 0
        return torch.equal(out, reference(x[:end], bins))

    return matches if x.numel() > 1 else None


def only_some_tiles(x, bins):
    """The counts of one program's tiles, or of each program's last tile: tile by tile, some are there."""
    parts = [reference(part, bins) for part in x.split(BLOCK)]

    def matches(out: torch.Tensor) -> bool:
        return any(torch.equal(out, part) for part in parts)

    return matches if len(parts) > 1 else None


def clamped(x, bins):
    return reference(x.clamp(0, bins - 1), bins)


def wrapped_like_c(x, bins):
    """x % bins, as C and Triton take it: a negative remainder is no bin and is dropped."""
    return reference(torch.fmod(x, bins), bins)


def cut_to_32_bits(x, bins):
    return reference(x.to(torch.int32), bins) if x.dtype == torch.int64 else None


def without_the_last_bin(x, bins):
    counts = reference(x, bins)
    counts[-1] = 0
    return counts


PROBLEM = Problem(
    slug="histogram",
    title="Histogram",
    entry="histogram",
    parameters=("x", "bins"),
    reference=reference,
    work=work,
    out_dtype=lambda *_: torch.int32,
    tolerance=Tolerance(exact=True),
    cases=(
        case(10, 4),
        case(1, 1),
        case(0, 5),
        case(100, 10, low=-5, high=15),
        case(4095, 16),
        case(4096, 16),
        case(4097, 16),
        case(9000, 100, low=-50, high=150),
        case(12289, 1000, torch.int64),
        Case("5000 elements in one of 7 bins", all_in_one),
        Case("3000 int64 elements, most of them far outside 10 bins", far_beyond),
        case(300000, 31),
    ),
    timing=Timing(
        "n=2^27 int32, 256 bins", lambda draw: (draw.integers(2**27, low=0, high=256, dtype=torch.int32), 256)
    ),
    mistakes=(
        Mistake(
            cause="padding_counted",
            message="One bin is too large by the number of lanes past the end: each counted what the load filled it with. "
            "Mask them off, or fill with a value that is no bin.",
            concept="masking",
            see="m03.lesson.fill",
            model=padding_counted,
            line=r"tl\.histogram\(|other=",
        ),
        Mistake(
            cause="cut_to_32_bits",
            message="int64 elements far outside were counted: they were cut to 32 bits before the comparison with bins. "
            "Compare first, then cast.",
            concept="dtype",
            see="m04.lesson.dtype",
            model=cut_to_32_bits,
            line=r"\.to\(tl\.int32\)",
        ),
        Mistake(
            cause="clamped_outliers",
            message="Elements outside the bins were counted in the first and the last one. They count nowhere.",
            concept="masking",
            see="m02.lesson.mask",
            model=clamped,
            line=r"tl\.(clamp|minimum|maximum)",
        ),
        Mistake(
            cause="wrapped_outliers",
            message="Elements from bins on were counted in x % bins. They count nowhere.",
            concept="masking",
            see="m02.lesson.mask",
            model=wrapped_like_c,
            line=r"%\s*(bins|BINS)",
        ),
        Mistake(
            cause="last_bin_left_out",
            message="The last bin is 0: it is bins - 1, and belongs to the range.",
            concept="masking",
            see="m02.lesson.mask",
            model=without_the_last_bin,
            line=r"bins\s*-\s*1",
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first elements were counted: a program must walk on, by num_programs * BLOCK elements, until n.",
            concept="grid",
            see="m01.lesson.grid",
            model=only_the_beginning,
            line=r"\brange\(|tl\.histogram\(",
        ),
        Mistake(
            cause="store_instead_of_add",
            message="The counts are those of one tile: a program overwrote what was counted before. Add in registers, then "
            "tl.atomic_add to memory.",
            concept="concurrency",
            see="m05.lesson.side-effects",
            model=only_some_tiles,
            line=r"(?m)tl\.store\(|^\s*counts\s*=\s*tl\.histogram",
        ),
    ),
    hints=(
        "Which lanes of a tile must count nowhere? There are three kinds. Which programs add to counts[3]?",
        "counts = tl.zeros((BINS,), tl.int32) before the loop; in the loop a masked load and tl.histogram with a mask; "
        "after it one tl.atomic_add under the mask of the bins that exist.",
        "inside = (offs < n) & (x >= 0) & (x < bins); counts += tl.histogram(x.to(tl.int32), BINS, mask=inside)",
    ),
)
