"""What module 1 claims about the machine under the model and about its bug items, shown by running or compiling."""

import importlib.metadata

from tests.evidence.run import compiled, interpreted
from tests.evidence.test_m01 import ADD, ATTEMPT, add_on

TRITON = tuple(int(part) for part in importlib.metadata.version("triton").split(".")[:2])

ROW_SUM = """
@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * n + cols, mask=cols < n, other=0.0)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))
"""


def test_a_grid_of_one_has_only_program_0():
    out = interpreted("""
@triton.jit
def kernel(out_ptr):
    tl.atomic_add(out_ptr + tl.program_id(0), 1)

seen = torch.zeros(4, dtype=torch.int32)
for pid in range(3):
    kernel[(1,)](seen)
print(seen.tolist())
""")
    assert out.strip() == "[3, 0, 0, 0]"


def test_a_store_converts_to_the_dtype_of_its_pointer():
    out = interpreted("""
@triton.jit
def copy_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.load(x_ptr))

x = torch.tensor([2**24 + 1])
wide, narrow = torch.empty(1, dtype=torch.int64), torch.empty(x.shape)
copy_kernel[(1,)](x, wide)
copy_kernel[(1,)](x, narrow)
print(narrow.dtype, int(wide), int(narrow))
""")
    assert out.split() == ["torch.float32", "16777217", "16777216"]


def test_a_flat_index_ignores_the_strides_of_a_view():
    out = interpreted("""
@triton.jit
def iota(out_ptr, n_cols, stride_m, stride_n, FLAT: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    index = row * n_cols + cols
    offset = index if FLAT else row * stride_m + cols * stride_n
    tl.store(out_ptr + offset, index, mask=cols < n_cols)

def right(out, flat):
    iota[(out.shape[0],)](out, out.shape[1], *out.stride(), FLAT=flat, BLOCK=8)
    return torch.equal(out, torch.arange(out.numel()).reshape(out.shape).int())

views = lambda: (torch.zeros(3, 7).int(), torch.zeros(7, 3).int().t(), torch.zeros(3, 21).int()[:, ::3])
print([right(view, True) for view in views()], [right(view, False) for view in views()])
""")
    assert out.strip() == "[True, False, False] [True, True, True]"


def test_if_needs_one_value():
    source = (
        ATTEMPT
        + """
@triton.jit
def on_a_tile(x_ptr, out_ptr):
    offs = tl.arange(0, 4)
    if tl.load(x_ptr + offs) != 0:
        tl.store(out_ptr + offs, 1.0)

@triton.jit
def on_a_number(x_ptr, out_ptr):
    if tl.load(x_ptr) != 0:
        tl.store(out_ptr + tl.arange(0, 4), 1.0)

x, out = torch.tensor([0.0, 0.0, 1.0, 0.0]), torch.zeros(4)
for kernel in (on_a_tile, on_a_number):
    print(attempt(lambda: kernel[(1,)](x, out)).replace("\\n", " "))
print(int(out.sum()))
"""
    )
    tile, number, written = interpreted(source).strip().splitlines()
    assert (tile, number, written) == ("accepted", "accepted", "4")  # one flag of four set all four
    tile, number, _ = compiled(source).strip().splitlines()
    assert "Boolean value of Tensor with more than one value is ambiguous" in tile
    assert number == "accepted"


def test_where_chooses_values_and_a_mask_chooses_stores():
    out = interpreted("""
@triton.jit
def kernel(out_ptr, MASK: tl.constexpr):
    offs = tl.arange(0, 4)
    chosen = offs >= 2
    if MASK:
        tl.store(out_ptr + offs, 5.0, mask=chosen)
    else:
        tl.store(out_ptr + offs, tl.where(chosen, 5.0, 0.0))

for mask in (False, True):
    out = torch.ones(4)
    kernel[(1,)](out, MASK=mask)
    print(out.tolist())
""")
    assert out.splitlines() == ["[0.0, 0.0, 5.0, 5.0]", "[1.0, 1.0, 5.0, 5.0]"]


def test_where_and_masks_are_no_branches():
    out = compiled("""
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(x_ptr + offs, tl.where(x > 0, tl.exp(x), 0.0), mask=offs < n)

@triton.jit
def branches(x_ptr, n):
    if n > 8:
        tl.store(x_ptr, 1.0)

x = torch.zeros(1024)
ptx = kernel[(1,)](x, 1001, BLOCK=1024).asm["ptx"]
print(ptx.count("bra"), ptx.count("ex2.approx"), ptx.count("selp.f32") + ptx.count("selp.b32"))
print("scf.if" in branches[(1,)](x, 9).asm["ttir"] or "cf.cond_br" in branches[(1,)](x, 9).asm["ttir"])
""")
    branches, exponentials, choices, number_branches = out.split()
    assert (branches, exponentials, number_branches) == ("0", "8", "True")  # 8 elements a thread, all computed
    assert int(choices) >= 8


def test_loads_and_shared_memory_by_dtype_and_warps():
    out = compiled(
        ADD
        + """
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))

for x in (torch.zeros(1024), torch.zeros(1024).half()):
    ptx = add_kernel[(1,)](x, x, x, 1024, BLOCK=1024).asm["ptx"]
    print(ptx.count("ld.global"), ptx.count("ld.global.v4.b32"))
x = torch.zeros(1024)
for warps in (1, 4, 16):
    kernel = total[(1,)](x, x, BLOCK=1024, num_warps=warps)
    print(kernel.metadata.shared, "bar.sync" in kernel.asm["ptx"])
"""
    )
    assert out.splitlines() == ["4 4", "2 2", "0 False", "16 True", "64 True"]


def test_row_sum_without_threads():
    out = interpreted(
        ROW_SUM
        + """
x, out = torch.randn(3, 1000), torch.empty(3)
row_sum_kernel[(3,)](x, out, 1000, BLOCK=256)
print(torch.allclose(out, x.sum(1), atol=1e-4))
"""
    )
    assert out.split() == ["True"]
    out = compiled(
        ROW_SUM
        + """
x = torch.zeros(4096)
kernel = row_sum_kernel[(3,)](x, x, 1000, BLOCK=1024)
print(kernel.metadata.shared, "shfl.sync" in kernel.asm["ptx"], "bar.sync" in kernel.asm["ptx"])
"""
    )
    assert out.split() == ["16", "True", "True"]


def test_what_the_language_has_no_word_for():
    out = interpreted("""
words = ("shared", "thread", "malloc", "alloc", "grid_sync", "warp_id", "lane")
print([name for name in dir(tl) if any(word in name.lower() for word in words)])
print([name for name in dir(tl) if "barrier" in name])
print(all(hasattr(tl, name) for name in ("atomic_add", "atomic_max", "atomic_cas", "inline_asm_elementwise",
                                         "associative_scan", "device_print", "device_assert")))
""")
    words, barriers, others = out.strip().splitlines()
    assert (words, barriers, others) == ("[]", "['debug_barrier']", "True")


def test_llvm_ir_is_for_one_thread():
    kernel = add_on("sm_90")
    llir = kernel["aligned"]["llir"]
    assert "sreg.ctaid.x" in llir and "sreg.tid.x" in llir
    assert llir.count("fadd float") == 8  # 1024 elements, 128 threads
    assert llir.count("icmp slt i32") == 2  # one comparison for four neighbours
    assert kernel["unaligned"]["llir"].count("icmp slt i32") == 8
