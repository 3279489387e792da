"""What module 1 claims about the programming model, shown by running or compiling it."""

import functools
import importlib.metadata
import json

import torch
from torch.utils._python_dispatch import TorchDispatchMode

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
"""

ATTEMPT = """
def attempt(call):
    try:
        call()
        return "accepted"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
"""


@functools.cache
def add_on(target: str) -> dict:
    """Vector add with BLOCK = 1024, as compiled for `target`: aligned (n = 1024) and not known to be (n = 1001)."""
    source = (
        ADD
        + """
import json
x = torch.zeros(2048)
kernels = {n: add_kernel[(1,)](x, x, x, n, BLOCK=1024) for n in (1024, 1001)}
text = {n: {k: v for k, v in kernel.asm.items() if isinstance(v, str)} for n, kernel in kernels.items()}
print(json.dumps({"stages": list(kernels[1024].asm), "num_warps": kernels[1024].metadata.num_warps,
                  "aligned": text[1024], "unaligned": text[1001]}))
"""
    )
    return json.loads(compiled(source, target))


class Operations(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_eager_pytorch_runs_one_operation_after_another():
    x, y = torch.ones(8), torch.ones(8)
    with Operations() as seen:
        torch.relu(x * 0.5 + y)
    assert seen.names == ["mul", "add", "relu"]


def test_one_statement_works_on_a_whole_tile():
    out = interpreted("""
@triton.jit
def kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.static_assert(offs.shape[0] == BLOCK)
    tl.static_assert(offs.dtype == tl.int32)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) + tl.load(x_ptr + offs))

x, out = torch.arange(8.0), torch.empty(8)
kernel[(1,)](x, out, BLOCK=8)
print(torch.equal(out, 2 * x))
""")
    assert out.split() == ["True"]


def test_language_has_no_thread_index():
    out = interpreted("print([n for n in dir(tl) if 'thread' in n.lower() or n in ('lane_id', 'warp_id', 'tid')])")
    assert out.split() == ["[]"]


def test_a_kernel_needs_a_grid():
    out = compiled(ADD + ATTEMPT + "x = torch.zeros(8)\nprint(attempt(lambda: add_kernel(x, x, x, 8, BLOCK=8)))")
    assert out.startswith("RuntimeError")


def test_kernels_may_use_only_a_part_of_python():
    out = compiled(
        ATTEMPT
        + """
@triton.jit
def imports(x_ptr):
    import math
    tl.store(x_ptr, 1.0)

def plain(v):
    return v + 1

@triton.jit
def calls(x_ptr):
    tl.store(x_ptr, plain(1.0))

@triton.jit
def dictionaries(x_ptr):
    table = {"one": 1.0}
    tl.store(x_ptr, table["one"])

@triton.jit
def tries(x_ptr):
    try:
        tl.store(x_ptr, 1.0)
    finally:
        pass

@triton.jit
def loops(x_ptr, n):
    total = 0.0
    for i in range(n):
        total += 1.0
    while total > 3.0:
        total -= 1.0
    if n > 1:
        total += 1.0
    tl.store(x_ptr, total)

x = torch.zeros(8)
for kernel in (imports, calls, dictionaries, tries):
    print(attempt(lambda: kernel[(1,)](x)).split(":")[0])
print(attempt(lambda: loops[(1,)](x, 7)))
"""
    )
    *rejected, last = out.split()
    assert len(rejected) == 4 and "accepted" not in rejected
    assert last == "accepted"


def test_programs_cover_the_tail():
    out = interpreted("""
@triton.jit
def kernel(first_ptr, on_ptr, owner_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(first_ptr + pid, tl.min(offs, axis=0))
    tl.store(on_ptr + pid, tl.sum(mask.to(tl.int32), axis=0))
    tl.store(owner_ptr + offs, pid + tl.zeros((BLOCK,), tl.int32), mask=mask)

n = 18
programs = triton.cdiv(n, 8)
first, on = (torch.zeros(programs, dtype=torch.int32) for _ in range(2))
owner = torch.full((n,), -1, dtype=torch.int32)
kernel[(programs,)](first, on, owner, n, BLOCK=8)
print(programs, first.tolist(), on.tolist(), owner.tolist() == [i // 8 for i in range(n)], triton.cdiv(10_000, 1024))
""")
    assert out.strip() == "3 [0, 8, 16] [8, 8, 2] True 10"


def test_a_grid_has_at_most_three_axes():
    out = compiled(
        ATTEMPT
        + """
@triton.jit
def kernel(out_ptr, AXIS: tl.constexpr):
    tl.store(out_ptr, tl.program_id(AXIS))

x = torch.zeros(8, dtype=torch.int32)
for axis in range(4):
    print(attempt(lambda: kernel[(1, 1, 1)](x, AXIS=axis)).split(":")[0])
"""
    )
    assert out.split()[:3] == ["accepted"] * 3
    assert out.split()[3] == "CompilationError"


def test_overlapping_tiles_leave_a_gap():
    out = interpreted("""
@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)

for n in (17, 100):
    out = torch.full((n,), -1.0)
    copy_kernel[(triton.cdiv(n, 16),)](torch.ones(n), out, n, BLOCK=16)
    print(int((out == 1).sum()))
""")
    assert out.split() == ["17", "22"]


def test_threads_are_warp_size_times_num_warps():
    warp_size = {"sm_90": 32, "gfx1100": 32, "gfx942": 64}
    for target, size in warp_size.items():
        kernel = add_on(target)
        assert kernel["num_warps"] == 4
        assert f'"ttg.threads-per-warp" = {size}' in kernel["aligned"]["ttgir"]
    assert ".reqntid 128" in add_on("sm_90")["aligned"]["ptx"]


def test_alignment_decides_vector_loads():
    kernel = add_on("sm_90")
    assert kernel["aligned"]["ptx"].count("ld.global.v4") == 4  # x and y, twice four floats each
    assert "ld.global.v4" not in kernel["unaligned"]["ptx"]
    assert kernel["unaligned"]["ptx"].count("ld.global.b32") == 16


def test_shared_memory_and_barriers_come_by_themselves():
    out = compiled("""
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))

x = torch.zeros(1024)
kernel = total[(1,)](x, x, BLOCK=1024)
print(kernel.metadata.shared, *("bar.sync" in kernel.asm["ptx"], "shfl.sync" in kernel.asm["ptx"]))
""")
    assert out.split() == ["16", "True", "True"]


def test_dot_uses_tensor_cores():
    source = """
@triton.jit
def multiply(a_ptr, b_ptr, out_ptr, M: tl.constexpr):
    i, j = tl.arange(0, M)[:, None] * 64, tl.arange(0, 64)
    a, b = tl.load(a_ptr + i + j[None, :]), tl.load(b_ptr + j[:, None] * 64 + j[None, :])
    tl.store(out_ptr + i + j[None, :], tl.dot(a, b))

x = torch.zeros(4096)
for rows in (64, 32):
    ptx = multiply[(1,)](x.half(), x.half(), x, M=rows).asm["ptx"]
    print(*(name for name in ("wgmma", "tcgen05.mma", "mma.sync") if name in ptx))
"""
    assert compiled(source, "sm_80").split() == ["mma.sync", "mma.sync"]
    assert compiled(source, "sm_90").split() == ["wgmma", "mma.sync"]
    assert compiled(source, "sm_100").split() == ["tcgen05.mma", "mma.sync"]


def test_stages_from_python_to_machine_code():
    nvidia, amd = add_on("sm_90"), add_on("gfx942")
    assert [s for s in nvidia["stages"] if s != "source"] == ["ttir", "ttgir", "llir", "ptx", "cubin"]
    assert [s for s in amd["stages"] if s != "source"] == ["ttir", "ttgir", "llir", "amdgcn", "hsaco"]
    assert "tensor<1024xf32>" in nvidia["aligned"]["ttir"]
    assert "tensor<" not in nvidia["aligned"]["llir"]


def test_layouts_appear_in_ttgir():
    kernel = add_on("sm_90")["aligned"]
    assert "threadsPerWarp" not in kernel["ttir"]
    assert "#blocked" not in kernel["ttir"]
    assert "sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4]" in kernel["ttgir"]
    for operation in ("tt.get_program_id", "tt.make_range", "tt.load", "arith.addf", "tt.store"):
        assert operation in kernel["ttir"]
        assert operation in kernel["ttgir"]


def test_machine_code_of_vector_add():
    ptx = add_on("sm_90")["aligned"]["ptx"]
    for instruction in ("%ctaid.x", "%tid.x", "setp.lt.s32", "ld.global.v4.b32", "add.f32", "st.global.v4.b32"):
        assert instruction in ptx
    out = compiled(
        ADD
        + """
import subprocess, tempfile
from triton import knobs
x = torch.zeros(2048)
kernel = add_kernel[(1,)](x, x, x, 1024, BLOCK=1024)
with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
    file.write(kernel.asm["cubin"])
    file.flush()
    for what in ("-sass", "-res-usage"):
        print(subprocess.run([knobs.nvidia.cuobjdump.path, what, file.name], capture_output=True, text=True).stdout)
"""
    )
    for instruction in ("LDG.E.128", "FADD", "STG.E.128"):
        assert instruction in out
    if TRITON == (3, 7):
        assert "REG:26 " in out


def test_spills_show_in_machine_code_and_not_in_ptx():
    out = compiled(
        ADD
        + """
import subprocess, tempfile
from triton import knobs
x = torch.zeros(8)
for block in (1024, 32768):
    kernel = add_kernel[(1,)](x, x, x, 1001, BLOCK=block)
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        run = subprocess.run([knobs.nvidia.cuobjdump.path, "-sass", file.name], capture_output=True, text=True)
    print(".local" in kernel.asm["ptx"], "STL" in run.stdout and "LDL" in run.stdout)
"""
    )
    assert [line.split() for line in out.splitlines()] == [["False", "False"], ["False", "True"]]


def test_tile_sizes_are_powers_of_two_up_to_2_to_20():
    out = compiled(
        ADD
        + ATTEMPT
        + """
x = torch.zeros(8)
for block in (512, 500, 2**21):
    print(attempt(lambda: add_kernel[(1,)](x, x, x, 8, BLOCK=block)).replace("\\n", " "))
print(attempt(lambda: add_kernel[(1,)](x, x, x, 8, BLOCK=512, num_warps=3)))
"""
    )
    fine, odd, huge, warps = out.strip().splitlines()
    assert fine == "accepted"
    assert "power of 2" in odd
    assert "1048576" in huge
    assert "power of 2" in warps


def test_a_single_lane_cannot_be_picked():
    out = compiled(
        ATTEMPT
        + """
@triton.jit
def pick(x_ptr):
    tile = tl.load(x_ptr + tl.arange(0, 8))
    tl.store(x_ptr, tile[3])

@triton.jit
def gathers(x_ptr):
    i = tl.arange(0, 8)
    tl.store(x_ptr + i, tl.gather(tl.load(x_ptr + i), 7 - i, axis=0))

for kernel in (pick, gathers):
    print(attempt(lambda: kernel[(1,)](torch.zeros(8))).split(":")[0])
"""
    )
    assert out.split() == ["CompilationError", "accepted"]


def test_backends_in_the_wheel():
    out = interpreted("from triton.backends import backends\nprint(*sorted(backends))")
    assert out.split() == ["amd", "nvidia"]
