"""autotuned_add, accumulate_rows."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

MISTAKES: tuple[KnownMistake, ...] = (
    # -- autotuned_add
    KnownMistake(
        (),
        "grid counted for one configuration",
        "autotuned_add",
        (('meta["BLOCK"]', "4096"),),
        status="not_written",
        causes=("grid_ignores_config",),
        line="grid =",
    ),
    KnownMistake(
        ("57",),
        "grid callable returns an int",
        "autotuned_add",
        (('(triton.cdiv(n, meta["BLOCK"]),)', 'triton.cdiv(n, meta["BLOCK"])'),),
        status="runtime_error",
        causes=("grid_not_a_tuple",),
        line="add_kernel[grid]",
    ),
    KnownMistake(
        (),
        "tuned BLOCK named in the launch",
        "autotuned_add",
        (("(x, y, out, n)  # BLOCK", "(x, y, out, n, BLOCK=1024)  # BLOCK"),),
        status="runtime_error",
        causes=("tuned_argument_passed",),
        line="add_kernel[grid]",
    ),
    KnownMistake(
        ("35",),
        "a configuration that is no power of two",
        "autotuned_add",
        (('{"BLOCK": 1024}', '{"BLOCK": 1000}'),),
        status="compile_error",
        causes=("not_a_power_of_two",),
        line="tl.arange(0, BLOCK)",
    ),
    KnownMistake(
        (),
        "store without a mask",
        "autotuned_add",
        (("x + y, mask=mask)", "x + y)"),),
        status="out_of_bounds",
        causes=("missing_store_mask",),
        line="tl.store(",
    ),
    KnownMistake(
        ("D warps",),
        "a configuration with num_warps=3",
        "autotuned_add",
        (('triton.Config({"BLOCK": 1024}, num_warps=4)', 'triton.Config({"BLOCK": 1024}, num_warps=3)'),),
        status="compile_error",
        causes=("warps_not_a_power_of_two",),
    ),
    # -- accumulate_rows
    KnownMistake(
        ("47",),
        "no reset_to_zero",
        "accumulate_rows",
        (('    reset_to_zero=["out_ptr"],\n', ""),),
        causes=("missing_reset_to_zero",),
        line="@triton.autotune",
    ),
    KnownMistake(
        ("47",),
        "reset_to_zero in place of zeros",
        "accumulate_rows",
        (("torch.zeros(N,", "torch.empty(N,"),),
        status="not_written",
        causes=("wrong_on_second_call",),
        cuda_statuses=("wrong_answer",),  # a GPU's sum with the NaN of unwritten memory is another NaN
    ),
    KnownMistake(
        ("51",),
        "store in place of atomic_add",
        "accumulate_rows",
        (("tl.atomic_add(out_ptr + cols, partial", "tl.store(out_ptr + cols, partial"),),
        causes=("store_instead_of_add", "race_between_programs"),
        line="tl.store(",
    ),
    KnownMistake(
        ("20",),
        "rows and columns expanded the other way round",
        "accumulate_rows",
        (
            (
                "rows[:, None] * stride_m + cols[None, :] * stride_n",
                "rows[None, :] * stride_m + cols[:, None] * stride_n",
            ),
        ),
        status="compile_error",
        causes=("shapes_do_not_broadcast",),
        line="tl.load(",
    ),
    KnownMistake(
        ("51",),
        "load, add, store in place of atomic_add",
        "accumulate_rows",
        (
            (
                "tl.atomic_add(out_ptr + cols, partial, mask=cols < N)",
                "old = tl.load(out_ptr + cols, mask=cols < N, other=0.0)\n    tl.store(out_ptr + cols, old + partial, mask=cols < N)",
            ),
        ),
        status="nondeterministic",
        causes=("race_between_programs",),
        line="out_ptr + cols",
        cuda_statuses=("wrong_answer",),  # all may load before any stores: then one program's sum is left
        cuda_causes=("store_instead_of_add",),
    ),
    KnownMistake(
        ("51",),
        "the first program clears what all add to",
        "accumulate_rows",
        (
            ("torch.zeros(N,", "(torch.empty if x.numel() else torch.zeros)(N,"),
            (
                "    tl.atomic_add(",
                "    if tl.program_id(axis=0) == 0:\n        tl.store(out_ptr + cols, 0.0, mask=cols < N)\n    tl.atomic_add(",
            ),
        ),
        status="nondeterministic",
        causes=("race_between_programs", "depends_on_program_order"),
        line="tl.store(",
    ),
    KnownMistake(
        ("1",),
        "padding is 1",
        "accumulate_rows",
        (("other=0.0", "other=1.0"),),
        causes=("wrong_fill_for_sum",),
        line="other=1.0",
    ),
    KnownMistake(
        ("20",),
        "row and column expansion exchanged",
        "accumulate_rows",
        (
            (
                "rows[:, None] * stride_m + cols[None, :] * stride_n",
                "rows[:, None] * stride_n + cols[None, :] * stride_m",
            ),
        ),
        causes=("swapped_axes",),
        line="x_ptr + rows",
    ),
    KnownMistake(
        ("23",),
        "tile summed in float16",
        "accumulate_rows",
        (("tile.to(tl.float32)", "tile"),),
        causes=("accumulates_in_half",),
        line="tl.sum(",
    ),
    KnownMistake(
        ("13",),
        "row * N + column",
        "accumulate_rows",
        (("rows[:, None] * stride_m + cols[None, :] * stride_n", "rows[:, None] * N + cols[None, :]"),),
        causes=("assumes_contiguous",),
        line="rows[:, None] * N",
    ),
)
