"""What the output would be if a mistake had been made, and the mistakes by name."""

import torch

from grader.problem import Mistake

BLOCK_K = 32  # what the stub suggests


def product(a, b):
    return (a.float() @ b.float()).to(a.dtype)


def first_matrix(of_a: bool, of_b: bool):
    """Every program reads matrix 0 of A, of B or of both."""

    def model(a, b):
        if a.shape[0] < 2:
            return None
        return product(a[:1].expand_as(a) if of_a else a, b[:1].expand_as(b) if of_b else b)

    return model


def all_into_the_first(a, b):
    """All programs store into C[0]: a later matrix's product stays there, and the rest is as it was."""
    if a.shape[0] < 2 or a.shape[1] == 0 or b.shape[2] == 0:
        return None
    later = (a[1:].float() @ b[1:].float()).to(a.dtype).float()

    def matches(out):
        same = [torch.allclose(out[0].float(), one, rtol=1e-3, atol=1e-2) for one in later]
        return bool(out[1:].isnan().all()) and any(same)

    return matches


def first_alone(a, b):
    """C[0] is right, and nobody has written the rest."""
    if a.shape[0] < 2 or a.shape[1] == 0 or b.shape[2] == 0:
        return None
    out = torch.full((a.shape[0], a.shape[1], b.shape[2]), float("nan"), dtype=a.dtype)
    out[0] = product(a[0], b[0])
    return out


def reach(x) -> int:
    """Elements from x's first to its last in memory."""
    return 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))


def read_with(x, strides):
    """x's memory read with other strides; None where that leaves it, which is out of bounds and no wrong answer."""
    last = sum((n - 1) * stride for n, stride in zip(x.shape, strides, strict=True))
    return torch.as_strided(x, x.shape, strides) if 0 not in x.shape and last < reach(x) else None


def misread(strides_of, names: str):
    """The operands in `names` read with the strides that `strides_of(x)` gives."""

    def model(a, b):
        read = [read_with(x, strides_of(x)) if name in names else x for name, x in (("a", a), ("b", b))]
        return None if any(x is None for x in read) else product(*read)

    return model


def packed_batch(x):
    return (x.shape[1] * x.shape[2], x.stride(1), x.stride(2))


def packed_rows(x):
    return (x.stride(0), x.shape[2], 1)


def moved_by_the_stride_of_a(a, b):
    read = read_with(b, (a.stride(0), b.stride(1), b.stride(2)))
    return None if read is None or a.stride(0) == b.stride(0) else product(a, read)


def first_k_tile(a, b):
    return None if a.shape[2] <= BLOCK_K else product(a[..., :BLOCK_K], b[:, :BLOCK_K])


def whole_k_tiles(a, b):
    k = a.shape[2] // BLOCK_K * BLOCK_K
    return None if k == a.shape[2] else product(a[..., :k], b[:, :k])


def half_accumulator(a, b):
    if a.shape[2] <= BLOCK_K:
        return None
    acc = torch.zeros(a.shape[0], a.shape[1], b.shape[2], device=a.device)
    for k in range(0, a.shape[2], BLOCK_K):
        acc = (acc + a[..., k : k + BLOCK_K].float() @ b[:, k : k + BLOCK_K].float()).to(a.dtype).float()
    return acc.to(a.dtype)


def batch_offset_missing(names: str, of_a: bool, of_b: bool, pointer: str) -> Mistake:
    return Mistake(
        cause="missing_batch_offset",
        message=f"Every C[i] is computed from matrix 0 of {names}: its pointer is not moved by i * its batch stride.",
        concept="strides",
        see="m03.lesson.strides",
        model=first_matrix(of_a, of_b),
        line=rf"\b{pointer}s?\s*=.*\b{pointer[0]}_ptr|\b{pointer[0]}_ptr\s*\+",
    )


MISTAKES = (
    batch_offset_missing("A and B", True, True, "a_ptr"),
    batch_offset_missing("A", True, False, "a_ptr"),
    batch_offset_missing("B", False, True, "b_ptr"),
    Mistake(
        cause="missing_batch_offset",
        message="Every program stores into C[0]: c_ptr is not moved by i * its batch stride.",
        concept="strides",
        see="m03.lesson.strides",
        model=all_into_the_first,
        line=r"\bc_ptrs?\s*=.*\bc_ptr|tl\.store\(",
    ),
    Mistake(
        cause="first_matrix_only",
        message="Only C[0] was written: the grid has no programs for the other matrices, or their tile's number is not taken "
        "within its own matrix, pid % tiles.",
        concept="launch",
        see="m02.lesson.launch",
        model=first_alone,
        line=r"grid\s*=|\[\(?triton\.cdiv",
    ),
    Mistake(
        cause="batch_strides_exchanged",
        message="B moves from matrix to matrix by A's batch stride: each tensor has its own.",
        concept="strides",
        see="m03.lesson.strides",
        model=moved_by_the_stride_of_a,
        line=r"\bb_\w+.*stride_as",
    ),
    *(
        Mistake(
            cause="assumes_contiguous",
            message="Matrix i is taken to begin i * rows * columns elements after matrix 0. The batch stride may be anything: "
            "smaller where the batch is an inner axis, 0 where one matrix serves all.",
            concept="strides",
            see="m03.lesson.strides",
            model=misread(packed_batch, names),
            line=r"\*\s*M\s*\*\s*K|\*\s*K\s*\*\s*N|\*\s*\(?\s*(M \* K|K \* N)",
        )
        for names in ("ab", "a", "b")
    ),
    *(
        Mistake(
            cause="assumes_contiguous",
            message="Rows and columns were read as if each matrix were row-major and packed: their strides were not used.",
            concept="strides",
            see="m03.lesson.strides",
            model=misread(packed_rows, names),
            line=r"\[:, None\] \* [KN]\b",
        )
        for names in ("ab", "a", "b")
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
        message="The running sum is rounded to 16 bits after every step along K. Keep it in float32 and cast once.",
        concept="numerics",
        see="m06.lesson.precision",
        model=half_accumulator,
        line=r"tl\.zeros\([^)]*\)[^)\n]*tl\.float16|\.to\(tl\.float16\)",
    ),
)
