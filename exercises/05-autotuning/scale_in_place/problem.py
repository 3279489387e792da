import math

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

TILES = tuple(2**k for k in range(5, 15))  # what BLOCK may be


def reference(x, scale):
    return (x * scale,)


def work(x, scale):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=x.numel())


# Between 1 and 2 in size, so that a power of the factor shows in every element, and overflow comes from nothing else.
def values(draw: Draw, n: int, dtype: torch.dtype = torch.float32):
    return draw.uniform(n, low=1.0, high=2.0, dtype=dtype) * (1 - 2 * draw.integers(n, low=0, high=2, dtype=dtype))


def case(n: int, scale: float, dtype: torch.dtype = torch.float32) -> Case:
    name = f"n={n} {str(dtype).removeprefix('torch.')}, times {scale:g}"
    return Case(name, lambda draw: (values(draw, n, dtype), scale))


def view(name: str, make) -> Case:
    return Case(name, lambda draw: (make(draw), 3.0))


def scaled_by_every_trial(x, scale):
    """x times a power of the factor: how many trials ran depends on the benchmark. A GPU runs so many that what is left
    is inf, or 0."""
    if x.numel() == 0 or abs(scale) in (0.0, 1.0):
        return None
    growth = math.log(abs(scale))

    def matches(out: torch.Tensor) -> bool:
        size = (out.double() / x.double()).abs()
        if scale and abs(scale) > 1 and bool(torch.isinf(size).all()):
            return True
        if not bool((torch.isfinite(size) & (size > 0)).all()):
            return False
        powers = size.log() / growth
        power = round(float(powers.median()))
        return power >= 2 and bool(((powers - power) * growth).abs().max() < 0.1)

    return matches


def cleared(x, scale):
    """reset_to_zero: 0 times the factor. Only where trials alone would not end in 0."""
    return torch.zeros_like(x) if x.numel() and abs(scale) > 1 else None


def slice_copied(x, scale):
    """x.contiguous() is x itself, unless x is a slice."""
    return x.clone() if x.numel() and scale != 1 and not x.is_contiguous() else None


def scaled_side_by_side(x, scale):
    """Memory scaled from x's first element on, as if the elements lay side by side: the first n of it hold some of x."""
    if x.numel() == 0 or x.is_contiguous():
        return None
    reached = -(-x.numel() // x.stride(0))
    return torch.cat([reference(x, scale)[0][:reached], x[reached:]])


def end_left_as_it_was(x, scale):
    """Right up to a multiple of some tile, untouched after it."""
    right = reference(x, scale)[0]

    def matches(out: torch.Tensor) -> bool:
        changed = (out != x).nonzero()
        if not changed.numel() or torch.equal(out, right):
            return False
        end = int(changed[-1]) + 1
        same = torch.allclose(out[:end].double(), right[:end].double(), rtol=1e-2)
        return same and any(end % tile == 0 for tile in TILES) and bool((out[end:] == x[end:]).all())

    return matches if x.numel() > TILES[0] and scale != 1 else None


PROBLEM = Problem(
    slug="scale_in_place",
    title="Scale in place",
    entry="scale_in_place",
    parameters=("x", "scale"),
    mutates=("x",),
    autotuned=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(ulps=2.0),
    cases=(
        case(8, 3.0),
        case(1, -2.0),
        case(0, 3.0),
        case(1000, 1.5),
        case(1024, 0.5),
        case(1025, -0.75),
        case(4096, 3.0),
        case(4099, 0.1),
        case(257, 0.0),
        case(1000, 0.3, torch.float16),
        case(1000, 0.3, torch.bfloat16),
        view("every second element, n=1000", lambda draw: values(draw, 2000)[::2]),
        view("every third element from the second on, n=333", lambda draw: values(draw, 1000)[1::3]),
    ),
    timing=Timing("n=2^27 float32, times 1.0", lambda draw: (draw.normal(2**27), 1.0)),
    mistakes=(
        Mistake(
            cause="missing_restore_value",
            message="x was multiplied by a power of the factor: every configuration ran while tuning, and each run "
            "scaled x once more. Name x_ptr in restore_value.",
            concept="autotuning",
            see="m05.lesson.side-effects",
            model=scaled_by_every_trial,
            line=r"@triton\.autotune",
        ),
        Mistake(
            cause="reset_instead_of_restore",
            message="x is all 0: reset_to_zero clears the tensor before the run that counts. This kernel needs the old "
            "values back: restore_value.",
            concept="autotuning",
            see="m05.lesson.side-effects",
            model=cleared,
            line=r"reset_to_zero",
        ),
        Mistake(
            cause="worked_on_a_copy",
            message="x is as it was. The kernel wrote to another tensor: x.contiguous() of a slice and x.clone() are "
            "copies. Pass x itself, and its stride.",
            concept="memory",
            see="m03.lesson.strides",
            model=slice_copied,
            line=r"\.contiguous\(\)|\.clone\(\)|empty_like|empty\(",
        ),
        Mistake(
            cause="worked_on_a_copy",
            message="x is as it was. Is the kernel launched, on x itself, and does it store to x?",
            concept="memory",
            see="m02.lesson.launch",
            model=lambda x, scale: x.clone() if x.numel() and scale != 1 else None,
            line=r"\.clone\(\)|empty_like|empty\(",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="Of a slice only the first elements were scaled: element i lies i * stride elements from the start, not i.",
            concept="strides",
            see="m03.lesson.strides",
            model=scaled_side_by_side,
            line=r"x_ptr \+ offs(?! \*)",
        ),
        Mistake(
            cause="tail_left_out",
            message="The last elements are as they were: no program took them, or a mask switched them off.",
            concept="grid",
            see="m02.lesson.launch",
            model=end_left_as_it_was,
            line=r"grid\s*=",
        ),
        Mistake(
            cause="added_instead_of_multiplied",
            message="The factor was added to x; multiply.",
            concept="arithmetic",
            see="m02.lesson.skeleton",
            model=lambda x, scale: (x.float() + scale).to(x.dtype) if x.numel() else None,
            line=r"\+ scale|scale \+",
        ),
    ),
    hints=(
        "In the first call for a size each configuration runs, and more than once. What does x hold when the run that "
        "counts begins?",
        "One pointer tile, x_ptr + offs * stride, serves the load and the store. The decorator can keep a copy of a "
        "tensor and put it back after each trial; 0 is not what x held.",
        "@triton.autotune(configs=[…], key=['n'], restore_value=['x_ptr']), and in the kernel "
        "tl.store(x_ptrs, tl.load(x_ptrs, mask=mask).to(tl.float32) * scale, mask=mask)",
    ),
    fixed={"scale_kernel": "the launcher launches it"},
)
