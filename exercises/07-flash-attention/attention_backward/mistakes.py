"""The mistakes by name, each with the model of its outputs."""

from grader.problem import Mistake

from .models import (
    BLOCK,
    first_only,
    grad_out_read_flat,
    kept,
    padded_keys_overflow,
    turned,
    with_options,
    with_strides_of_q,
)


def of_backward(cause: str, message: str, model, line: str | None = None, concept: str = "recomputation") -> Mistake:
    return Mistake(cause, message, concept, "m07.lesson.backward", model, line)


def whole_tiles(n: int) -> int:
    return n // BLOCK * BLOCK


def one_tile(n: int) -> int:
    return min(n, BLOCK)


def without_an_offset(dimension: int, word: str) -> tuple[Mistake, ...]:
    return tuple(
        of_backward(
            f"missing_{word}_offset",
            f"Every {word} reads {name} of {word} 0: the base pointer lacks {word} * its stride.",
            first_only(dimension, name),
            rf"\b{pointer}_ptr\s*\+(?!.*{word})|\b{pointer}_ptr\s*$",
            "strides",
        )
        for name, pointer in (("q", "q"), ("k", "k"), ("v", "v"), ("grad_out", "do"))
    )


DS_LINE = r"\bds\w*\s*="
P_LINE = r"tl\.exp2?\("

MISTAKES = (
    of_backward(
        "missing_delta",
        "ds is p * dp: the gradient through softmax is p * (dp - delta), with delta the row sum of grad_out * out.",
        with_options(use_delta=False),
        DS_LINE,
    ),
    of_backward(
        "missing_softmax_derivative",
        "ds is dp - delta, without p: the gradient through softmax is p * (dp - delta).",
        with_options(of_ds=lambda ds, p: ds / p),
        DS_LINE,
    ),
    of_backward(
        "missing_lse",
        "p is exp(s): without the row's logsumexp it is no weight. p = exp(s - lse).",
        with_options(use_lse=False),
        P_LINE,
    ),
    of_backward(
        "wrong_exponent_base",
        "exp2 of numbers in base e: multiply s - lse by log2(e) = 1.4427, both of them, or use exp.",
        with_options(base=2.0),
        P_LINE,
        "numerics",
    ),
    of_backward(
        "missing_scale",
        "dq lacks the scale: s = scale * q k^T, so its derivative by q brings the factor back.",
        with_options(scale_q=False),
        r"store\w*\(.*\bdq|\bdq\w*\s*\*=",
    ),
    of_backward(
        "missing_scale",
        "dk lacks the scale: s = scale * q k^T, so its derivative by k brings the factor back.",
        with_options(scale_k=False),
        r"store\w*\(.*\bdk|\bdk\w*\s*\*=",
    ),
    of_backward(
        "missing_scale",
        "dq and dk lack the scale: s = scale * q k^T, so its derivatives bring the factor back.",
        with_options(scale_q=False, scale_k=False),
        r"store\w*\(.*\bd[qk]|\bd[qk]\w*\s*\*=",
    ),
    of_backward(
        "swapped_axes",
        "dk and dv are made of p and ds as they are: a key's gradient is a sum over queries, so both are transposed.",
        turned,
        r"\bd[kv]\w*\s*\+?=\s*tl\.dot",
        "tiles",
    ),
    of_backward(
        "padded_keys_overflow",
        "A key past N_k has score 0, so p = exp(0 - lse), which overflows where all real scores are far below 0; times the zeros "
        "of k that is NaN. Set p to 0 for keys past N_k.",
        padded_keys_overflow,
        P_LINE,
        "masking",
    ),
    of_backward(
        "tail_dropped",
        "The keys after the last multiple of BLOCK_N give nothing to dq: the loop must run to N_k.",
        kept(keys=whole_tiles),
        r"//\s*BLOCK_N",
        "tiling",
    ),
    of_backward(
        "tail_dropped",
        "The queries after the last multiple of BLOCK_M give nothing to dk and dv: the loop must run to N_q.",
        kept(queries=whole_tiles),
        r"//\s*BLOCK_M",
        "tiling",
    ),
    of_backward(
        "first_tile_only",
        "Only the first BLOCK_N keys give to dq: nothing loops over the other tiles.",
        kept(keys=one_tile),
        None,
        "tiling",
    ),
    of_backward(
        "first_tile_only",
        "Only the first BLOCK_M queries give to dk and dv: nothing loops over the other tiles.",
        kept(queries=one_tile),
        None,
        "tiling",
    ),
    of_backward(
        "gradient_assumed_contiguous",
        "grad_out was read as if it were contiguous: it comes with strides of its own, 0 among them.",
        grad_out_read_flat,
        r"\bdo_ptr\s*\+",
        "strides",
    ),
    of_backward(
        "gradient_assumed_contiguous",
        "grad_out was read with the strides of q: it has its own.",
        with_strides_of_q,
        r"\bdo_ptr\s*\+",
        "strides",
    ),
    *without_an_offset(0, "batch"),
    *without_an_offset(1, "head"),
)
