"""What module 4 says about reductions, softmax, tile sizes and warps."""

import math
from importlib.metadata import version

import torch

from tests.evidence.run import compiled, interpreted

SOFTMAX = """
@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, FILL: tl.constexpr, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + cols, mask=cols < n, other=FILL).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + cols, e / tl.sum(e, axis=0), mask=cols < n)
"""
PTXAS = """
import os, re, subprocess, tempfile
def ptxas(kernel):
    path = os.path.join(tempfile.mkdtemp(), "kernel.ptx")
    open(path, "w").write(kernel.asm["ptx"])
    folder = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin")
    for name in ("ptxas", "ptxas-blackwell"):  # Triton 3.9 writes PTX that only the newer one reads
        command = [os.path.join(folder, name), "-v", "-arch=sm_90a", path, "-o", os.devnull]
        report = subprocess.run(command, capture_output=True, text=True).stderr
        if "spill stores" in report:
            break
    spilled = int(re.search(r"(\\d+) bytes spill stores", report).group(1))
    return spilled, int(re.search(r"Used (\\d+) registers", report).group(1))
"""


def test_axis_names_the_dimension_that_disappears():
    source = """
@triton.jit
def axes(down_ptr, along_ptr):
    tile = tl.arange(0, 2)[:, None] * 10 + tl.arange(0, 4)[None, :]
    tl.static_assert(tl.sum(tile, axis=1, keep_dims=True).shape[1] == 1)
    tl.store(down_ptr + tl.arange(0, 4), tl.sum(tile, axis=0))
    tl.store(along_ptr + tl.arange(0, 2), tl.sum(tile, axis=1))
down, along = torch.zeros(4, dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
axes[(1,)](down, along)
assert down.tolist() == [10, 12, 14, 16] and along.tolist() == [6, 46]
"""
    interpreted(source)


def test_keep_dims_decides_what_broadcasts_back():
    source = """
@triton.jit
def kept(out_ptr):
    tile = tl.arange(0, 4)[:, None] * 10 + tl.arange(0, 4)[None, :]
    place = tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(out_ptr + place, tile - tl.max(tile, axis=1, keep_dims=True))
@triton.jit
def lost(out_ptr):
    tile = tl.arange(0, 4)[:, None] * 10 + tl.arange(0, 4)[None, :]
    tl.store(out_ptr + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :], tile - tl.max(tile, axis=1))
x = torch.arange(4)[:, None] * 10 + torch.arange(4)[None, :]
out = torch.zeros(4, 4, dtype=torch.int32)
kept[(1,)](out)
assert torch.equal(out, (x - x.amax(1, keepdim=True)).int())
lost[(1,)](out)
assert torch.equal(out, (x - x.amax(1)[None, :]).int())
@triton.jit
def unlike(out_ptr):
    tile = tl.arange(0, 4)[:, None] * 10 + tl.arange(0, 8)[None, :]
    tl.store(out_ptr, tl.sum(tile - tl.max(tile, axis=1)))
try:
    unlike[(1,)](out)
except Exception as error:
    assert "incompatible dimensions" in repr(error), error
else:
    raise AssertionError
"""
    interpreted(source)


def test_sum_adds_in_the_dtype_of_its_tile():
    source = """
@triton.jit
def total(x_ptr, out_ptr, CAST: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.static_assert(tl.sum(x, axis=0).dtype == tl.float16)
    tl.static_assert(tl.max(x, axis=0).dtype == tl.float32 and tl.min(x, axis=0).dtype == tl.float32)
    tl.static_assert((x * x).dtype == tl.float16 and (x + x).dtype == tl.float16 and (x / x).dtype == tl.float32)
    tl.static_assert((x * 1.0).dtype == tl.float16)
    tl.static_assert(tl.sum(x.to(tl.int8), axis=0).dtype == tl.int32)
    if CAST:
        x = x.to(tl.float32)
        tl.static_assert(tl.sum(x, axis=0).dtype == tl.float32)
    tl.store(out_ptr, tl.sum(x, axis=0))
x, out = torch.full((1024,), 100.0).half(), torch.zeros(1)
compiled = total[(1,)](x, out, CAST=False, BLOCK=1024)
if compiled is None:
    assert out.item() == float("inf")
    total[(1,)](x, out, CAST=True, BLOCK=1024)
    assert out.item() == 102400.0
else:
    reduce = compiled.asm["ttir"].split("tt.reduce")[1]
    assert "f16" in reduce.split("tt.reduce.return")[0]
"""
    interpreted(source)
    compiled(source)


def test_sum_takes_the_dtype_to_add_in():
    source = """
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0, dtype=tl.float32))
out = torch.zeros(1)
total[(1,)](torch.full((1024,), 100.0).half(), out, BLOCK=1024)
assert out.item() == 102400.0
"""
    interpreted(source)


def test_half_precision_counts_no_further_than_2048():
    one = torch.ones((), dtype=torch.float16)
    assert (2048 * one + one).item() == 2048.0
    assert (256 * one.bfloat16() + one.bfloat16()).item() == 256.0
    assert torch.full((1000,), 100.0, dtype=torch.float16).sum().item() == math.inf  # the result does not fit
    assert torch.ones(5000, dtype=torch.float16).sum().item() == 5000.0  # PyTorch adds in float32


def test_a_reduction_leaves_one_partial_a_warp_in_shared_memory():
    source = """
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))
for warps in (1, 2, 4, 8):
    kernel = total[(1,)](torch.zeros(1024), torch.zeros(1), BLOCK=1024, num_warps=warps)
    print(kernel.metadata.shared)
    assert "shfl.sync" in kernel.asm["ptx"]
"""
    assert compiled(source).split() == ["0", "8", "16", "32"]


def test_arange_takes_only_powers_of_two():
    source = """
@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
try:
    fill[(1,)](torch.zeros(8), BLOCK=5)
except Exception as error:
    print(repr(error))
assert [triton.next_power_of_2(n) for n in (1, 5, 781, 1024, 1025)] == [1, 8, 1024, 1024, 2048]
"""
    message = "range must be a power of 2"
    assert message in interpreted(source) and message in compiled(source)


def test_a_tile_holds_at_most_2_to_the_20_elements():
    source = """
@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
try:
    fill[(1,)](torch.zeros(8), BLOCK=2**21)
except Exception as error:
    print(repr(error))
"""
    message = "exceeds triton maximum tensor numel (1048576)"
    assert message in compiled(source) and message in interpreted(source)


def test_softmax_is_shift_invariant_and_exp_overflows():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.allclose(torch.softmax(x, 0), torch.softmax(x + 40, 0))
    assert torch.exp(torch.tensor(88.0)).isfinite() and torch.exp(torch.tensor(89.0)).isinf()
    assert torch.exp(torch.tensor(11.0, dtype=torch.float16)).isfinite()
    assert torch.exp(torch.tensor(11.2, dtype=torch.float16)).isinf()
    naive = torch.exp(x + 100)
    assert (naive / naive.sum()).isnan().all()
    low = torch.exp(x - 200)
    assert (low / low.sum()).isnan().all()  # 0 / 0
    assert torch.exp(torch.tensor(-math.inf)).item() == 0.0


def test_minus_inf_serves_both_reductions_and_zero_serves_neither():
    source = (
        SOFTMAX
        + """
x, out = torch.tensor([[-3., -1., -2.]]), torch.zeros(1, 3)
softmax_kernel[(1,)](x, out, 3, FILL=-float("inf"), BLOCK=4)
assert torch.allclose(out, torch.softmax(x, 1))
softmax_kernel[(1,)](x, out, 3, FILL=0.0, BLOCK=4)
print(round(out.sum().item(), 4))
"""
    )
    three = sum(math.exp(v) for v in (-3, -1, -2))
    assert float(interpreted(source)) == round(three / (three + 1), 4)


def test_a_row_of_minus_inf_gives_nan_as_in_pytorch():
    source = (
        SOFTMAX
        + """
x, out = torch.full((1, 3), -float("inf")), torch.zeros(1, 3)
softmax_kernel[(1,)](x, out, 3, FILL=-float("inf"), BLOCK=4)
assert out.isnan().all() and torch.softmax(x, 1).isnan().all()
"""
    )
    interpreted(source)


ONE_WALK = """
@triton.jit
def statistics(x_ptr, out_ptr, n, GUARD: tl.constexpr, BLOCK: tl.constexpr):
    m = -float("inf")
    l = 0.0
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n, other=-float("inf"))
        m_new = tl.maximum(m, tl.max(x, axis=0))
        shift = m_new
        if GUARD:
            shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l = l * tl.exp(m - shift) + tl.sum(tl.exp(x - shift), axis=0)
        m = m_new
    tl.store(out_ptr, m)
    tl.store(out_ptr + 1, l)
def found(x, guard, block):
    out = torch.zeros(2)
    compiled = statistics[(1,)](x, out, x.numel(), GUARD=guard, BLOCK=block)
    return out if compiled is None else None
"""


def test_one_walk_finds_maximum_and_sum():
    source = (
        ONE_WALK
        + """
m, l = found(torch.tensor([1., 3., 2., 5.]), False, 2).tolist()
assert m == 5.0 and round(l, 4) == 1.2034
x = torch.randn(1000) + torch.arange(1000) / 50
m, l = found(x, False, 64)
assert m == x.max() and torch.allclose(l, torch.exp(x - x.max()).sum())
"""
    )
    interpreted(source)
    after_one_tile = math.exp(1 - 3) + math.exp(3 - 3)
    assert round(after_one_tile, 4) == 1.1353
    assert round(after_one_tile * math.exp(3 - 5), 4) == 0.1537
    assert round(math.exp(2 - 5) + math.exp(5 - 5), 4) == 1.0498
    assert round(50 * math.exp(4 - 7), 2) == 2.49


def test_a_first_tile_of_minus_inf_needs_a_guard():
    source = (
        ONE_WALK
        + """
x = torch.tensor([-float("inf")] * 4 + [1., 2.])
assert found(x, False, 4)[1].isnan()
m, l = found(x, True, 4)
assert m == 2.0 and torch.allclose(l, 1 + torch.exp(torch.tensor(-1.0)))
low = torch.full((4,), -1000.0)
assert torch.exp(low - 0).sum() == 0.0  # a maximum that starts at 0
"""
    )
    interpreted(source)
    compiled(ONE_WALK + "found(torch.zeros(6), True, 4)")


def test_max_passes_over_nan_but_softmax_does_not():
    source = (
        SOFTMAX
        + """
@triton.jit
def largest(x_ptr, out_ptr):
    tl.store(out_ptr, tl.max(tl.load(x_ptr + tl.arange(0, 4)), axis=0))
x, top, out = torch.tensor([1., float("nan"), 3., 2.]), torch.zeros(1), torch.zeros(4)
kernel = largest[(1,)](x, top)
if kernel is None:
    assert top.item() == 3.0 and x.amax().isnan()
    softmax_kernel[(1,)](x, out, 4, FILL=-float("inf"), BLOCK=4)
    assert out.isnan().all()
else:
    assert "max.f32" in kernel.asm["ptx"] and "max.NaN" not in kernel.asm["ptx"]
"""
    )
    interpreted(source)
    compiled(source)


def test_exp_takes_no_float16():
    source = """
@triton.jit
def exponential(x_ptr):
    i = tl.arange(0, 4)
    tl.store(x_ptr + i, tl.exp(tl.load(x_ptr + i)))
try:
    exponential[(1,)](torch.zeros(4, dtype=torch.float16))
except Exception as error:
    print(repr(error))
"""
    message = "Expected dtype"
    assert message in interpreted(source) and message in compiled(source)


def test_a_wide_row_spills_with_few_warps():
    source = (
        PTXAS
        + SOFTMAX
        + """
x = torch.zeros(32768)
for warps in (4, 32):
    print(*ptxas(softmax_kernel[(1,)](x, x, 32768, FILL=-float("inf"), BLOCK=32768, num_warps=warps)))
"""
    )
    few, many = (tuple(map(int, line.split())) for line in compiled(source).splitlines())
    assert few[0] > 0
    assert many[0] == 0 and many[1] <= 64
    if version("triton").startswith("3.7."):
        assert (few[1], many[1]) == (255, 53)


def test_without_a_loop_num_stages_changes_nothing():
    source = (
        SOFTMAX
        + """
x = torch.zeros(1024)
codes = {softmax_kernel[(1,)](x, x, 1024, FILL=-float("inf"), BLOCK=1024, num_stages=stages).asm["ptx"]
         for stages in (1, 2, 5)}
print(len(codes))
"""
    )
    assert compiled(source).split() == ["1"]


def test_num_warps_is_a_power_of_two_and_four_by_default():
    source = """
@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
kernel = fill[(1,)](torch.zeros(8), BLOCK=8)
if kernel is not None:
    assert (kernel.metadata.num_warps, kernel.metadata.num_stages) == (4, 3)
try:
    fill[(1,)](torch.zeros(8), BLOCK=8, num_warps=3)
    print("accepted")
except Exception as error:
    print(repr(error))
"""
    assert "num_warps must be a power of 2" in compiled(source)
    assert "accepted" in interpreted(source)


def test_a_constexpr_width_compiles_for_every_width():
    source = """
@triton.jit
def constant(x_ptr, n: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0, mask=i < n)
@triton.jit
def plain(x_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 1.0, mask=i < n)
def hashes(kernel):
    return len({kernel[(1,)](torch.zeros(16), n, BLOCK=16).hash for n in (5, 6, 7)})
print(hashes(constant), hashes(plain))
"""
    assert compiled(source).split() == ["3", "1"]


def test_the_interpreter_sums_bfloat16_wrongly():
    source = """
@triton.jit
def total(x_ptr, out_ptr, CAST: tl.constexpr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if CAST:
        x = x.to(tl.float32)
    tl.store(out_ptr, tl.sum(x, axis=0))
x, out = torch.ones(16, dtype=torch.bfloat16), torch.zeros(1)
total[(1,)](x, out, CAST=False, BLOCK=16)
assert out.item() != 16.0, out
total[(1,)](x, out, CAST=True, BLOCK=16)
assert out.item() == 16.0
"""
    interpreted(source)


def test_the_interpreter_rounds_a_float16_sum_once():
    source = """
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))
x, out = torch.ones(1024).half(), torch.zeros(1)
x[0] = 2048
total[(1,)](x, out, BLOCK=1024)
assert out.item() == 3072.0  # 3071, rounded; in float16 a chain ends at 2048 and a tree at 3070
x[:512], x[512:] = 400, -400
x[5] = 401
total[(1,)](x, out, BLOCK=1024)
assert out.item() == 1.0  # though 512 times 400 is more than float16 holds
"""
    interpreted(source)
