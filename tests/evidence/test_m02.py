"""What module 2 claims about kernels, launches and measurements, shown by running or compiling it."""

import importlib.metadata

from tests.evidence.run import compiled, interpreted

TRITON = tuple(int(part) for part in importlib.metadata.version("triton").split(".")[:2])

ADD = """
@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)

def add(x, y):
    out = torch.empty_like(x)
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)
    add_kernel[grid](x, y, out, n, BLOCK=1024)
    return out
"""

COPY = """
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)
"""

ATTEMPT = """
def attempt(call):
    try:
        call()
        return "accepted"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""

AFFINE = """
@triton.jit
def affine_relu_kernel(x_ptr, out_ptr, scale, bias, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(x_ptr + offs, mask=mask) * scale + bias
    tl.store(out_ptr + offs, tl.where(y < 0, 0.0, y), mask=mask)
"""


def test_python_versions_of_the_wheels():
    required = importlib.metadata.metadata("triton")["Requires-Python"].replace(" ", "").split(",")
    expected = {">=3.10", "<3.15"} if TRITON < (3, 9) else {">=3.11", "<3.16"}
    assert set(required) == expected


def test_interpreter_needs_numpy():
    out = interpreted("import triton.runtime.interpreter as i\nprint(i.np.__name__)")
    assert out.split() == ["numpy"]
    requirements = importlib.metadata.requires("triton") or []
    assert not [line for line in requirements if line.startswith("numpy") and "extra" not in line]


def test_the_interpreter_must_be_chosen_before_triton_is_imported():
    source = (
        ATTEMPT
        + """
import os
os.environ["TRITON_INTERPRET"] = "1"

@triton.jit
def total(x_ptr, out_ptr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 8)), axis=0))

print(attempt(lambda: total[(1,)](torch.ones(8), torch.zeros(1))).split(":")[0])
"""
    )
    assert interpreted(source).split() == ["accepted"]
    assert compiled(source).split() != ["accepted"]  # tl.sum was defined before


def test_vector_add_is_right_for_every_size():
    out = interpreted(
        ADD
        + """
for n in (1, 7, 1023, 1024, 1025, 4099):
    x, y = torch.randn(n), torch.randn(n)
    print(torch.equal(add(x, y), x + y))
"""
    )
    assert out.split() == ["True"] * 6


def test_the_kernel_follows_the_dtype_of_its_arguments():
    out = interpreted(
        ADD
        + """
for dtype in (torch.float32, torch.float16, torch.int64):
    x = torch.arange(100).to(dtype)
    print(torch.equal(add(x, x), x + x))
"""
    )
    assert out.split() == ["True"] * 3


def test_without_a_mask_the_last_program_leaves_the_array():
    out = interpreted("""
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))  # no mask on the store

pool = torch.full((1024,), 7.0)
out, neighbour = pool[:1000], pool[1000:]
copy_kernel[(1,)](torch.ones(1000), out, 1000, BLOCK=1024)
print(int((neighbour != 7.0).sum()))
""")
    assert out.split() == ["24"]


def test_rounding_the_grid_down_leaves_the_tail():
    out = interpreted(
        COPY
        + """
out = torch.full((1025,), -1.0)
copy_kernel[(1025 // 1024,)](torch.ones(1025), out, 1025, BLOCK=1024)
print(int((out == -1).sum()), int(out[1024]))
"""
    )
    assert out.split() == ["1", "-1"]


def test_what_compiles_anew_and_what_does_not():
    out = compiled(
        COPY
        + """
x, out = torch.zeros(4096), torch.zeros(4096)
kernels = {}
def which(*args, **options):
    return kernels.setdefault(id(copy_kernel[(1,)](*args, **options)), len(kernels))

plain = which(x, out, 1001, BLOCK=512)
print([which(x, out, n, BLOCK=1024) for n in (1000, 1001, 1002, 1024, 2048, 1)])
print(plain == which(x.view(64, 64), out, 1003, BLOCK=512))
print([which(*args, **options) == plain for args, options in (
    ((x[1:], out, 1001), {"BLOCK": 512}),
    ((x.half(), out, 1001), {"BLOCK": 512}),
    ((x, out, 1001), {"BLOCK": 512, "num_warps": 8}),
    ((x, out, 1001), {"BLOCK": 512, "num_stages": 2}),
    ((x, out, 2**31 + 1), {"BLOCK": 512}),
)])
"""
    )
    sizes, shape, others = out.strip().splitlines()
    assert sizes == "[1, 1, 1, 2, 2, 3]"
    assert shape == "True"
    assert others == str([False] * 5)


def test_arange_needs_compile_time_constants():
    source = (
        ATTEMPT
        + """
@triton.jit
def kernel(out_ptr, BLOCK):
    tl.store(out_ptr + tl.arange(0, BLOCK), 1.0)

print(attempt(lambda: kernel[(1,)](torch.zeros(8), 8)).replace("\\n", " "))
"""
    )
    for run in (compiled, interpreted):
        assert "arange's arguments must be of type tl.constexpr" in run(source)


def test_constexpr_may_be_positional():
    source = COPY + "x = torch.zeros(64)\ncopy_kernel[(1,)](torch.ones(64), x, 64, 64)\nprint(float(x.sum()))"
    assert interpreted(source).split() == ["64.0"]
    compiled(source)


def test_a_constexpr_decides_which_code_exists():
    out = compiled("""
@triton.jit
def kernel(x_ptr, n, RELU: tl.constexpr, STEPS: tl.constexpr, UNROLL: tl.constexpr):
    y = tl.load(x_ptr)
    if UNROLL:
        for i in tl.static_range(STEPS):
            y += i * y
    else:
        for i in range(STEPS):
            y += i * y
    if RELU:
        y = tl.maximum(y, 0.0)
    if n > 8:
        tl.store(x_ptr, y)

x = torch.zeros(8)
for relu, unroll in ((False, True), (True, False)):
    ttir = kernel[(1,)](x, 7, RELU=relu, STEPS=4, UNROLL=unroll).asm["ttir"]
    print("max" in ttir, "scf.for" in ttir, ttir.count("arith.addf"), "cf.cond_br" in ttir or "scf.if" in ttir)
""")
    assert [line.split() for line in out.strip().splitlines()] == [
        ["False", "False", "4", "True"],
        ["True", "True", "1", "True"],
    ]


def test_keyword_only_parameters():
    out = compiled(
        ATTEMPT
        + """
@triton.jit
def kernel(x_ptr, *, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)

print(attempt(lambda: kernel[(1,)](torch.zeros(8), BLOCK=8)).split(":")[0])
"""
    )
    if TRITON >= (3, 9):
        assert out.split() == ["accepted"]
    elif TRITON <= (3, 7):
        assert out.split() == ["CompilationError"]


def test_grid_callable_sees_arguments_by_name():
    out = interpreted(
        COPY
        + """
seen = []
def grid(meta):
    seen.append(sorted(meta))
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)

out = torch.zeros(100)
copy_kernel[grid](torch.ones(100), out, 100, BLOCK=32, num_warps=8)
print(*seen[0], float(out.sum()))
"""
    )
    assert out.split() == ["BLOCK", "n", "out_ptr", "x_ptr", "100.0"]


def test_the_grid_must_be_a_tuple():
    source = (
        COPY
        + ATTEMPT
        + """
x = torch.zeros(8)
for grid in ((1,), (1), lambda meta: 1, [1]):
    print(attempt(lambda: copy_kernel[grid](x, x, 8, BLOCK=8)))
"""
    )
    fine, number, callable_number, a_list = interpreted(source).strip().splitlines()
    assert fine == "accepted"
    assert number == callable_number == "TypeError: object of type 'int' has no len()"
    assert a_list.startswith("TypeError")
    assert [line.split(":")[0] for line in compiled(source).splitlines()] == [
        "accepted",
        "TypeError",
        "TypeError",
        "accepted",
    ]


def test_nothing_runs_for_an_empty_grid():
    source = COPY + "x = torch.zeros(8)\ncopy_kernel[(0,)](torch.ones(8), x, 8, BLOCK=8)\nprint(float(x.sum()))"
    assert interpreted(source).split() == ["0.0"]


def test_registers_grow_with_the_tile():
    out = compiled(
        ADD
        + """
import re, subprocess, tempfile
from triton import knobs
x = torch.zeros(8)
for block in (1024, 4096, 32768):
    kernel = add_kernel[(1,)](x, x, x, 1001, BLOCK=block, num_warps=4)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        usage = subprocess.run([knobs.nvidia.cuobjdump.path, "-res-usage", file.name], capture_output=True, text=True)
    found = re.search(r"REG:(\\d+) STACK:(\\d+) SHARED:(\\d+)", usage.stdout)
    print(*found.groups())
"""
    )
    rows = [[int(number) for number in line.split()] for line in out.strip().splitlines()]
    registers = [row[0] for row in rows]
    assert registers[0] < 32 < registers[1] < registers[2] == 255
    if TRITON == (3, 7):
        assert registers == [26, 90, 255]
    assert [row[1] > 0 for row in rows] == [False, False, True]  # only the largest tile spills
    assert all(row[2] == 0 for row in rows)  # and none uses shared memory


def test_fused_kernel_loads_and_stores_once():
    out = compiled(
        AFFINE
        + """
x = torch.zeros(8)
ttir = affine_relu_kernel[(1,)](x, x, 0.5, 1.0, 8, BLOCK=1024).asm["ttir"]
print(ttir.count("tt.load "), ttir.count("tt.store "))
first = affine_relu_kernel[(1,)](x, x, 0.1, 1.0, 8, BLOCK=1024)
print(first is affine_relu_kernel[(1,)](x, x, 0.7, 1.0, 8, BLOCK=1024))
"""
    )
    assert out.split() == ["1", "1", "True"]


def test_multiply_and_add_become_one_instruction():
    out = compiled(
        AFFINE
        + """
x = torch.zeros(8)
ptx = affine_relu_kernel[(1,)](x, x, 0.5, 1.0, 8, BLOCK=1024).asm["ptx"]
print("fma.rn.f32" in ptx, "mul.f32" in ptx)
"""
    )
    assert out.split() == ["True", "False"]


def test_interpreter_is_wrong_for_bfloat16_arithmetic():
    out = interpreted(
        ADD
        + """
torch.manual_seed(0)
x, y = torch.randn(2048).bfloat16(), torch.randn(2048).bfloat16()
print(torch.equal(add(x, y), x + y), torch.equal(add(x.float(), y.float()).bfloat16(), x + y))
"""
    )
    assert out.split() == ["False", "True"]


def test_plain_globals_are_rejected_by_the_compiler_only():
    source = (
        ATTEMPT
        + """
N = 4
M = tl.constexpr(4)

@triton.jit
def plain(x_ptr):
    tl.store(x_ptr + tl.arange(0, N), 1.0)

@triton.jit
def wrapped(x_ptr):
    tl.store(x_ptr + tl.arange(0, M), 1.0)

for kernel in (plain, wrapped):
    print(attempt(lambda: kernel[(1,)](torch.zeros(8))).split(":")[0])
"""
    )
    assert interpreted(source).split() == ["accepted", "accepted"]
    assert compiled(source).split() == ["CompilationError", "accepted"]


def test_do_bench_defaults():
    """The defaults, and that the L2 cache is cleared before each call, are read off the function itself."""
    out = interpreted("""
import inspect
from triton.testing import do_bench, do_bench_cudagraph
parameters = inspect.signature(do_bench).parameters
print(parameters["warmup"].default, parameters["rep"].default, parameters["return_mode"].default)
print("clear_cache" in inspect.getsource(do_bench), "clear_cache" in inspect.getsource(do_bench_cudagraph))
print("Warmup time (in ms)" in do_bench.__doc__, "median" in do_bench.__doc__)
""")
    assert out.split() == ["25", "100", "mean", "True", "False", "True", "True"]
