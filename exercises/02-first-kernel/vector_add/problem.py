import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 1024  # of the launcher the stub gives


def reference(x, y):
    return x + y


def work(x, y):
    return Work(bytes=3 * x.numel() * x.element_size(), flops=x.numel())


def case(n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None) -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), draw.normal(n, dtype=dtype)

    return Case(f"n={n} {str(dtype).removeprefix('torch.')}", make, needs_gpu=needs_gpu)


def with_specials(draw: Draw):
    x, y = draw.normal(1500), draw.normal(1500)
    x[0], x[1], y[1], x[2] = float("inf"), float("inf"), float("-inf"), float("nan")
    return x, y


def first_tile_only(x, y):
    if x.numel() <= BLOCK:
        return None
    right = x + y

    def matches(out: torch.Tensor) -> bool:
        rest = out[BLOCK:]
        empty = bool(rest.isnan().all()) or bool((rest == 0).all())  # poison, or a zeros_like's zeros
        return empty and torch.equal(out[:BLOCK], right[:BLOCK])

    return matches


PROBLEM = Problem(
    slug="vector_add",
    title="Vector add",
    entry="add",
    parameters=("x", "y"),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1),
        case(0),
        case(1000),
        case(1023),
        case(1024),
        case(1025),
        case(4099, torch.float16),
        case(4099, torch.bfloat16, needs_gpu="the interpreter computes bfloat16 arithmetic wrongly"),
        Case("inf and nan, n=1500", with_specials),
    ),
    timing=Timing("n=2^26 float32", lambda draw: (draw.normal(2**26), draw.normal(2**26))),
    sizes=tuple(
        Timing(f"n=2^{power} {name}", lambda draw, n=2**power, d=d: (draw.normal(n, dtype=d), draw.normal(n, dtype=d)))
        for power, name, d in (
            (12, "float32", torch.float32),
            (20, "float32", torch.float32),
            (24, "float32", torch.float32),
            (28, "float32", torch.float32),
            (28, "float16", torch.float16),
        )
    ),
    mistakes=(
        Mistake(
            cause="operand_used_twice",
            message="The output is x + x: the second load reads from x_ptr, not from y_ptr.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: x + x,
            line=r"tl\.load\(x_ptr.*\n(?:.*\n)*?.*tl\.load\(x_ptr",
        ),
        Mistake(
            cause="operand_used_twice",
            message="The output is y + y: x is never read.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: y + y,
            line=r"tl\.load\(y_ptr",
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is x - y: the task asks for the sum.",
            concept="arithmetic",
            see="m02.lesson.skeleton",
            model=lambda x, y: x - y,
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is x * y: the task asks for the sum.",
            concept="arithmetic",
            see="m02.lesson.skeleton",
            model=lambda x, y: x * y,
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every element got x[0] added: x_ptr alone is the address of the first element. Add the tile of offsets.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: x[:1] + y if x.numel() > 1 else None,
            line=r"tl\.load\(\s*x_ptr\s*[,)]",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every element got y[0] added: y_ptr alone is the address of the first element. Add the tile of offsets.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: x + y[:1] if x.numel() > 1 else None,
            line=r"tl\.load\(\s*y_ptr\s*[,)]",
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first tile holds the sum: one program was launched, or every program owns tile 0 because its "
            "offsets do not depend on tl.program_id.",
            concept="grid",
            see="m02.lesson.skeleton",
            model=first_tile_only,
        ),
    ),
    hints=(
        "Which elements does program 0 own, and which does program 1 own? Write both down for BLOCK = 4 and n = 6.",
        "offsets = program_id * BLOCK + arange(0, BLOCK). The last program's tile runs past n, so loads and store need a mask.",
        "mask = offs < n; x = tl.load(x_ptr + offs, mask=mask); …; tl.store(out_ptr + offs, x + y, mask=mask)",
    ),
)
