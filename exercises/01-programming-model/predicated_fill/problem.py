import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work


def chosen(flags, first):
    return (flags != 0) & (torch.arange(flags.numel(), device=flags.device) >= first)


def filled(out, where, value):
    return torch.where(where, torch.full_like(out, value), out)


def reference(out, flags, first, value):
    return filled(out, chosen(flags, first), value)


def work(out, flags, first, value):
    written = int(chosen(flags, first).sum())  # out itself need not be read
    return Work(bytes=flags.numel() * flags.element_size() + written * out.element_size(), flops=0)


def case(
    n: int,
    first: int,
    value: float = 0.5,
    dtype: torch.dtype = torch.float32,
    flags: torch.dtype = torch.bool,
) -> Case:
    def make(draw: Draw):
        drawn = drawn_flags(draw, n, flags)
        if n > 2:  # whatever the seed: each of the three conditions decides about some element
            drawn[0], drawn[-1] = True, False
            drawn[first : first + 1] = True
        return old_values(draw, n, dtype), drawn, first, value

    names = " ".join(str(d).removeprefix("torch.") for d in (dtype, flags))
    return Case(f"n={n} first={first} value={value} {names} flags", make)


def old_values(draw: Draw, n: int, dtype: torch.dtype) -> torch.Tensor:
    if dtype == torch.int32:
        return draw.integers(n, low=-(2**30), high=2**30, dtype=dtype)
    return draw.normal(n, dtype=dtype)


def drawn_flags(draw: Draw, n: int, dtype: torch.dtype) -> torch.Tensor:
    """Half of them set, or a few more not; as int8 the set ones are -2, -1, 1, 2 and 3."""
    if dtype == torch.bool:
        return draw.integers(n, low=0, high=2, dtype=dtype)
    values = draw.integers(n, low=-2, high=4, dtype=dtype)
    return torch.where(draw.integers(n, low=0, high=2) == 0, torch.zeros_like(values), values)


def with_specials(draw: Draw):
    out = draw.normal(300)
    out[0], out[1], out[298], out[299] = float("nan"), -0.0, float("inf"), float("nan")
    flags = drawn_flags(draw, 300, torch.bool)
    flags[0], flags[1], flags[299] = False, False, False
    return out, flags, 5, float("-inf")


def constant_flags(value: float, name: str) -> Case:
    def make(draw: Draw):
        return draw.normal(1100), draw.full(1100, value=value, dtype=torch.bool), 3, 2.0

    return Case(f"n=1100, {name}", make)


def flag_is_one(out, flags, first, value):
    return None if flags.dtype == torch.bool else filled(out, (flags == 1) & chosen(flags, first), value)


def flag_is_positive(out, flags, first, value):
    return None if flags.dtype == torch.bool else filled(out, (flags > 0) & chosen(flags, first), value)


def lowest_bit(out, flags, first, value):
    """flags & 1, or a cast of an int8 that keeps the lowest bit."""
    return None if flags.dtype == torch.bool else filled(out, ((flags & 1) != 0) & chosen(flags, first), value)


def strictly_after(out, flags, first, value):
    return reference(out, flags, first + 1, value)


def rest_is_zero(out, flags, first, value):
    return filled(torch.zeros_like(out), chosen(flags, first), value)


def first_flag_for_all(out, flags, first, value):
    return None if out.numel() == 0 else reference(out, flags[:1].expand_as(flags), first, value)


def either_condition(out, flags, first, value):
    late = torch.arange(out.numel()) >= first
    return filled(out, (flags != 0) | late, value)


PROBLEM = Problem(
    slug="predicated_fill",
    title="Write only where it is asked",
    entry="fill_where",
    parameters=("out", "flags", "first", "value"),
    mutates=("out",),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(7, 2),
        case(1, 0),
        case(40, 9, 2.0, flags=torch.int8),
        case(0, 0),
        case(1, 1),
        case(1023, 500),
        case(1024, 0, -3.0),
        case(1025, 1024),
        case(2503, 1201, 1.5, torch.float16, torch.int8),
        case(1031, 100, 7, torch.int32, torch.int8),
        case(300, 300, 1.0),
        constant_flags(1, "every flag set"),
        constant_flags(0, "no flag set"),
        Case("nan, inf and -0.0 are kept, n=300", with_specials),
    ),
    timing=Timing(
        "n=2^26 float32, bool flags, first=0",
        lambda draw: (draw.normal(2**26), draw.integers(2**26, low=0, high=2, dtype=torch.bool), 0, 1.0),
        # `work` counts the chosen half of out; nearly every 32-byte sector holds a chosen element, so all of out moves
        fair=0.35,
        fast=0.5,
    ),
    mistakes=(
        Mistake(
            cause="rest_overwritten",
            message="The elements that were not chosen came out as 0: tl.where(chosen, value, 0) with a mask of bounds "
            "writes them all. Put the condition into the store's mask.",
            concept="masking",
            see="m01.lesson.pieces",
            model=rest_is_zero,
            line=r"tl\.where\(|tl\.store\(",
        ),
        Mistake(
            cause="flag_ignored",
            message="Every element from `first` on was written: the store's mask lacks the flag.",
            concept="masking",
            see="m01.lesson.pieces",
            model=lambda out, flags, first, value: reference(out, torch.ones_like(flags), first, value),
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="index_ignored",
            message="Elements before `first` were written: the store's mask lacks offs >= first.",
            concept="masking",
            see="m01.lesson.pieces",
            model=lambda out, flags, first, value: reference(out, flags, 0, value),
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="off_by_one",
            message="Element `first` was left out: the condition is offs >= first, not offs > first.",
            concept="masking",
            see="m01.lesson.pieces",
            model=strictly_after,
            line=r"(?m)^[^#\n]*(?:offs\w* > first|first < offs)",
        ),
        Mistake(
            cause="flag_equals_one",
            message="Only flags that are 1 count: set means not 0, and 2 and -1 are set too. Compare with != 0.",
            concept="masking",
            see="m01.lesson.pieces",
            model=flag_is_one,
            line=r"== 1",
        ),
        Mistake(
            cause="flag_positive",
            message="Negative flags do not count: set means not 0. Compare with != 0.",
            concept="masking",
            see="m01.lesson.pieces",
            model=flag_is_positive,
            line=r"(?m)^[^#\n]*(?:flag\w*|\)) > 0",
        ),
        Mistake(
            cause="lowest_bit_only",
            message="Only odd flags count: the lowest bit was taken for the flag. Compare with != 0.",
            concept="masking",
            see="m01.lesson.pieces",
            model=lowest_bit,
            line=r"& 1\b",
        ),
        Mistake(
            cause="flag_reversed",
            message="The elements whose flag is not set were written: the condition is the wrong way round.",
            concept="masking",
            see="m01.lesson.pieces",
            model=lambda out, flags, first, value: reference(out, flags == 0, first, value),
            line=r"== 0|~",
        ),
        Mistake(
            cause="either_condition",
            message="An element was written where one of the conditions holds: both must. Join them with &, not with |.",
            concept="masking",
            see="m01.lesson.pieces",
            model=either_condition,
            line=r"\|",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="flags[0] decides about every element: flags_ptr alone is the address of the first flag. Add the offsets.",
            concept="pointers",
            see="m01.lesson.model",
            model=first_flag_for_all,
            line=r"tl\.load\(\s*flags_ptr\s*[,)]",
        ),
    ),
    hints=(
        "How do you leave an element as it is: by writing its old value back, or by not writing?",
        "The load of flags is masked by offs < n alone. The store's mask is offs < n, and offs >= first, and the flag: "
        "join tiles of booleans with &, each comparison in parentheses.",
        "flag = tl.load(flags_ptr + offs, mask=offs < n, other=0) != 0; "
        "tl.store(out_ptr + offs, value, mask=(offs < n) & (offs >= first) & flag)",
    ),
)
