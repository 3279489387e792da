import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 64  # of the launcher the stub gives


def positions(x):
    return torch.arange(x.numel(), device=x.device, dtype=x.dtype)


def owner(x):
    return torch.div(positions(x), BLOCK, rounding_mode="floor")


def reference(x):
    return x + owner(x)


def work(x):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=x.numel())


def case(n: int) -> Case:
    return Case(f"n={n}", lambda draw: (whole_numbers(draw, n),))


def whole_numbers(draw: Draw, n: int) -> torch.Tensor:
    return draw.integers(n, low=-1000, high=1000)


def owner_with_other_tiles(x):
    """The ids of tiles that are a power of two, but not BLOCK, long."""
    tiles = [2**k for k in range(11) if 2**k != BLOCK]
    guesses = [x + torch.div(positions(x), tile, rounding_mode="floor") for tile in tiles]
    return (lambda out: any(torch.equal(out, guess) for guess in guesses)) if x.numel() > BLOCK else None


PROBLEM = Problem(
    slug="program_ids",
    title="Who owns which element",
    entry="add_program_ids",
    parameters=("x",),
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    # 130 first: with one tile or two, several mistakes give the same output
    cases=(case(130), case(1), case(0), case(63), case(64), case(65), case(1009)),
    # 524,288 programs of 64 elements: about 0.61 ns a program on an H200 whatever it does, 0.20 of copy bandwidth
    timing=Timing("n=2^25", lambda draw: (whole_numbers(draw, 2**25),), fair=0.05, fast=0.1),
    mistakes=(
        Mistake(
            cause="number_of_programs",
            message="Every element got the number of programs, not the id of its own: tl.num_programs is the same for all.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x: x + -(-x.numel() // BLOCK) if x.numel() > BLOCK else None,
            line=r"tl\.num_programs\(",
        ),
        Mistake(
            cause="id_not_added",
            message="The output is a copy of x: the id of the program was not added to the tile.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x: x,
        ),
        Mistake(
            cause="lane_instead_of_program",
            message="Each element got its place inside the tile (the value of tl.arange), not the id of its program.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x: x + positions(x) % BLOCK,
        ),
        Mistake(
            cause="offset_instead_of_program",
            message="Each element got its own index, id * BLOCK + lane. Only the id was asked for.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x: x + positions(x),
        ),
        Mistake(
            cause="other_tile_size",
            message=f"The ids are those of tiles of another size: a program owns {BLOCK} elements.",
            concept="grid",
            see="m01.lesson.grid",
            model=owner_with_other_tiles,
            line=r"BLOCK=\d+\)",
        ),
        Mistake(
            cause="ids_start_at_one",
            message="Every id is one too large: tl.program_id counts from 0.",
            concept="grid",
            see="m01.lesson.grid",
            model=lambda x: x + owner(x) + 1,
        ),
    ),
    hints=(
        "Write down, for n = 130, the elements that programs 0, 1 and 2 own.",
        "pid = tl.program_id(0) is one number; pid * BLOCK + tl.arange(0, BLOCK) is the tile of offsets that it owns.",
        "mask = offs < n; tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + pid, mask=mask)",
    ),
)
