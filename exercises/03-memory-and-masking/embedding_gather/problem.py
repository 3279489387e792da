import torch

from grader.problem import Case, Draw, Mistake, Problem, Timing, Tolerance, Work

BLOCK_D = 1024  # of the launcher that the stub gives


def reference(table, ids):
    return torch.nn.functional.embedding(ids.long(), table)


def work(table, ids):
    read = torch.unique(ids).numel() * table.shape[1]  # a row that many tokens name need be read only once
    written = ids.numel() * table.shape[1]
    return Work(bytes=(read + written) * table.element_size() + ids.numel() * ids.element_size(), flops=0)


def case(
    tokens: int, rows: int, columns: int, ids: torch.dtype = torch.int64, dtype: torch.dtype = torch.float32
) -> Case:
    def make(draw: Draw):
        return draw.normal(rows, columns, dtype=dtype), drawn_ids(draw, tokens, rows, ids)

    names = " ".join(str(d).removeprefix("torch.") for d in (dtype, ids))
    return Case(f"T={tokens} V={rows} D={columns} {names} ids", make)


def drawn_ids(draw: Draw, tokens: int, rows: int, dtype: torch.dtype) -> torch.Tensor:
    """Any rows, but the last token always names the last row."""
    ids = draw.integers(tokens, low=0, high=rows, dtype=dtype)
    ids[-1:] = rows - 1
    return ids


def rows_apart(draw: Draw):
    """Every second row of a table, and of each row a part."""
    return draw.normal(40, 90)[::2, 10:47], drawn_ids(draw, 11, 20, torch.int32)


def bytes_apart(draw: Draw):
    return draw.normal(64, 50)[:, :37], drawn_ids(draw, 11, 64, torch.uint8)


def one_token_repeated(draw: Draw):
    return draw.normal(11, 65), draw.full(9, value=4, dtype=torch.int64)


def specials(draw: Draw):
    table = draw.normal(6, 20)
    table[1], table[3, 0], table[5] = float("nan"), float("inf"), float("-inf")
    return table, drawn_ids(draw, 12, 6, torch.int64)


def at(table: torch.Tensor, starts: torch.Tensor) -> torch.Tensor | None:
    """Rows of D elements that begin `starts` elements from the table's first; None where one leaves its memory."""
    offsets = starts.long()[:, None] + torch.arange(table.shape[1])
    span = (table.shape[0] - 1) * table.stride(0) + table.shape[1]
    if table.numel() == 0 or starts.numel() == 0 or int(offsets.max()) >= span:
        return None
    return table.as_strided((span,), (1,))[offsets]


def wrapped_offsets(table, ids):
    """id * ROW in the type of a uint8 id. In int32 it is the same mistake, but takes a table of 2^31 elements."""
    if ids.dtype != torch.uint8 or table.stride(0) > 255:
        return None  # a constexpr past 255 does not fit beside a uint8: Triton refuses it
    return at(table, ids.long() * table.stride(0) % 256)


def token_for_id(table, ids):
    return table[: ids.numel()].clone() if ids.numel() <= table.shape[0] else None


def first_tile_only(table, ids):
    """The answer in the first BLOCK_D columns, and nothing of it after them: poison, or a torch.zeros' zeros."""
    if table.shape[1] <= BLOCK_D:
        return None
    right = reference(table, ids)

    def matches(out: torch.Tensor) -> bool:
        rest = out[:, BLOCK_D:]
        return torch.equal(out[:, :BLOCK_D], right[:, :BLOCK_D]) and bool(rest.isnan().all() or (rest == 0).all())

    return matches


PROBLEM = Problem(
    slug="embedding_gather",
    title="Embedding lookup",
    entry="embedding",
    parameters=("table", "ids"),
    contiguous=True,
    reference=reference,
    work=work,
    tolerance=Tolerance(exact=True),
    cases=(
        case(3, 5, 4),
        case(1, 1, 1),
        case(7, 60, 37, torch.uint8),
        case(0, 5, 4),
        Case("T=11 V=20 D=37, rows 180 apart, int32 ids", rows_apart),
        Case("T=11 V=64 D=37, rows 50 apart, uint8 ids", bytes_apart),
        case(5, 9, BLOCK_D - 1),
        case(5, 9, BLOCK_D, torch.int32),
        case(5, 9, BLOCK_D + 1),
        case(3, 7, 2503, torch.int32),
        case(13, 256, 64, torch.uint8, torch.float16),
        case(13, 97, 128, torch.int32, torch.bfloat16),
        Case("T=9, one token repeated", one_token_repeated),
        Case("inf and nan in the table", specials),
    ),
    timing=Timing(
        "T=65536 V=128256 D=4096 bfloat16, int64 ids",
        lambda draw: (
            draw.normal(128256, 4096, dtype=torch.bfloat16),
            draw.integers(65536, low=0, high=128256, dtype=torch.int64),
        ),
    ),
    mistakes=(
        Mistake(
            cause="offset_wraps",
            message="The offset wrapped: id * ROW was computed in the type of the id, here uint8, and kept modulo 256. "
            "In int32 the same happens past 2^31 elements. Widen first: id.to(tl.int64) * ROW.",
            concept="offsets",
            see="m03.lesson.overflow",
            model=wrapped_offsets,
            line=r"\* ROW\b",
        ),
        Mistake(
            cause="token_instead_of_id",
            message="Token t got row t of the table: its row is ids[t], one more load.",
            concept="pointers",
            see="m03.lesson.strides",
            model=token_for_id,
            line=r"(?:pid|token|program_id\([^)]*\))\w* \* ROW",
        ),
        Mistake(
            cause="pointer_without_offsets",
            message="Every token got the row of ids[0]: ids_ptr alone is the address of the first id. Add the token.",
            concept="pointers",
            see="m03.lesson.strides",
            model=lambda table, ids: reference(table, ids[:1].expand_as(ids)) if ids.numel() > 1 else None,
            line=r"tl\.load\(\s*ids_ptr\s*[,)]",
        ),
        Mistake(
            cause="assumes_contiguous",
            message="Row v was looked for at v * D: the rows of the table lie ROW elements apart.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda table, ids: None if table.is_contiguous() else at(table, ids.long() * table.shape[1]),
            line=r"table_ptr \+(?!.*ROW)",
        ),
        Mistake(
            cause="missing_stride",
            message="Row v was looked for v elements from the start: an id counts rows, each of them ROW elements long.",
            concept="strides",
            see="m03.lesson.strides",
            model=lambda table, ids: at(table, ids.long()) if table.shape[1] > 1 else None,
            line=r"table_ptr \+(?!.*ROW)",
        ),
        Mistake(
            cause="first_tile_only",
            message="Only the first BLOCK_D columns were written: walk along the row, start = 0, BLOCK_D, 2 * BLOCK_D, …",
            concept="tiling",
            see="m03.lesson.strides",
            model=first_tile_only,
            line=r"tl\.store\(",
        ),
    ),
    hints=(
        "ids is uint8, an id is 200 and ROW is 40. What is id * ROW, and what fits into 8 bits?",
        "token = tl.program_id(0); row = tl.load(ids_ptr + token) is one number. Cast it to int64 before anything is "
        "multiplied: a cast of the product comes too late.",
        "row = tl.load(ids_ptr + token).to(tl.int64); tl.load(table_ptr + row * ROW + cols, mask=cols < D)",
    ),
)
