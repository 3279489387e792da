"""What the output would be if a mistake had been made, and the mistakes by name."""

import torch

from grader.problem import Mistake

BLOCK, GROUP_M = 32, 4  # of the launcher the stub gives: BLOCK along M, N and K


def tiles_of(a, b) -> list[tuple[int, int]]:
    """First row and first column of each tile, in grouped order."""
    tiles_m, tiles_n = -(-a.shape[0] // BLOCK), -(-b.shape[1] // BLOCK)
    found = []
    for tile in range(tiles_m * tiles_n):
        group, place = divmod(tile, GROUP_M * tiles_n)
        rows = min(tiles_m - group * GROUP_M, GROUP_M)
        found.append(((group * GROUP_M + place % rows) * BLOCK, place // rows * BLOCK))
    return found


def written_by(share_of):
    """C with only the tiles of `share_of(program, programs, tiles)`; NaN where no program writes."""

    def model(a, b, programs):
        places = tiles_of(a, b)
        launched = min(programs, len(places))
        c = (a.float() @ b.float()).to(a.dtype)
        out = torch.full_like(c, float("nan"))
        for program in range(launched):
            for tile in share_of(program, launched, len(places)):
                m, n = places[tile]
                out[m : m + BLOCK, n : n + BLOCK] = c[m : m + BLOCK, n : n + BLOCK]
        return out if bool(out.isnan().any()) else None

    return model


def accumulator_kept(a, b, programs):
    """A program's second tile starts with the sums of its first."""
    places = tiles_of(a, b)
    launched = min(programs, len(places))
    if launched == len(places):
        return None
    c = a.float() @ b.float()
    out = torch.zeros_like(c)
    for program in range(launched):
        acc = torch.zeros(BLOCK, BLOCK, device=a.device)
        for tile in range(program, len(places), launched):
            m, n = places[tile]
            piece = c[m : m + BLOCK, n : n + BLOCK]
            rows, columns = piece.shape
            acc[:rows, :columns] += piece
            out[m : m + BLOCK, n : n + BLOCK] = acc[:rows, :columns]
    return out.to(a.dtype)


def padded_to(x, rows, columns):
    return torch.nn.functional.pad(x, (0, columns - x.shape[1], 0, rows - x.shape[0]))


def corners_in_tiles(of_a: bool, of_b: bool, rows_only: bool = False):
    """load([row, k]) with the number of a tile where its first element belongs."""

    def model(a, b, programs):
        (m, k), n = a.shape, b.shape[1]
        if max(m, n, k) <= BLOCK or 0 in (m, n, k):
            return None
        wide = [padded_to(x.float(), *(size + 2 * BLOCK for size in x.shape)) for x in (a, b)]
        out = torch.zeros(m, n, device=a.device)
        for row, column in tiles_of(a, b):
            acc = torch.zeros(BLOCK, BLOCK, device=a.device)
            for step in range(0, k, BLOCK):
                am, ak = (row // BLOCK, step // BLOCK) if of_a else (row, step)
                ak = step if rows_only else ak
                bk, bn = (step // BLOCK, column // BLOCK) if of_b else (step, column)
                acc += wide[0][am : am + BLOCK, ak : ak + BLOCK] @ wide[1][bk : bk + BLOCK, bn : bn + BLOCK]
            piece = out[row : row + BLOCK, column : column + BLOCK]
            piece.copy_(acc[: piece.shape[0], : piece.shape[1]])
        return out.to(a.dtype)

    return model


def corner_of_b_exchanged(a, b, programs):
    """b_desc.load([column, k]) in place of [k, column]."""
    (m, k), n = a.shape, b.shape[1]
    if max(n, k) <= BLOCK or 0 in (m, n, k):
        return None
    size = max(n, k) + BLOCK
    wide_a, wide_b = padded_to(a.float(), m, size), padded_to(b.float(), size, size)
    out = torch.zeros(m, n, device=a.device)
    for column in range(0, n, BLOCK):
        acc = sum(
            wide_a[:, step : step + BLOCK] @ wide_b[column : column + BLOCK, step : step + BLOCK]
            for step in range(0, k, BLOCK)
        )
        out[:, column : column + BLOCK] = acc[:, : min(BLOCK, n - column)]
    return out.to(a.dtype)


def packed_rows(names: str):
    """Row strides taken for row lengths, in the operands in `names`."""

    def model(a, b, programs):
        if all(x.is_contiguous() for name, x in (("a", a), ("b", b)) if name in names):
            return None
        packed = lambda x: torch.as_strided(x, x.shape, (x.shape[1], 1))
        read = [packed(x) if name in names else x for name, x in (("a", a), ("b", b))]
        return (read[0].float() @ read[1].float()).to(a.dtype)

    return model


def exchanged(x):
    """x behind a descriptor whose shape is [columns, rows]: what lies outside comes as 0."""
    rows, columns = x.shape
    inside = torch.arange(rows, device=x.device)[:, None] < columns
    return x.masked_fill(~(inside & (torch.arange(columns, device=x.device)[None, :] < rows)), 0.0)


def shape_exchanged(names: str):
    def model(a, b, programs):
        read = [exchanged(x) if name in names else x for name, x in (("a", a), ("b", b))]
        return (read[0].float() @ read[1].float()).to(a.dtype)

    return model


def first_k_tile(a, b, programs):
    return None if a.shape[1] <= BLOCK else (a[:, :BLOCK].float() @ b[:BLOCK].float()).to(a.dtype)


def first_step_again(a, b, programs):
    """Every step takes the first tile of A and of B: what lies outside K is not masked off, as the corner does not move."""
    k = a.shape[1]
    if k <= BLOCK:
        return None
    steps = -(-k // BLOCK)
    return (steps * (a[:, :BLOCK].float() @ b[:BLOCK].float())).to(a.dtype)


def whole_k_tiles(a, b, programs):
    k = a.shape[1] // BLOCK * BLOCK
    return None if k == a.shape[1] else (a[:, :k].float() @ b[:k].float()).to(a.dtype)


def half_accumulator(a, b, programs):
    if a.shape[1] <= BLOCK:
        return None
    acc = torch.zeros(a.shape[0], b.shape[1], device=a.device)
    for k in range(0, a.shape[1], BLOCK):
        acc = (acc + a[:, k : k + BLOCK].float() @ b[k : k + BLOCK].float()).half().float()
    return acc.half()


def chunk(program: int, programs: int, tiles: int) -> range:
    each = tiles // programs
    return range(program * each, (program + 1) * each)


def corner(names: str, of_a: bool, of_b: bool) -> Mistake:
    return Mistake(
        cause="offset_in_tiles",
        message=f"The corner given to the load of {names} counts tiles: a descriptor wants elements, row * BLOCK_M, k * BLOCK_K.",
        concept="offsets",
        see="m06.lesson.serious",
        model=corners_in_tiles(of_a, of_b),
        line=rf"\b{names[0].lower()}\w*\.load\(",
    )


MISTAKES = (
    Mistake(
        cause="accumulator_not_reset",
        message="A program's second tile still holds the sums of its first: acc must start at zero for each tile, inside the loop.",
        concept="persistence",
        see="m06.lesson.serious",
        model=accumulator_kept,
        line=r"acc\w*\s*=\s*tl\.zeros",
    ),
    Mistake(
        cause="first_tile_only",
        message="Each program computes one tile and ends: the tiles from number P on are nobody's. Loop on in steps of P.",
        concept="persistence",
        see="m06.lesson.serious",
        model=written_by(lambda program, programs, tiles: [program]),
        line=r"tl\.program_id\(",
    ),
    Mistake(
        cause="tail_dropped",
        message="Each program takes tiles // P tiles: what is left over when P does not divide them is computed by nobody.",
        concept="persistence",
        see="m06.lesson.serious",
        model=written_by(chunk),
        line=r"//\s*(tl\.num_programs|P\b|programs|NUM)",
    ),
    Mistake(
        cause="same_tile_again",
        message="Every turn of the loop computes the program's first tile: row and column must come from the loop's variable.",
        concept="persistence",
        see="m06.lesson.serious",
        model=written_by(lambda program, programs, tiles: [program]),
        line=r"tile_of\(",
    ),
    corner("A and B", True, True),
    corner("A", True, False),
    corner("B", False, True),
    Mistake(
        cause="offset_in_tiles",
        message="The corner given to the load of A counts tiles in its row: a descriptor wants elements, row * BLOCK_M.",
        concept="offsets",
        see="m06.lesson.serious",
        model=corners_in_tiles(True, False, rows_only=True),
        line=r"\ba\w*\.load\(",
    ),
    Mistake(
        cause="swapped_axes",
        message="The corner of B's tile is exchanged: its rows run along K, its columns along N, so [k * BLOCK_K, column * BLOCK_N].",
        concept="tiles",
        see="m06.lesson.pointers",
        model=corner_of_b_exchanged,
        line=r"\bb\w*\.load\(",
    ),
    *(
        Mistake(
            cause="assumes_contiguous",
            message="Row i is taken to begin i * columns elements after row 0: the descriptor's first stride is stride_am for A, "
            "stride_bk for B.",
            concept="strides",
            see="m03.lesson.strides",
            model=packed_rows(names),
            line=r"strides=\[\s*[KN]\b",
        )
        for names in ("ab", "a", "b")
    ),
    *(
        Mistake(
            cause="descriptor_shape_exchanged",
            message=f"The shape of the descriptor of {name.upper()} has rows and columns exchanged: what lies outside it comes as 0.",
            concept="descriptors",
            see="m06.lesson.serious",
            model=shape_exchanged(name),
            line=rf"\b{name}\w*\s*=\s*tl\.make_tensor_descriptor",
        )
        for name in ("a", "b")
    ),
    Mistake(
        cause="same_tile_again",
        message="Every step multiplies the first tiles along K again: the corner must hold k * BLOCK_K.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=first_step_again,
        line=r"\ba\w*\.load\(",
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
        cause="first_tile_only",
        message="Only the first BLOCK_K terms of each sum are there: the kernel does not go on along K.",
        concept="k loop",
        see="m06.lesson.kloop",
        model=first_k_tile,
    ),
    Mistake(
        cause="low_precision_accumulator",
        message="The running sum is rounded to float16 after every step along K. Keep it in float32 and cast once.",
        concept="numerics",
        see="m06.lesson.precision",
        model=half_accumulator,
        line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
    ),
)
