"""What module 2 claims about caches, launches, random numbers and machine instructions, shown by running or compiling."""

import importlib.metadata

from tests.evidence.run import ROOT, compiled, interpreted
from tests.evidence.test_m02 import ADD, ATTEMPT, COPY

TRITON = tuple(int(part) for part in importlib.metadata.version("triton").split(".")[:2])
SOLUTIONS = ROOT / "solutions" / "02-first-kernel"


def test_what_is_in_the_cache_key():
    out = compiled("""
import os, runpy
from pathlib import Path

BASE = '''import triton, triton.language as tl

@triton.jit
def double(x):
    return x * 2

@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, double(tl.load(x_ptr)))
'''

def key(source, name="a.py"):
    path = Path(os.environ["TRITON_CACHE_DIR"]) / name
    path.write_text(source)
    return runpy.run_path(str(path))["kernel"].cache_key

print([key(source) != key(BASE) for source in (
    BASE.replace("x * 2", "x + x"),                      # a function that it calls
    BASE.replace("    tl.store", "    # note\\\\n    tl.store").replace("\\\\n", chr(10)),
    "import os" + chr(10) + BASE,                         # one line further down
    BASE + "OTHER = 3" + chr(10),                         # a line below it
)], key(BASE) != key(BASE, "b.py"))
""")
    assert out.strip() == "[True, True, True, False] False"


def test_the_disk_cache_holds_every_form():
    out = compiled(
        COPY
        + """
import os
from pathlib import Path
x = torch.zeros(64)
kernels = [copy_kernel[(1,)](x, x, 64, BLOCK=block) for block in (64, 128)]
folders = [p for p in Path(os.environ["TRITON_CACHE_DIR"]).iterdir() if p.is_dir()]
print(len(folders))
print(*sorted(p.suffix for p in folders[0].iterdir() if not p.name.startswith("__grp__")))
"""
    )
    count, suffixes = out.strip().splitlines()
    assert count == "2"
    assert suffixes.split() == [".cubin", ".json", ".llir", ".ptx", ".source", ".ttgir", ".ttir"]


def test_specialisation_can_be_switched_off():
    out = compiled("""
@triton.jit(do_not_specialize=["n"])
def plain(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)

@triton.jit
def special(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)

x = torch.zeros(1024)
for kernel in (special, plain):
    found = [kernel[(1,)](x, n, BLOCK=1024) for n in (1001, 1024, 1)]
    print(len(set(map(id, found))), "ld.global.v4" in found[1].asm["ptx"])
""")
    assert out.splitlines() == ["3 True", "1 False"]


def test_what_a_python_value_becomes():
    out = compiled("""
@triton.jit
def kernel(x_ptr, v):
    tl.store(x_ptr, 1.0)

x = torch.zeros(8)
print(*(kernel[(1,)](x, v).src.signature["v"] for v in (7, -5, 2**31 - 1, 2**31, 0.5, True, 1, None)))
print(kernel[(1,)](x, 2) is kernel[(1,)](x, 3), kernel[(1,)](x.half(), 2).src.signature["x_ptr"])
""")
    assert out.splitlines() == ["i32 i32 i32 i64 fp32 u1 constexpr constexpr", "True *fp16"]


def test_a_stride_of_one_is_a_constant():
    out = compiled(
        ATTEMPT
        + """
def strided(x_ptr, stride, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs * stride, mask=offs < n)
    tl.store(x_ptr + offs, x + 1, mask=offs < n)

special, plain = triton.jit(strided), triton.jit(strided, do_not_specialize=["stride"])
x = torch.zeros(4096)
for kernel, stride in ((special, 1), (special, 2), (plain, 1)):
    print("ld.global.v4" in kernel[(1,)](x, stride, 1024, BLOCK=1024).asm["ptx"])
print(attempt(lambda: special[(1,)](x, 0.5, 1024, BLOCK=1024)) != "accepted")
"""
    )
    assert out.split() == ["True", "False", "False", "True"]


def test_none_removes_code():
    source = """
@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    y = tl.load(x_ptr + offs, mask=mask)
    if bias_ptr is not None:
        y += tl.load(bias_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, y, mask=mask)

x, out = torch.ones(8), torch.zeros(8)
"""
    loads = 'print([kernel[(1,)](x, b, out, 8, BLOCK=8).asm["ttir"].count("tt.load ") for b in (x, None)])'
    assert compiled(source + loads).strip() == "[2, 1]"
    values = "for b in (x, None):\n    kernel[(1,)](x, b, out, 8, BLOCK=8)\n    print(float(out[0]))"
    assert interpreted(source + values).split() == ["2.0", "1.0"]


def test_warmup_compiles_ahead_of_the_launch():
    out = compiled(
        COPY
        + """
from triton import knobs
count = []
knobs.compilation.listener = lambda **event: count.append(event["cache_hit"])
copy_kernel.warmup(torch.float32, torch.float32, 1024, BLOCK=1024, grid=(1,))
before = len(count)
x = torch.zeros(2048)
copy_kernel[(1,)](x, x, 2048, BLOCK=1024)
after = len(count)
copy_kernel[(1,)](x, x, 1001, BLOCK=1024)
print(before, after, len(count))
"""
    )
    assert out.split() == ["1", "1", "2"]  # 2048 is of the same class as 1024; 1001 is not


def test_random_numbers_follow_from_seed_and_offset():
    out = interpreted("""
@triton.jit
def kernel(out_ptr, four_ptr, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.rand(seed, offs))
    a, b, c, d = tl.rand4x(seed, offs)
    tl.store(four_ptr + offs, a)

def draw(seed, block):
    out, four = torch.empty(256), torch.empty(256)
    kernel[(256 // block,)](out, four, seed, BLOCK=block)
    return out, four

first, four = draw(1, 256)
print(torch.equal(first, draw(1, 256)[0]), torch.equal(first, draw(1, 32)[0]), torch.equal(first, four))
print(torch.equal(first, draw(2, 256)[0]), bool((first >= 0).all() and (first < 1).all()))
print(abs(float(first.mean()) - 0.5) < 0.1, len(set(first.tolist())) > 250)
""")
    assert out.splitlines() == ["True True True", "False True", "True True"]


def test_machine_instructions_an_element():
    """Triton 3.7.1 for sm_90: 6 and 22 an element; tl.rand 53 a number, tl.rand4x 22."""
    out = compiled(f"""
import os, re, runpy
from pathlib import Path
from grader.offline import sass
cubin = Path(os.environ["TRITON_CACHE_DIR"]) / "kernel.cubin"

def count(kernel, *args, elements=8, **options):
    cubin.write_bytes(kernel[(1,)](*args, BLOCK=1024, **options).asm["cubin"])
    names = re.findall(r"/\\*[0-9a-f]{{4}}\\*/\\s+(?:@!?U?P\\d+ )?([A-Z0-9]+)", sass(cubin))
    return len([name for name in names if name not in ("NOP", "BRA")]) / elements

@triton.jit
def one(out_ptr, n, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.rand(seed, offs), mask=offs < n)

@triton.jit
def four(out_ptr, n, seed, BLOCK: tl.constexpr):
    pid, lane = tl.program_id(0), tl.arange(0, BLOCK)
    a, b, c, d = tl.rand4x(seed, pid * BLOCK + lane)
    base = pid * 4 * BLOCK + lane
    tl.store(out_ptr + base, a, mask=base < n)
    tl.store(out_ptr + base + BLOCK, b, mask=base + BLOCK < n)
    tl.store(out_ptr + base + 2 * BLOCK, c, mask=base + 2 * BLOCK < n)
    tl.store(out_ptr + base + 3 * BLOCK, d, mask=base + 3 * BLOCK < n)

def kernel(slug, name):
    return runpy.run_path({str(SOLUTIONS)!r} + "/" + slug + ".py")[name]

x, half = torch.zeros(4096), torch.zeros(4096, dtype=torch.bfloat16)
print(count(kernel("affine_relu", "affine_relu_kernel"), x, x, 0.5, 1.0, 4096),
      count(kernel("swiglu", "swiglu_kernel"), half, half, 4096),
      count(one, x, 4096, 1), count(four, x, 4096, 1, elements=32))
""")
    affine, swiglu, rand, rand4x = map(float, out.split())
    assert 5 < affine < 8 and 18 < swiglu < 26
    assert 48 < rand < 58 and 18 < rand4x < 26
    assert 2 < rand / rand4x < 3


def test_registers_by_alignment_and_warps():
    out = compiled(
        ADD
        + """
import os, re, subprocess
from pathlib import Path
from triton import knobs
cubin = Path(os.environ["TRITON_CACHE_DIR"]) / "kernel.cubin"
x = torch.zeros(4096)
for n, warps in ((4096, 4), (4095, 4), (4095, 16)):
    cubin.write_bytes(add_kernel[(1,)](x, x, x, n, BLOCK=4096, num_warps=warps).asm["cubin"])
    usage = subprocess.run([knobs.nvidia.cuobjdump.path, "-res-usage", str(cubin)], capture_output=True, text=True)
    print(re.search(r"REG:(\\d+)", usage.stdout).group(1))
"""
    )
    aligned, other, sixteen_warps = map(int, out.split())
    assert sixteen_warps < aligned < other
    if TRITON == (3, 7):
        assert (aligned, other, sixteen_warps) == (54, 90, 32)


def test_a_string_is_no_condition():
    source = (
        ATTEMPT
        + """
@triton.jit
def kernel(x_ptr, MODE: tl.constexpr, COMPARE: tl.constexpr):
    if MODE == "tanh" if COMPARE else MODE:
        tl.store(x_ptr, 1.0)
    else:
        tl.store(x_ptr, 2.0)

for compare in (False, True):
    x = torch.zeros(1)
    print(attempt(lambda: kernel[(1,)](x, MODE="none", COMPARE=compare)).split(":")[0], float(x))
"""
    )
    string, comparison = (line.split()[0] for line in compiled(source).splitlines())
    assert string != "accepted" and comparison == "accepted"
    assert interpreted(source).splitlines() == ["accepted 1.0", "accepted 2.0"]


def test_a_launch_goes_to_the_current_device():
    """Whatever its arguments say; and the current device is the one that PyTorch calls so."""
    source = (
        COPY
        + """
from triton.backends.driver import GPUDriver
from triton.runtime import driver

GPUDriver.__abstractmethods__ = frozenset()
print(GPUDriver().get_current_device is torch.cuda.current_device)

class OnTheSecondGPU:
    dtype, device = torch.float32, torch.device("cuda", 1)
    data_ptr = lambda self: 4096

x = OnTheSecondGPU()
for current in (0, 1):
    driver.active.get_current_device = lambda: current
    copy_kernel[(1,)](x, x, 1000, BLOCK=1024)
    print(sorted(copy_kernel.device_caches))
"""
    )
    assert compiled(source).splitlines() == ["True", "[0]", "[0, 1]"]


def test_device_of_does_nothing_for_a_tensor_on_the_cpu():
    source = (
        ADD
        + ATTEMPT
        + """
def add_inside(guard, x):
    with guard(x):
        out = add(x, x)
    torch.testing.assert_close(out, 2 * x)

x = torch.arange(1000.0)
for guard in (torch.cuda.device_of, lambda x: torch.cuda.device(x.device)):
    print(attempt(lambda: add_inside(guard, x)))
"""
    )
    refused = "ValueError: Expected a cuda device, but got: cpu"
    assert interpreted(source).splitlines() == ["accepted", refused]
