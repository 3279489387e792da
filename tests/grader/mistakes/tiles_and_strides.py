"""block_copy_2d, row_scale."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

MISTAKES: tuple[KnownMistake, ...] = (
    # -- block_copy_2d
    KnownMistake(
        ("13",),
        "column stride taken for 1",
        "block_copy_2d",
        (("cols * stride_xn", "cols"),),
        causes=("assumes_contiguous",),
        line="x_ptr + rows",
    ),
    KnownMistake(
        ("13",),
        "row * N + column",
        "block_copy_2d",
        (("rows * stride_xm + cols * stride_xn", "rows * n_cols + cols"),),
        causes=("assumes_contiguous",),
        line="rows * n_cols",
    ),
    KnownMistake(
        ("13",),
        "output keeps the strides of a transposed input",
        "block_copy_2d",
        (("torch.empty(x.shape, dtype=x.dtype, device=x.device)", "torch.empty_like(x)"),),
        status="wrong_shape",
        causes=("not_contiguous",),
    ),
    KnownMistake(
        ("20",),
        "row and column strides exchanged in the load",
        "block_copy_2d",
        (("rows * stride_xm + cols * stride_xn", "rows * stride_xn + cols * stride_xm"),),
        status="out_of_bounds",
        causes=("swapped_axes",),
        line="x_ptr + rows",
    ),
    KnownMistake(
        ("5",),
        "columns not masked",
        "block_copy_2d",
        (("(rows < n_rows) & (cols < n_cols)", "rows < n_rows"),),
        status="out_of_bounds",
        causes=("out_of_range_load",),
        line="x_ptr + rows",
    ),
    KnownMistake(
        ("18",),
        "tile mask with a scalar pointer",
        "block_copy_2d",
        (("tl.load(x_ptr + rows * stride_xm + cols * stride_xn, mask=mask)", "tl.load(x_ptr, mask=mask)"),),
        status="compile_error",
        causes=("mask_wider_than_pointer",),
        line="tl.load(x_ptr, mask=mask)",
    ),
    # -- row_scale
    KnownMistake(
        ("13",),
        "column stride taken for 1",
        "row_scale",
        (("cols * stride_xn", "cols"),),
        causes=("assumes_contiguous",),
        line="x_ptr + row",
    ),
    KnownMistake(
        ("13",),
        "row * N + column",
        "row_scale",
        (("row * stride_xm + cols * stride_xn", "row * n_cols + cols"),),
        causes=("assumes_contiguous",),
        line="row * n_cols",
    ),
    KnownMistake(
        ("13",),
        "output stored with the strides of the input",
        "row_scale",
        (("row * stride_om + cols * stride_on", "row * stride_xm + cols * stride_xn"),),
        causes=("output_stored_with_input_strides",),
        line="tl.store(",
    ),
    KnownMistake(
        ("20",),
        "row and column strides exchanged",
        "row_scale",
        (("row * stride_xm + cols * stride_xn", "row * stride_xn + cols * stride_xm"),),
        status="out_of_bounds",
        causes=("swapped_axes",),
        line="x_ptr + row",
    ),
    KnownMistake(
        ("20",),
        "scaled by column",
        "row_scale",
        (
            ("    scale = tl.load(scale_ptr + row)\n", ""),
            ("x * scale, mask", "x * tl.load(scale_ptr + cols, mask=cols < tl.num_programs(0), other=0.0), mask"),
        ),
        causes=("scale_by_column",),
        line="scale_ptr + cols",
    ),
    KnownMistake(
        ("6",),
        "columns past BLOCK ignored",
        "row_scale",
        (("range(0, n_cols, BLOCK_N)", "range(0, BLOCK_N, BLOCK_N)"),),
        status="not_written",
        causes=("first_tile_only",),
    ),
    KnownMistake(
        ("5",),
        "only whole chunks",
        "row_scale",
        (("range(0, n_cols, BLOCK_N)", "range(0, n_cols // BLOCK_N * BLOCK_N, BLOCK_N)"),),
        status="not_written",
        causes=("tail_dropped",),
        line="// BLOCK_N",
    ),
    KnownMistake(
        ("38",),
        "loop-carried variable changes type",
        "row_scale",
        (
            ("    scale = tl.load(scale_ptr + row)\n", "    scale = tl.load(scale_ptr + row)\n    seen = 0\n"),
            ("x * scale, mask=mask)\n", "x * scale, mask=mask)\n        seen = seen + 1.0\n"),
        ),
        status="compile_error",
        causes=("loop_changes_type",),
        line="seen + 1.0",
    ),
)
