from itertools import combinations

import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

ROWS, BLOCK = 4, 64  # of the launcher the stub gives

# cause, what it does, where its line is
FAULTS = {
    "missing_reset": (
        "the maximum and the sum of a row are not begun anew, so that a program's second row starts with those of its first",
        r"(?m)^    m = ",
    ),
    "swapped_strides": (
        "the strides of rows and columns are exchanged, so that row i is column i",
        r"row \* stride_n|cols \* stride_m",
    ),
    "wrong_fill_for_max": (
        "the lanes past N hold 0, which enters the maximum and the sum",
        r"other=\s*0",
    ),
}


def reference(x):
    return torch.logsumexp(x if x.dtype == torch.float64 else x.float(), dim=1)


def work(x):
    return Work(bytes=x.numel() * x.element_size() + 4 * x.shape[0], flops=5 * x.numel())


def magnitude(x):
    """The maximum is added back at the end; exp(d) is off by |d| eps, but only terms near the maximum count."""
    return x.abs().amax(dim=1) + 10.0 if x.numel() else x.new_zeros(x.shape[0])


def with_faults(*left: str):
    """The kernel's answer with these faults left in it; None where it would leave x's memory."""

    def model(x):
        if x.numel() == 0 or ("swapped_strides" in left and x.shape[0] != x.shape[1]):
            return None
        z = x.double()
        if "swapped_strides" in left:
            z = z.t()
        if "wrong_fill_for_max" in left:
            z = torch.nn.functional.pad(z, (0, -z.shape[1] % BLOCK))
        row = torch.logsumexp(z, dim=1)
        if "missing_reset" in left:
            row = torch.cat([torch.logcumsumexp(band, dim=0) for band in row.split(ROWS)])
        return row.float()

    return model


def mistake(*left: str) -> Mistake:
    counted = {1: "One fault is left", 2: "Two faults are left", 3: "All three faults are there"}[len(left)]
    return Mistake(
        cause="_and_".join(left) if len(left) < 3 else "all_three_faults",
        message=f"{counted}: " + "; ".join(FAULTS[name][0] for name in left) + ".",
        concept="debugging",
        see="m08.lesson.debug",
        model=with_faults(*left),
        line=FAULTS[left[0]][1],
    )


def case(m: int, n: int, mean: float = 0.0, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Case:
    name = f"{m} x {n} {str(dtype).removeprefix('torch.')}"
    name += f", {mean:g} give or take {scale:g}" if (mean, scale) != (0.0, 1.0) else ""
    return Case(name, lambda draw: ((draw.normal(m, n, scale=scale) + mean).to(dtype),))


def transposed(draw: Draw):
    return (draw.normal(70, 9).t(),)


def window(draw: Draw):
    return (draw.normal(9, 400)[2:7, 100:400:2],)


PROBLEM = Problem(
    slug="debug_me",
    title="Debug me",
    entry="logsumexp",
    parameters=("x",),
    reference=reference,
    work=work,
    out_dtype=lambda x: torch.float32,
    tolerance=Tolerance(terms=4.0, scale=magnitude),
    cases=(
        # square, several rows a program, a padded tile and negative values: each fault shows, alone and with others
        case(6, 6, mean=-2.0),
        case(1, 5),
        case(1, 1),
        case(0, 5),
        case(4, 64),
        case(5, 63, mean=-5.0),
        case(9, 65),
        case(3, 300, mean=-1000.0),
        case(7, 300, scale=100.0),
        case(2, 129, dtype=torch.float16),
        Case("9 x 70 transposed", transposed),
        Case("5 x 150 window, every second column", window),
    ),
    timing=Timing("262144 x 256 float32", lambda draw: (draw.normal(262144, 256),)),
    mistakes=tuple(mistake(*left) for number in (1, 2, 3) for left in combinations(FAULTS, number)),
    hints=(
        "On a symmetric 64 x 64 matrix only one of the three faults shows. Which property of that input hides each of the "
        "other two?",
        "Three questions: what does the second row of a program start with? What does a lane past the end hold when the "
        "maximum is taken? Which stride belongs to row?",
        "Move m = -float('inf') and l = 0.0 into the loop over rows; x_ptr + row * stride_m + cols * stride_n; "
        "other=-float('inf').",
    ),
)
