import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

NO_BF16 = "the interpreter computes bfloat16 arithmetic wrongly"


def reference(x, y):
    return x + y


def work(x, y):
    return Work(bytes=3 * x.numel() * x.element_size(), flops=x.numel())


def case(n: int, dtype: torch.dtype = torch.float32, needs_gpu: str | None = None, after: str = "") -> Case:
    def make(draw: Draw):
        return draw.normal(n, dtype=dtype), draw.normal(n, dtype=dtype)

    return Case(f"n={n} {str(dtype).removeprefix('torch.')}{after}", make, needs_gpu=needs_gpu)


def with_specials(draw: Draw):
    x, y = draw.normal(600), draw.normal(600)
    x[0], x[1], y[1], x[2] = float("inf"), float("inf"), float("-inf"), float("nan")
    return x, y


def only_the_first_programs(x, y):
    """The grid counts tiles of one BLOCK, the configuration that runs has a smaller one: a tail is left."""
    right = x + y
    n = right.numel()

    def matches(out: torch.Tensor) -> bool:
        if out.shape != right.shape or n < 32:
            return False
        same = (out == right.to(out.device)).cpu()
        wrong = (~same).nonzero()
        start = int(wrong[0]) if wrong.numel() else n
        # a tile is a power of two, so the tail starts at a multiple of at least 16; little of it is right by chance
        return 0 < start < n and start % 16 == 0 and float(same[start:].double().mean()) < 0.05

    return matches


PROBLEM = Problem(
    slug="autotuned_add",
    title="Autotuned add",
    entry="autotuned_add",
    parameters=("x", "y"),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1),
        case(0),
        case(1000),
        case(4095),
        case(4096),
        case(4097),
        case(10007),
        # not tuned any more: what the trials wrote no longer fills the output
        case(10007, after=", second call"),
        case(4099, torch.float16),
        case(4099, torch.bfloat16, needs_gpu=NO_BF16),
        Case("inf and nan, n=600", with_specials),
    ),
    autotuned=True,
    timing=Timing("n=2^26 float32", lambda draw: (draw.normal(2**26), draw.normal(2**26))),
    mistakes=(
        Mistake(
            cause="grid_ignores_config",
            message="The beginning is right and the rest was never computed: the grid was counted for one BLOCK, and "
            "the configuration that ran has a smaller one. The grid must be a callable that reads meta['BLOCK']. If it "
            "is one, look whether the offsets use tl.program_id.",
            concept="autotuning",
            see="m05.lesson.autotune",
            model=only_the_first_programs,
            line=r"(?m)^\s*grid\s*=|add_kernel\[",
        ),
        Mistake(
            cause="operand_used_twice",
            message="The output is x + x: the launch passes x for y as well, or both loads read from x_ptr.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: x + x,
        ),
        Mistake(
            cause="operand_used_twice",
            message="The output is y + y: the launch passes y for x as well, or both loads read from y_ptr.",
            concept="pointers",
            see="m02.lesson.skeleton",
            model=lambda x, y: y + y,
        ),
        Mistake(
            cause="wrong_operation",
            message="The output is x - y: the task asks for the sum.",
            concept="arithmetic",
            see="m02.lesson.skeleton",
            model=lambda x, y: x - y,
        ),
    ),
    hints=(
        "Which value differs from one configuration to the next, and which line of the launcher depends on it?",
        (
            "The decorator supplies BLOCK, so the launch must not. The grid is a function of the arguments, because "
            "only when a configuration is chosen is it known how many programs cover n."
        ),
        (
            "@triton.autotune(configs=[triton.Config({'BLOCK': 1024}, num_warps=4), …], key=['n']) above @triton.jit; "
            "grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),); add_kernel[grid](x, y, out, n)"
        ),
    ),
    fixed={"add_kernel": "the kernel the decorator goes on"},
)
