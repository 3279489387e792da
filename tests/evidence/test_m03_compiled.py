"""What module 3 says about the code that loads, layouts, offsets, cache hints and descriptors become."""

from importlib.metadata import version

from tests.evidence.run import compiled, interpreted
from tests.evidence.test_m04 import PTXAS

COPY = """
import re
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
def accesses(kernel):
    found = {}
    for kind in ("ld", "st"):
        names = re.findall(kind + r"\\.global\\.(\\S+)", kernel.asm["ptx"])
        assert len(set(names)) == 1, names
        found[kind] = f"{len(names)} {names[0]}"
    return found["ld"], found["st"]
x, out = torch.zeros(1 << 16), torch.zeros(1 << 16)
def widths(x, n=4096, BLOCK=1024, num_warps=4):
    return accesses(copy[(4,)](x, out.to(x.dtype), n, BLOCK=BLOCK, num_warps=num_warps))
"""
TILE = """
import re
@triton.jit
def copy_tile(x_ptr, out_ptr, M, N, sxm, sxn, som, son, WIDE: tl.constexpr, BASE: tl.constexpr, B: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    if WIDE:
        pm, pn = pm.to(tl.int64), pn.to(tl.int64)
    if BASE:
        x_ptr += pm.to(tl.int64) * B * sxm + pn.to(tl.int64) * B * sxn
        out_ptr += pm.to(tl.int64) * B * som + pn.to(tl.int64) * B * son
        rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
        mask = (rows < M - pm * B) & (cols < N - pn * B)
    else:
        rows, cols = (pm * B + tl.arange(0, B))[:, None], (pn * B + tl.arange(0, B))[None, :]
        mask = (rows < M) & (cols < N)
    tile = tl.load(x_ptr + rows * sxm + cols * sxn, mask=mask)
    tl.store(out_ptr + rows * som + cols * son, tile, mask=mask)
def run(x, out, WIDE=False, BASE=False, grid=(2, 2), B=64):
    return copy_tile[grid](x, out, *x.shape, *x.stride(), *out.stride(), WIDE=WIDE, BASE=BASE, B=B)
"""
DESCRIPTOR = """
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def copy(x_desc, out_desc, BM: tl.constexpr, BN: tl.constexpr):
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    out_desc.store([i, j], x_desc.load([i, j]))
"""


def test_the_width_of_a_load():
    source = (
        COPY
        + """
assert widths(x.double())[0] == "4 v2.b64"
assert widths(x)[0] == "2 v4.b32"
assert widths(x.half())[0] == "1 v4.b32"
assert widths(x, BLOCK=256)[0] == "1 v2.b32"
assert widths(x.half(), BLOCK=256)[0] == "1 b32"
assert widths(x, BLOCK=128)[0] == "1 b32"
assert widths(x, BLOCK=256, num_warps=1)[0] == "2 v4.b32"
"""
    )
    compiled(source)


def test_one_element_off_makes_single_loads():
    source = (
        COPY
        + """
assert widths(x) == ("2 v4.b32", "2 v4.b32")
assert widths(x, n=4099) == widths(x, n=4100) == widths(x, n=4104) == ("8 b32", "8 b32")
assert widths(x, n=4112) == ("2 v4.b32", "2 v4.b32")
assert widths(x.half()[4:])[0] == "8 b16"
assert widths(x[1:]) == ("8 b32", "2 v4.b32")
assert widths(x[4:]) == ("2 v4.b32", "2 v4.b32")
# a thread owns four neighbours all the same
ttgir = copy[(4,)](x, out, 4099, BLOCK=1024).asm["ttgir"]
assert "sizePerThread = [4]" in ttgir and "sizePerThread = [1]" not in ttgir
"""
    )
    compiled(source)


def test_the_launcher_marks_what_16_divides():
    source = (
        COPY
        + """
def marks(x, n):
    ttir = copy[(4,)](x, out, n, BLOCK=1024).asm["ttir"]
    head = next(line for line in ttir.splitlines() if "tt.func" in line)
    return head.count("tt.divisibility = 16")
assert (marks(x, 4096), marks(x, 4100), marks(x[1:], 4096), marks(x[4:], 4096)) == (3, 2, 2, 3)
"""
    )
    compiled(source)


def test_a_stride_counts_like_a_length():
    source = (
        COPY
        + """
@triton.jit
def strided(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i * stride, mask=mask), mask=mask)
@triton.jit
def rows(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out_ptr + row * stride + cols, tl.load(x_ptr + row * stride + cols))
assert accesses(strided[(4,)](x, out, 4096, 1, BLOCK=1024)) == ("2 v4.b32", "2 v4.b32")
assert accesses(strided[(4,)](x, out, 4099, 1, BLOCK=1024)) == ("8 b32", "8 b32")
assert accesses(strided[(4,)](x, out, 4096, 2, BLOCK=1024)) == ("8 b32", "2 v4.b32")
assert accesses(rows[(2,)](x, out, 4096, BLOCK=1024)) == ("2 v4.b32", "2 v4.b32")
assert accesses(rows[(2,)](x, out, 4099, BLOCK=1024)) == ("8 b32", "8 b32")
"""
    )
    compiled(source)


def test_a_padded_stride_is_not_enough():
    source = (
        COPY
        + """
@triton.jit
def row(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    out_ptr += tl.program_id(0) * stride
    cols = tl.arange(0, BLOCK)
    tl.store(out_ptr + cols, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)
@triton.jit
def masked_at_the_end(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    out_ptr += tl.program_id(0) * stride
    whole = n // BLOCK * BLOCK
    for start in range(0, whole, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + cols, tl.load(x_ptr + cols))
    cols = whole + tl.arange(0, BLOCK)
    tl.store(out_ptr + cols, tl.load(x_ptr + cols, mask=cols < n), mask=cols < n)
h, k = x.half(), out.half()
assert accesses(row[(2,)](h, k, 1000, 1000, BLOCK=1024))[0] == "8 b16"
assert accesses(row[(2,)](h, k, 1000, 1008, BLOCK=1024))[0] == "8 b16"
assert accesses(row[(2,)](h, k, 1008, 1008, BLOCK=1024))[0] == "1 v4.b32"
ptx = masked_at_the_end[(2,)](h, k, 5000, 5008, BLOCK=1024).asm["ptx"]
assert ptx.count("ld.global.v4.b32") == 1 and ptx.count("ld.global.b16") == 8  # whole chunks, and the last
"""
    )
    compiled(source)


def test_the_layout_follows_the_axis_with_stride_one():
    source = (
        TILE
        + """
x = torch.zeros(4096 * 64)
row_major, column_major = x.view(64, 4096), x.view(64, 4096).t()
def layouts(x, out):
    kernel = run(x, out)
    assert "ld.global.v4" in kernel.asm["ptx"] and "st.global.v4" in kernel.asm["ptx"]
    return re.findall(r"= #ttg.blocked<{([^}]*)}>", kernel.asm["ttgir"])
first, second = layouts(row_major, row_major), layouts(column_major, column_major)
assert first == ["sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]"], first
@triton.jit
def broad(x_ptr, out_ptr):
    at = tl.arange(0, 16)[:, None] * 4096 + tl.arange(0, 256)[None, :]
    tl.store(out_ptr + at, tl.load(x_ptr + at))
ttgir = broad[(1,)](x, x).asm["ttgir"]
assert "sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]" in ttgir
assert second == ["sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]"], second
"""
    )
    compiled(source)


def test_a_change_of_layout_goes_through_shared_memory():
    source = (
        TILE
        + """
x = torch.zeros(4096 * 64)
row_major, column_major = x.view(64, 4096), x.view(4096, 64).t()
kernel = run(row_major, column_major)
assert kernel.asm["ttgir"].count("ttg.convert_layout") == 1
assert kernel.metadata.shared == 64 * 64 * 4 and "bar.sync" in kernel.asm["ptx"]
assert "ld.global.v4" in kernel.asm["ptx"] and "st.global.v4" in kernel.asm["ptx"]
assert run(row_major, row_major).metadata.shared == 0
"""
    )
    compiled(source)


def test_wide_tiles_cost_registers_and_a_wide_base_does_not():
    source = (
        PTXAS
        + TILE
        + """
x = torch.empty_strided((4099, 4099), (12299, 3))
print(*[ptxas(run(x, x, WIDE, BASE)) for WIDE, BASE in ((False, False), (True, False), (False, True))])
"""
    )
    narrow, wide, base = (int(part.split(",")[1]) for part in compiled(source).replace(")", ") ").split(")")[:3])
    assert narrow + 10 < wide and base <= narrow + 2, (narrow, wide, base)
    known = {"3.6.0": (78, 116, 79), "3.7.1": (102, 166, 96), "3.9.0": (102, 118, 96)}
    assert (narrow, wide, base) == known.get(version("triton"), (narrow, wide, base))
    # and a copy from the wide base is right, at the edges too
    interpreted(
        TILE
        + """
x = torch.randn(70, 140)[:, ::2].t()
out = torch.full((72, 75), -1.0)
run(x, out[:70, :70], BASE=True, B=64)
assert torch.equal(out[:70, :70], x) and (out[70:] == -1).all() and (out[:, 70:] == -1).all()
"""
    )


def test_an_argument_past_2_to_the_31_is_passed_as_int64():
    source = """
@triton.jit
def first(x_ptr, stride):
    tl.store(x_ptr + tl.program_id(0) * stride, 1.0)
def kind(stride):
    ttir = first[(1,)](torch.zeros(1), stride).asm["ttir"]
    return "i64" if "arith.muli" in ttir and ": i64" in ttir.split("arith.muli")[1].split("loc")[0] else "i32"
assert (kind(50000), kind(3_000_000_000)) == ("i32", "i64")
assert "arith.muli" not in first[(1,)](torch.zeros(1), 1).asm["ttir"]  # an argument equal to 1 is a constant
"""
    compiled(source)


def test_cache_hints_reach_the_load():
    source = """
@triton.jit
def copy(x_ptr, out_ptr, POLICY: tl.constexpr, CACHE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, eviction_policy=POLICY, cache_modifier=CACHE))
def ptx(policy="", cache=""):
    return copy[(1,)](torch.zeros(1024), torch.zeros(1024), POLICY=policy, CACHE=cache, BLOCK=1024).asm["ptx"]
assert "ld.global.L1::evict_first.L2::cache_hint.v4.b32" in ptx("evict_first")
assert "ld.global.L1::evict_last.L2::cache_hint.v4.b32" in ptx("evict_last")
assert "ld.global.cg.v4.b32" in ptx(cache=".cg") and "ld.global.ca.v4.b32" in ptx(cache=".ca")
assert "ld.global.v4.b32" in ptx()
"""
    compiled(source)


def test_a_descriptor_copies_by_corner_and_needs_no_mask():
    source = (
        DESCRIPTOR
        + """
x, out = torch.randn(20, 24), torch.full((20, 24), -1.0)
copy[(2, 2)](TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(out, [16, 16]), BM=16, BN=16)
assert torch.equal(out, x)
@triton.jit
def largest(x_desc, out_ptr):
    tl.store(out_ptr, tl.max(tl.max(x_desc.load([16, 16]), axis=1), axis=0))
top = torch.ones(1)
largest[(1,)](TensorDescriptor.from_tensor(torch.full((20, 24), -5.0), [16, 16]), top)
assert top.item() == 0.0  # the fill past the edge, larger than anything in the tensor
"""
    )
    interpreted(source)


def test_what_a_descriptor_refuses():
    source = (
        DESCRIPTOR
        + """
def takes(x, block=(16, 16)):
    try:
        TensorDescriptor.from_tensor(x, list(block))
    except (AssertionError, ValueError) as error:
        return str(error)
    return "taken"
assert takes(torch.zeros(1000, 504).half()) == "taken"
assert "16-byte aligned" in takes(torch.zeros(1000, 500).half())
assert takes(torch.zeros(33, 100)) == takes(torch.zeros(64, 64).half()[1:]) == "taken"
assert "16-byte aligned" in takes(torch.zeros(33, 100).half())
assert "ontiguous" in takes(torch.zeros(64, 64)[:, ::2])
assert takes(torch.zeros(64, 64).half()[:, 8:]) == "taken"
assert "base must be 16-byte aligned" in takes(torch.zeros(64, 64).half()[:, 4:])
assert "ontiguous" in takes(torch.zeros(512, 512).t()) or "aligned" in takes(torch.zeros(512, 512).t())
assert "power of" in takes(torch.zeros(64, 64), (16, 48))
"""
    )
    interpreted(source)
    # made in a kernel, the last side of the tile is checked as well
    said = compiled(
        """
@triton.jit
def narrow(x_ptr):
    desc = tl.make_tensor_descriptor(x_ptr, shape=[64, 64], strides=[64, 1], block_shape=[16, 4])
    desc.store([0, 0], desc.load([0, 0]))
try:
    narrow[(1,)](torch.zeros(64, 64).half())
except Exception as error:
    print(error)
"""
    )
    assert "16 bytes" in said


def test_a_descriptor_uses_the_copy_engine_and_few_registers():
    source = (
        PTXAS
        + TILE
        + DESCRIPTOR
        + """
x = torch.zeros(4096, 64).view(64, 4096)
by_pointer = run(x, x)
desc = TensorDescriptor.from_tensor(x, [64, 64])
by_corner = copy[(1, 64)](desc, desc, BM=64, BN=64)
assert by_pointer.asm["ptx"].count("ld.global.v4.b32") == 8 and by_pointer.metadata.shared == 0
assert "ld.global" not in by_corner.asm["ptx"] and "cp.async.bulk.tensor.2d" in by_corner.asm["ptx"]
assert 16384 <= by_corner.metadata.shared <= 16384 + 64
print(ptxas(by_pointer)[1], ptxas(by_corner)[1], by_corner.metadata.shared)
"""
    )
    pointer, corner, shared = map(int, compiled(source).split())
    assert corner <= 16 < 40 <= pointer
    if version("triton").startswith("3.7."):
        assert (pointer, corner, shared) == (48, 10, 16392)
    # no descriptor engine before Hopper: the same source becomes ordinary copies
    old = compiled(
        DESCRIPTOR
        + """
desc = TensorDescriptor.from_tensor(torch.zeros(64, 64), [64, 64])
ptx = copy[(1, 1)](desc, desc, BM=64, BN=64).asm["ptx"]
print("cp.async.bulk" in ptx, "ld.global" in ptx)
""",
        "sm_80",
    )
    assert old.split() == ["False", "True"]


def test_a_flat_mask_lets_a_lane_past_its_row():
    source = """
@triton.jit
def alive(out_ptr, M, N):
    rows, cols = tl.arange(0, 4)[:, None], tl.arange(0, 8)[None, :]
    tl.store(out_ptr + rows * 8 + cols, (rows * N + cols < M * N).to(tl.int32))
out = torch.zeros(4, 8, dtype=torch.int32)
alive[(1,)](out, 3, 5)
assert out[1, 6] == 1 and 1 * 5 + 6 == 11 < 15  # no such column
assert out[2].tolist() == [1] * 5 + [0] * 3 and out[3].tolist() == [0] * 8
"""
    interpreted(source)
