"""program_ids, tile_copy, grid_2d, vector_add, affine_relu."""

from __future__ import annotations

from tests.grader.mistakes import KnownMistake

BUILT_WITH_EXEC = '''import torch
import triton
import triton.language as tl

SOURCE = """
@triton.jit
def {name}({arguments}):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    {body}
"""
exec(SOURCE)

'''

ADD_BY_EXEC = (
    BUILT_WITH_EXEC.format(
        name="add_kernel",
        arguments="x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr",
        body="tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)",
    )
    + """
def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out
"""
)

COPY_BY_EXEC = (
    BUILT_WITH_EXEC.format(
        name="copy_kernel",
        arguments="x_ptr, out_ptr, n, BLOCK: tl.constexpr",
        body="tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)",
    )
    + """
def tile_copy(x, block):
    out = torch.empty_like(x)
    n = x.numel()
    copy_kernel[(triton.cdiv(n, block),)](x, out, n, BLOCK=block)
    return out
"""
)

ADD_LOAD_X = "    x = tl.load(x_ptr + offs, mask=mask)\n"


def in_add(code: str) -> tuple[tuple[str, str], ...]:
    """Lines of vector_add's kernel, put behind the load of x."""
    return ((ADD_LOAD_X, ADD_LOAD_X + code),)


MISTAKES: tuple[KnownMistake, ...] = (
    # -- program_ids
    KnownMistake(
        (),
        "store without a mask",
        "program_ids",
        (("tl.store(out_ptr + offs, x + pid, mask=mask)", "tl.store(out_ptr + offs, x + pid)"),),
        status="out_of_bounds",
        causes=("missing_store_mask",),
        line="tl.store(out_ptr + offs, x + pid)",
    ),
    KnownMistake(
        ("36",),
        "tile size is a plain global",
        "program_ids",
        (
            ("@triton.jit\n", "BLOCK = 64\n\n\n@triton.jit\n"),
            (", n, BLOCK: tl.constexpr", ", n"),
            (", n, BLOCK=64", ", n"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="pid * BLOCK",
    ),
    KnownMistake(
        ("61",),
        "device is hard-coded",
        "program_ids",
        (("torch.empty_like(x)", 'torch.empty_like(x, device="cuda")'),),
        status="runtime_error",
        causes=("device_hard_coded",),
        line='device="cuda"',
        right_on_cuda=True,
    ),
    KnownMistake(
        ("53",),
        "stored, then loaded by other lanes",
        "program_ids",
        (
            (
                "    tl.store(out_ptr + offs, x + pid, mask=mask)\n",
                "    tl.store(out_ptr + offs, x, mask=mask)\n"
                "    back = pid * BLOCK + BLOCK - 1 - tl.arange(0, BLOCK)\n"
                "    again = tl.load(out_ptr + back, mask=back < n)\n"
                "    tl.store(out_ptr + back, again + pid, mask=back < n)\n",
            ),
        ),
        status="nondeterministic",
        causes=("missing_barrier",),
        line="again = tl.load(",
    ),
    # -- tile_copy
    KnownMistake(
        ("57",),
        "grid is an int",
        "tile_copy",
        (("grid = (triton.cdiv(n, block),)", "grid = triton.cdiv(n, block)"),),
        status="runtime_error",
        causes=("grid_not_a_tuple",),
        line="copy_kernel[grid]",
    ),
    KnownMistake(
        ("5",),
        "only whole tiles get a program",
        "tile_copy",
        (("triton.cdiv(n, block)", "n // block"),),
        status="not_written",
        causes=("floor_grid",),
        line="n // block",
    ),
    KnownMistake(
        ("10",),
        "kernel never launched, output from empty",
        "tile_copy",
        (("    copy_kernel[grid](x, out, n, BLOCK=block)\n", ""),),
        status="not_written",
        causes=("nothing_written",),
    ),
    KnownMistake(
        ("43",),
        "kernel built with exec",
        "tile_copy",
        source=COPY_BY_EXEC,
        status="compile_error",
        causes=("kernel_without_source",),
        line="exec(SOURCE)",
    ),
    KnownMistake(
        ("D axis",),
        "program id of a fourth axis",
        "tile_copy",
        (("tl.program_id(0)", "tl.program_id(3)"),),
        status="compile_error",
        causes=("no_such_axis",),
        line="tl.program_id(3)",
    ),
    # -- grid_2d
    KnownMistake(
        ("20",),
        "grid axes exchanged",
        "grid_2d",
        (("(M, triton.cdiv(N, 64))", "(triton.cdiv(N, 64), M)"),),
        status="not_written",
        causes=("swapped_axes",),
        line="grid = ",
    ),
    KnownMistake(
        ("20",),
        "stored column by column",
        "grid_2d",
        (("row * N + offs", "row + offs * tl.num_programs(0)"),),
        causes=("swapped_axes",),
        line="tl.store(",
    ),
    KnownMistake(
        ("6",),
        "columns past BLOCK ignored",
        "grid_2d",
        (("tl.program_id(1) * BLOCK + ", ""), ("(M, triton.cdiv(N, 64))", "(M,)")),
        status="not_written",
        causes=("first_tile_only",),
    ),
    KnownMistake(
        ("57",),
        "grid callable returns an int",
        "grid_2d",
        (("grid = (M, triton.cdiv(N, 64))", "grid = lambda meta: M * triton.cdiv(N, 64)"),),
        status="runtime_error",
        causes=("grid_not_a_tuple",),
        line="outer_kernel[grid]",
    ),
    KnownMistake(
        (),
        "store without a mask",
        "grid_2d",
        (("r * c, mask=mask)", "r * c)"),),
        status="out_of_bounds",
        causes=("missing_store_mask",),
        line="tl.store(",
    ),
    # -- vector_add
    KnownMistake(
        (),
        "store without a mask",
        "vector_add",
        (("x + y, mask=mask)", "x + y)"),),
        status="out_of_bounds",
        causes=("missing_store_mask",),
        line="tl.store(",
    ),
    KnownMistake(
        (),
        "load without a mask",
        "vector_add",
        (("tl.load(y_ptr + offs, mask=mask)", "tl.load(y_ptr + offs)"),),
        status="out_of_bounds",
        causes=("missing_load_mask",),
        line="tl.load(y_ptr + offs)",
    ),
    KnownMistake(
        (),
        "mask one lane too wide",
        "vector_add",
        (("offs < n", "offs <= n"),),
        status="out_of_bounds",
        causes=("out_of_range_load",),
        line="tl.load(x_ptr",
    ),
    KnownMistake(
        ("6",),
        "elements past the first tile ignored",
        "vector_add",
        (('(triton.cdiv(n, meta["BLOCK"]),)', "(1,)"),),
        status="not_written",
        causes=("first_tile_only",),
    ),
    KnownMistake(
        ("10",),
        "kernel never launched, output from empty",
        "vector_add",
        (("    add_kernel[grid](x, y, out, n, BLOCK=1024)\n", ""),),
        status="not_written",
        causes=("nothing_written",),
    ),
    KnownMistake(
        ("57",),
        "grid callable returns an int",
        "vector_add",
        (('(triton.cdiv(n, meta["BLOCK"]),)', 'triton.cdiv(n, meta["BLOCK"])'),),
        status="runtime_error",
        causes=("grid_not_a_tuple",),
        line="add_kernel[grid]",
    ),
    KnownMistake(
        ("35",),
        "tile of 1000",
        "vector_add",
        (("BLOCK=1024", "BLOCK=1000"),),
        status="compile_error",
        causes=("not_a_power_of_two",),
        line="tl.arange(0, BLOCK)",
    ),
    KnownMistake(
        ("35",),
        "arange over a runtime value",
        "vector_add",
        (("tl.arange(0, BLOCK)", "tl.arange(0, n)"),),
        status="compile_error",
        causes=("arange_of_runtime_value",),
        line="tl.arange(0, n)",
    ),
    KnownMistake(
        ("36",),
        "plain global in the kernel",
        "vector_add",
        (
            ("@triton.jit\n", "SCALE = 1.0\n\n\n@triton.jit\n"),
            ("x + y, mask", "x * SCALE + y, mask"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="x * SCALE + y",
    ),
    KnownMistake(
        ("38",),
        "loop-carried variable changes type",
        "vector_add",
        in_add("    count = 0\n    for i in range(0, n, BLOCK):\n        count = count * 1.0\n"),
        status="compile_error",
        causes=("loop_changes_type",),
        line="count * 1.0",
    ),
    KnownMistake(
        ("43",),
        "kernel built with exec",
        "vector_add",
        source=ADD_BY_EXEC,
        status="compile_error",
        causes=("kernel_without_source",),
        line="exec(SOURCE)",
    ),
    KnownMistake(
        ("18",),
        "tile mask with a scalar pointer",
        "vector_add",
        (("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr, mask=mask)"),),
        status="compile_error",
        causes=("mask_wider_than_pointer",),
        line="tl.load(x_ptr, mask=mask)",
    ),
    KnownMistake(
        ("D break",),
        "break in a kernel",
        "vector_add",
        in_add("    for i in range(3):\n        if i == 1:\n            break\n"),
        status="compile_error",
        causes=("unsupported_syntax",),
        line="break",
    ),
    KnownMistake(
        ("D math",),
        "math.sqrt of a tensor",
        "vector_add",
        (
            ("import torch\n", "import math\n\nimport torch\n"),
            ("x + y, mask", "x + y + 0.0 * math.sqrt(tl.program_id(0)), mask"),
        ),
        status="compile_error",
        causes=("python_function_of_a_tensor",),
        line="math.sqrt",
    ),
    KnownMistake(
        ("D branch",),
        "variable defined in one branch",
        "vector_add",
        in_add("    if tl.program_id(0) == 0:\n        extra = 0.0\n    x = x + extra * 0.0 if n < 0 else x\n"),
        status="compile_error",
        causes=("defined_in_one_branch", "undefined_name"),
    ),
    KnownMistake(
        ("D warps",),
        "num_warps=3",
        "vector_add",
        (("BLOCK=1024)", "BLOCK=1024, num_warps=3)"),),
        status="compile_error",
        causes=("warps_not_a_power_of_two",),
    ),
    KnownMistake(
        ("D size",),
        "tile over 2^20 elements",
        "vector_add",
        (("BLOCK=1024", "BLOCK=2097152"),),
        status="compile_error",
        causes=("tile_too_large",),
        line="tl.arange(0, BLOCK)",
    ),
    # -- affine_relu
    KnownMistake(
        ("42",),
        "if on a tile",
        "affine_relu",
        (("    y = tl.where(y < 0, 0.0, y)\n", "    if scale != 0.0 and y < 0:\n        y = y * 0.0\n"),),
        status="compile_error",
        causes=("branch_on_tensor",),
        line="if scale != 0.0 and y < 0",
    ),
    KnownMistake(
        ("27",),
        "cast to float16 before the activation",
        "affine_relu",
        (("y = x * scale + bias", "y = (x * scale + bias).to(tl.float16)"),),
        causes=("low_precision",),
    ),
    KnownMistake(
        ("36",),
        "plain global in the kernel",
        "affine_relu",
        (
            ("@triton.jit\n", "ZERO = 0.0\n\n\n@triton.jit\n"),
            ("tl.where(y < 0, 0.0, y)", "tl.where(y < ZERO, ZERO, y)"),
        ),
        status="compile_error",
        causes=("plain_global",),
        line="ZERO",
    ),
    KnownMistake(
        (),
        "load without a mask",
        "affine_relu",
        (("tl.load(x_ptr + offs, mask=mask)", "tl.load(x_ptr + offs)"),),
        status="out_of_bounds",
        causes=("missing_load_mask",),
        line="tl.load(x_ptr + offs)",
    ),
)
