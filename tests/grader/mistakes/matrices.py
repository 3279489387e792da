"""matmul, grouped_matmul, attention, causal_attention."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

# as in the stubs: the models of what a mistake gives know this tile
ATTENTION_64 = (
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3",
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 64, 64, 4, 2",
)
CAUSAL_64 = (
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 128, 64, 8, 3",
    "BLOCK_M, BLOCK_N, num_warps, num_stages = 64, 64, 4, 2",
)
RUNNING_MAX = "tl.maximum(m_i, tl.max(s, axis=1) * scale)"
CAUSAL_WHERE = "cols[None, :] <= offs_m[:, None]"


def both_attentions(
    numbers: tuple[str, ...], title: str, *changes: tuple[str, str], **rest
) -> tuple[KnownMistake, ...]:
    return (
        KnownMistake(numbers, title, "attention", (ATTENTION_64, *changes), **rest),
        KnownMistake(numbers, title, "causal_attention", (CAUSAL_64, *changes), **rest),
    )


MISTAKES: tuple[KnownMistake, ...] = (
    # -- matmul
    KnownMistake(
        ("5",),
        "no mask along K",
        "matmul",
        ((" & (offs_k[None, :] < left)", ""), ("(offs_k[:, None] < left) & ", "")),
        status="out_of_bounds",
        causes=("out_of_range_load",),
        line="a = tl.load(",
    ),
    KnownMistake(
        ("5",),
        "no mask along K on B",
        "matmul",
        (("(offs_k[:, None] < left) & ", ""),),
        status="out_of_bounds",
        causes=("out_of_range_load",),
        line="b = tl.load(",
    ),
    KnownMistake(
        ("5",),
        "K tail dropped",
        "matmul",
        (("range(tl.cdiv(K, BLOCK_K))", "range(K // BLOCK_K)"),),
        causes=("k_tail_dropped",),
        line="K // BLOCK_K",
    ),
    KnownMistake(
        ("20",),
        "row and column expansion exchanged in A",
        "matmul",
        (
            (
                "offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak",
                "offs_m[None, :] * stride_am + offs_k[:, None] * stride_ak",
            ),
            ("(offs_m[:, None] < M) & (offs_k[None, :] < left)", "(offs_m[None, :] < M) & (offs_k[:, None] < left)"),
        ),
        causes=("swapped_axes",),
        line="a_ptr + ",
    ),
    KnownMistake(
        ("20",),
        "row and column strides of B exchanged",
        "matmul",
        (
            (
                "offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn",
                "offs_k[:, None] * stride_bn + offs_n[None, :] * stride_bk",
            ),
        ),
        causes=("swapped_axes",),
        line="b_ptr + ",
    ),
    KnownMistake(
        ("13",),
        "row-major A assumed",
        "matmul",
        (
            ("offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak", "offs_m[:, None] * K + offs_k[None, :]"),
            ("a_ptrs += BLOCK_K * stride_ak", "a_ptrs += BLOCK_K"),
        ),
        causes=("assumes_contiguous",),
        line="a_ptr + ",
    ),
    KnownMistake(
        ("27",),
        "accumulator in float16",
        "matmul",
        (
            ("dtype=tl.float32)", "dtype=tl.float16)"),
            (
                'acc = tl.dot(a, b, acc, input_precision="ieee")',
                'acc += tl.dot(a, b, input_precision="ieee").to(tl.float16)',
            ),
        ),
        causes=("low_precision_accumulator",),
        line="tl.float16",
    ),
    KnownMistake(
        ("36",),
        "plain global in the kernel",
        "matmul",
        (
            ("@triton.jit\n", 'PRECISION = "ieee"\n\n\n@triton.jit\n'),
            ('input_precision="ieee")', "input_precision=PRECISION)"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="input_precision=PRECISION",
    ),
    KnownMistake(
        ("D dot",),
        "tiles too small for tl.dot",
        "matmul",
        (("= 32, 32, 32, 4", "= 32, 32, 2, 4"),),
        status="compile_error",
        causes=("dot_too_small",),
        line="tl.dot(",
    ),
    KnownMistake(
        ("59",),
        "no product of an empty K",
        "matmul",
        (("if M == 0 or N == 0:", "if M == 0 or N == 0 or K == 0:"),),
        status="not_written",
        causes=("nothing_written",),
    ),
    KnownMistake(
        ("38",),
        "accumulator replaced by a float16 tile",
        "matmul",
        (
            (
                'acc = tl.dot(a, b, acc, input_precision="ieee")',
                'acc = tl.dot(a, b, acc, input_precision="ieee").to(tl.float16)',
            ),
        ),
        status="compile_error",
        causes=("accumulator_type", "loop_changes_type"),
        line="acc = tl.dot(",
    ),
    # -- grouped_matmul
    KnownMistake(
        ("5",),
        "no mask along K",
        "grouped_matmul",
        ((", mask=offs_k[None, :] < left, other=0.0", ""), (", mask=offs_k[:, None] < left, other=0.0", "")),
        status="out_of_bounds",
        causes=("missing_load_mask",),
        line="a = tl.load(",
    ),
    KnownMistake(
        ("5",),
        "K tail dropped",
        "grouped_matmul",
        (("range(tl.cdiv(K, BLOCK_K))", "range(K // BLOCK_K)"),),
        causes=("k_tail_dropped",),
        line="K // BLOCK_K",
    ),
    KnownMistake(
        ("5",),
        "last group taken for a whole one",
        "grouped_matmul",
        (("min(tiles_m - first_row, GROUP_M)", "GROUP_M"),),
        status="not_written",
        causes=("last_group_full_size",),
    ),
    KnownMistake(
        ("13",),
        "row-major A assumed",
        "grouped_matmul",
        (
            (
                "(offs_m % M)[:, None] * stride_am + offs_k[None, :] * stride_ak",
                "(offs_m % M)[:, None] * K + offs_k[None, :]",
            ),
            ("a_ptrs += BLOCK_K * stride_ak", "a_ptrs += BLOCK_K"),
        ),
        causes=("assumes_contiguous",),
        line="a_ptr + ",
    ),
    KnownMistake(
        ("20",),
        "row and column within a group exchanged",
        "grouped_matmul",
        (("first_row + place % rows, place // rows", "first_row + place // rows, place % rows"),),
        status="not_written",
        causes=("swapped_axes",),
    ),
    KnownMistake(
        ("27",),
        "accumulator in float16",
        "grouped_matmul",
        (("dtype=tl.float32)", "dtype=tl.float16)"), ("acc = tl.dot(a, b, acc)", "acc += tl.dot(a, b).to(tl.float16)")),
        causes=("low_precision_accumulator",),
        line="tl.float16",
    ),
    KnownMistake(
        ("36",),
        "group size is a plain global",
        "grouped_matmul",
        (
            (
                "@triton.jit\ndef tile_of(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr)",
                "GROUP = 4\n\n\n@triton.jit\ndef tile_of(pid, tiles_m, tiles_n, GROUP_M: tl.constexpr)",
            ),
            ("programs_per_group = GROUP_M * tiles_n", "programs_per_group = GROUP * tiles_n"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="GROUP * tiles_n",
    ),
    # -- attention and causal_attention
    *both_attentions(
        ("32",),
        "acc not rescaled",
        ("acc * alpha[:, None]", "acc"),
        causes=("no_rescale",),
        line="acc = tl.dot(",
    ),
    *both_attentions(
        ("32",),
        "denominator not rescaled",
        ("l_i * alpha + ", "l_i + "),
        causes=("no_rescale_denominator",),
        line="l_i = l_i + ",
    ),
    *both_attentions(
        ("31",),
        "running maximum starts at 0",
        ('tl.full([BLOCK_M], float("-inf"), dtype=tl.float32)', "tl.zeros([BLOCK_M], dtype=tl.float32)"),
        causes=("max_starts_at_zero",),
        line="m_i = tl.zeros(",
    ),
    *both_attentions(
        ("29",),
        "division by l inside the loop",
        ("        m_i = m_new\n", "        acc = acc / l_i[:, None]\n        m_i = m_new\n"),
        ("out = acc / l_i[:, None]", "out = acc"),
        causes=("normalised_inside_loop",),
        line="acc = acc / l_i",
    ),
    *both_attentions(
        ("34",),
        "exp2 without log2(e)",
        ("    scale *= 1.4426950408889634", "    scale *= 1.0"),
        causes=("wrong_exponent_base",),
        line="tl.exp2(",
    ),
    *both_attentions(
        ("7",),
        "head dimension hard-coded as 64",
        ("D=D, BLOCK_M", "D=64, BLOCK_M"),
        status="out_of_bounds",
        causes=("head_dimension_hard_coded",),
    ),
    *both_attentions(
        ("27",),
        "acc in float16",
        ("acc = tl.zeros([BLOCK_M, D], dtype=tl.float32)", "acc = tl.zeros([BLOCK_M, D], dtype=tl.float16)"),
        (
            "acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])",
            "acc = (tl.dot(p.to(v.dtype), v) + acc * alpha[:, None]).to(tl.float16)",
        ),
        causes=("low_precision_accumulator",),
        line="tl.float16",
    ),
    *both_attentions(
        ("13",),
        "last dimension of v taken for contiguous",
        ("offs_d[None, :] * stride_vd", "offs_d[None, :]"),
        causes=("assumes_contiguous",),
        line="v_base + ",
    ),
    *both_attentions(
        ("20",),
        "k not transposed in its pointers",
        (
            "offs_d[:, None] * stride_kd + offs_n[None, :] * stride_kn",
            "offs_d[:, None] * stride_kn + offs_n[None, :] * stride_kd",
        ),
        status="out_of_bounds",
        causes=("swapped_axes",),
        line="k_base + ",
    ),
    *both_attentions(
        ("38",),
        "alpha makes l a float16",
        ("l_i = l_i * alpha + tl.sum(p, axis=1)", "l_i = (l_i * alpha + tl.sum(p, axis=1)).to(tl.float16)"),
        status="compile_error",
        causes=("loop_changes_type",),
        line="l_i = (l_i",
    ),
    KnownMistake(
        ("2", "5"),
        "keys past N_k not masked in the softmax",
        "attention",
        (ATTENTION_64, ('s = tl.where(real[None, :], s, float("-inf"))', "s = s + 0.0")),
        causes=("padded_keys_counted",),
        line="tl.dot(q",
    ),
    KnownMistake(
        ("5",),
        "last partial tile of keys dropped",
        "attention",
        (
            ATTENTION_64,
            ("q, k_ptrs, v_ptrs, m_i, l_i, acc, whole, N_k,", "q, k_ptrs, v_ptrs, m_i, l_i, acc, whole, whole,"),
        ),
        causes=("tail_dropped",),
    ),
    KnownMistake(
        ("6",),
        "keys past BLOCK_N ignored",
        "attention",
        (
            ATTENTION_64,
            ("acc, 0, whole,", "acc, 0, tl.minimum(whole, BLOCK_N),"),
            ("acc, whole, N_k,", "acc, whole, tl.where(whole == 0, N_k, whole),"),
        ),
        causes=("first_tile_only",),
    ),
    KnownMistake(
        ("20",),
        "causal mask reversed",
        "causal_attention",
        (CAUSAL_64, (CAUSAL_WHERE, "cols[None, :] >= offs_m[:, None]")),
        causes=("causal_mask_reversed",),
        line="tl.where(",
    ),
    KnownMistake(
        ("9",),
        "own key hidden: row of NaN",
        "causal_attention",
        (CAUSAL_64, (CAUSAL_WHERE, "cols[None, :] < offs_m[:, None]")),
        causes=("causal_off_by_one",),
        line="tl.where(",
    ),
    KnownMistake(
        ("2",),
        "masked scores are 0",
        "causal_attention",
        (CAUSAL_64, (f'tl.where({CAUSAL_WHERE}, s, float("-inf"))', f"tl.where({CAUSAL_WHERE}, s, 0.0)")),
        causes=("masked_scores_are_zero",),
        line="tl.where(",
    ),
)
