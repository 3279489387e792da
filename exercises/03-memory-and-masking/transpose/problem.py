import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK = 64  # of the stub


def reference(x):
    return x.t().clone(memory_format=torch.contiguous_format)


def work(x):
    return Work(bytes=2 * x.numel() * x.element_size(), flops=0)


def case(m: int, n: int, dtype: torch.dtype = torch.float32) -> Case:
    def make(draw: Draw):
        return (draw.normal(m, n, dtype=dtype),)

    return Case(f"{m} x {n} {str(dtype).removeprefix('torch.')}", make)


def integers(draw: Draw):
    return (draw.integers(19, 131, low=-(2**31), high=2**31 - 1, dtype=torch.int32),)


def specials(draw: Draw):
    x = draw.normal(17, 40)
    x[0, 0], x[3, 1], x[16, 39] = float("inf"), float("-inf"), float("nan")
    return (x,)


def already_transposed(draw: Draw):
    return (draw.normal(150, 37).t(),)


def square_transposed(draw: Draw):
    return (draw.normal(129, 129).t(),)


def window(draw: Draw):
    return (draw.normal(40, 400)[3:36:2, 10:310:3],)


def one_row_repeated(draw: Draw):
    return (draw.normal(1, 130).expand(20, 130),)


def one_column_repeated(draw: Draw):
    return (draw.normal(20, 1).expand(20, 130),)


def read_as(x: torch.Tensor, row_stride: int, column_stride: int) -> torch.Tensor | None:
    """The answer of a kernel that reads x with these strides; None if they are right or leave its memory."""
    m, n = x.shape
    if x.numel() == 0 or x.stride() == (row_stride, column_stride):
        return None
    in_storage = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    if (m - 1) * row_stride + (n - 1) * column_stride >= in_storage:
        return None
    seen = x.as_strided((m, n), (row_stride, column_stride)).clone()
    return reference(seen)


def tiles_moved_but_not_turned(x: torch.Tensor) -> torch.Tensor | None:
    """Each tile goes to the mirrored place, with its rows still rows."""
    if x.shape[0] != x.shape[1]:
        return None
    return by_tiles(x, turned=False, moved=True)


def tiles_turned_but_not_moved(x: torch.Tensor) -> torch.Tensor | None:
    """Each tile is transposed where it stands; only whole tiles can be compared."""
    if x.shape[0] != x.shape[1] or x.shape[0] <= BLOCK:
        return None
    return by_tiles(x, turned=True, moved=False)


def by_tiles(x: torch.Tensor, turned: bool, moved: bool) -> torch.Tensor | None:
    """Square x of whole tiles, each of them turned, or moved to the mirrored place."""
    n = x.shape[0]
    if n == 0 or n % BLOCK:
        return None
    tiles = x.reshape(n // BLOCK, BLOCK, n // BLOCK, BLOCK)
    if turned:
        tiles = tiles.transpose(1, 3)
    if moved:
        tiles = tiles.transpose(0, 2)
    return tiles.reshape(n, n).clone()


def first_tile_again(x: torch.Tensor, axis: int) -> torch.Tensor | None:
    """Along this axis of x, every tile reads what the first one reads."""
    n = x.shape[axis]
    return reference(x.index_select(axis, torch.arange(n) % BLOCK)) if n > BLOCK else None


PROBLEM = Problem(
    slug="transpose",
    title="Transpose by tiles",
    entry="transpose",
    parameters=("x",),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(1, 1),
        case(2 * BLOCK, 2 * BLOCK),  # whole tiles first: nothing but the order of elements can be wrong
        case(3, 5),
        Case("37 x 150, itself a transposed view", already_transposed),
        case(BLOCK, BLOCK),
        case(0, 5),
        case(3, 0),
        case(BLOCK - 1, BLOCK + 1),
        case(BLOCK + 1, BLOCK - 1),
        case(37, 263),
        case(1, 300),
        case(150, 1),
        Case("129 x 129 transposed", square_transposed),
        Case("17 x 100 window with steps 2 and 3", window),
        Case("20 x 130, one row expanded", one_row_repeated),
        Case("20 x 130, one column expanded", one_column_repeated),
        Case("inf and nan, 17 x 40", specials),
        case(19, 131, torch.float16),
        case(19, 131, torch.bfloat16),
        Case("19 x 131 int32", integers),
    ),
    timing=Timing("8192 x 8192 float32", lambda draw: (draw.normal(8192, 8192),), fair=0.5, fast=0.75),
    mistakes=(
        Mistake(
            cause="not_transposed",
            message="The output is x itself: rows and columns were exchanged nowhere, or twice, in the strides of x as well as "
            "in those of out.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=lambda x: x.clone() if x.shape[0] == x.shape[1] else None,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="tile_not_turned",
            message="Each tile went to the right place, but its rows are still rows: give the addresses of out the axes of the "
            "tile, rows[:, None] and cols[None, :], or store tl.trans(tile).",
            concept="tiling",
            see="m03.lesson.tiles",
            model=tiles_moved_but_not_turned,
            line=r"tl\.store\(",
        ),
        Mistake(
            cause="tile_not_moved",
            message="Each tile is transposed, but stayed where it was: in out, tile (i, j) belongs at tile row j, tile "
            "column i.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=tiles_turned_but_not_moved,
            line=r"out_ptr \+",
        ),
        Mistake(
            cause="missing_tile_offset",
            message="Every tile reads the rows of the first one: the rows of x lack program_id(0) * BLOCK.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=lambda x: first_tile_again(x, 0),
        ),
        Mistake(
            cause="missing_tile_offset",
            message="Every tile reads the columns of the first one: the columns of x lack program_id(1) * BLOCK.",
            concept="tiling",
            see="m03.lesson.tiles",
            model=lambda x: first_tile_again(x, 1),
        ),
        Mistake(
            cause="assumes_contiguous",
            message="The columns are read at stride 1: column j lies j * stride_xn elements from the row's start.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: read_as(x, x.stride(0), 1),
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="x is read from row * N + column, as if it were contiguous; use both of its strides.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda x: read_as(x, x.shape[1], 1),
            line=r"tl\.load\(x_ptr(?!.*stride_xn)",
        ),
    ),
    hints=(
        "For a 4 x 6 matrix and BLOCK = 2: to which tile of out does tile (0, 2) of x go, and where in it lies the tile's "
        "element [0, 1]?",
        "Leave the tile as it is: element (row, col) of it goes to row * stride_om + col * stride_on in out. Only if you "
        "turn the addresses round, cols[:, None] and rows[None, :], must you store tl.trans(tile) and turn the mask too.",
        "tl.store(out_ptr + rows[:, None] * stride_om + cols[None, :] * stride_on, tile, mask=mask), with the mask and the "
        "tile that were loaded",
    ),
)
