"""What module 4 says about the steps of a reduction, and the registers of a row."""

from importlib.metadata import version

from tests.evidence.run import ROOT, compiled, interpreted
from tests.evidence.test_m04 import PTXAS, SOFTMAX
from tests.evidence.test_m05_resources import USAGE

TOTAL = """
@triton.jit
def total(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))
def steps(kernel):
    ptx = kernel.asm["ptx"]
    return ptx.count("shfl.sync"), ptx.count("bar.sync"), kernel.metadata.shared
x, out = torch.zeros(1 << 16), torch.zeros(1 << 16)
"""
NORMS = """
@triton.jit
def two_looks(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    d = tl.where(mask, x - tl.sum(x, axis=0) / n, 0.0)
    tl.store(out_ptr + row * n + cols, d * tl.rsqrt(tl.sum(d * d, axis=0) / n + eps), mask=mask)
@triton.jit
def one_look(x_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    row, cols = tl.program_id(0), tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * n + cols, mask=mask, other=0.0).to(tl.float32)
    a = tl.sum(x, axis=0) / n
    b = tl.sum(x * x, axis=0) / n
    tl.store(out_ptr + row * n + cols, (x - a) * tl.rsqrt(b - a * a + eps), mask=mask)
"""
MERGE = """
@triton.jit
def add_both(a, b, c, d):
    return a + c, b + d
@triton.jit
def sums(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    s, sq = tl.reduce((x, x * x), axis=0, combine_fn=add_both)
    tl.store(out_ptr, s)
    tl.store(out_ptr + 1, sq)
"""


def test_a_sum_needs_one_shuffle_for_each_halving():
    source = TOTAL + "for warps in (1, 4, 8, 32):\n    print(*steps(total[(1,)](x, out, BLOCK=1024, num_warps=warps)))"
    shuffles, barriers, shared = zip(*(map(int, line.split()) for line in compiled(source).splitlines()), strict=True)
    assert shuffles == (5, 7, 8, 10) and shared == (0, 16, 32, 128)
    minor = tuple(map(int, version("triton").split(".")[:2]))
    if minor != (3, 8):  # not looked at
        assert barriers == ((0, 1, 1, 1) if minor >= (3, 9) else (0, 2, 2, 2))


def test_the_axis_decides_whether_threads_must_talk():
    source = (
        TOTAL
        + """
@triton.jit
def folded(x_ptr, out_ptr, AXIS: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    tile = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, N if AXIS == 0 else M), tl.sum(tile, axis=AXIS))
down = folded[(1,)](x, out, AXIS=0, M=4, N=512)
assert "sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4]" in down.asm["ttgir"]
assert steps(down) == (0, 0, 0)
assert steps(folded[(1,)](x, out, AXIS=0, M=8, N=512)) == (0, 0, 0)
shuffles, barriers, shared = steps(folded[(1,)](x, out, AXIS=1, M=4, N=512))
assert shuffles > 20 and barriers > 0 and shared == 64
tall = folded[(1,)](x, out, AXIS=0, M=16, N=128)
assert "threadsPerWarp = [1, 32], warpsPerCTA = [4, 1]" in tall.asm["ttgir"]
assert tall.metadata.shared == 4 * 128 * 4
"""
    )
    compiled(source)


def test_two_sums_in_one_reduction_meet_once():
    source = (
        TOTAL
        + MERGE
        + """
@triton.jit
def twice(x_ptr, out_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(x, axis=0))
    tl.store(out_ptr + 1, tl.sum(x * x, axis=0))
print(*steps(twice[(1,)](x, out, BLOCK=1024))[:2], *steps(sums[(1,)](x, out, BLOCK=1024))[:2])
"""
    )
    apart, apart_barriers, joint, joint_barriers = map(int, compiled(source).split())
    assert apart == joint == 14 and joint_barriers < apart_barriers
    if version("triton").startswith("3.7."):
        assert (apart_barriers, joint_barriers) == (5, 2)
    interpreted(
        MERGE
        + """
x, out = torch.arange(64.), torch.zeros(2)
sums[(1,)](x, out, BLOCK=64)
assert out.tolist() == [x.sum().item(), x.square().sum().item()]
"""
    )


def programs(registers: int, warps: int) -> int:
    """That fit: of a multiprocessor's 65536 registers, dealt out to warps in lots of 256, and its 64 warps."""
    of_a_warp = -(-registers * 32 // 256) * 256
    return min(65536 // of_a_warp // warps, 64 // warps)


def test_registers_of_a_softmax_row_and_what_fits():
    source = (
        PTXAS
        + SOFTMAX
        + """
x = torch.zeros(8192)
for warps in (4, 8, 16):
    print(*ptxas(softmax_kernel[(1,)](x, x, 8192, FILL=-float("inf"), BLOCK=8192, num_warps=warps)))
"""
    )
    spilled, registers = zip(*(map(int, line.split()) for line in compiled(source).splitlines()), strict=True)
    assert spilled == (0, 0, 0) and 80 <= registers[0] <= 112 and registers[2] <= 40

    if version("triton").startswith("3.7."):
        assert registers == (94, 55, 32)
        assert (programs(94, 4), programs(32, 16)) == (5, 4)
    assert (programs(102, 4), programs(166, 4)) == (4, 3)  # of m03.predict.int64


def test_mean_of_squares_saves_no_shuffle():
    source = (
        TOTAL
        + NORMS
        + """
h = torch.zeros(1 << 13).bfloat16()
for kernel in (two_looks, one_look):
    print(*steps(kernel[(1,)](h, h, 4096, 1e-5, BLOCK=4096, num_warps=8))[:2])
"""
    )
    first, second = (tuple(map(int, line.split())) for line in compiled(source).splitlines())
    assert first == second and first[0] == 16
    if version("triton").startswith("3.7."):
        assert first[1] == 5
    interpreted(
        NORMS
        + """
x = torch.randn(1, 100)
a, b = torch.zeros(1, 100), torch.zeros(1, 100)
two_looks[(1,)](x, a, 100, 1e-5, BLOCK=128)
one_look[(1,)](x, b, 100, 1e-5, BLOCK=128)
assert torch.allclose(a, torch.layer_norm(x, (100,)), atol=1e-5) and torch.allclose(a, b, atol=1e-4)
"""
    )


def test_partial_softmax_statistics_merge_in_any_grouping():
    interpreted(
        """
@triton.jit
def merge(m1, l1, m2, l2):
    m = tl.maximum(m1, m2)
    shift = tl.where(m == -float("inf"), 0.0, m)
    return m, l1 * tl.exp(m1 - shift) + l2 * tl.exp(m2 - shift)
@triton.jit
def statistics(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    m, l = tl.reduce((x, tl.where(i < n, 1.0, 0.0)), axis=0, combine_fn=merge)
    tl.store(out_ptr, m)
    tl.store(out_ptr + 1, l)
def pair(x):
    out = torch.zeros(2)
    statistics[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return out.tolist()
x = torch.randn(50) * 3
m, l = pair(x)
assert m == x.max() and abs(l - torch.exp(x - x.max()).sum()) < 1e-4
parts = [pair(part) for part in x.split(13)]
order = [parts[i] for i in (2, 0, 3, 1)]
m_all, l_all = -float("inf"), 0.0
for m_part, l_part in order:
    new = max(m_all, m_part)
    l_all = l_all * torch.exp(torch.tensor(m_all - new)).item() + l_part * torch.exp(torch.tensor(m_part - new)).item()
    m_all = new
assert m_all == m and abs(l_all - l) < 1e-4
two = [pair(torch.tensor(part)) for part in ([1., 3.], [2., 5.])]
assert [round(v, 4) for p in two for v in p] == [3.0, 1.1353, 5.0, 1.0498]
"""
    )


CAPPED = """
from grader.triton_adapter import watch_launches
launches = watch_launches("compile")

def said(kernel):
    print(*usage(kernel)[:2], kernel.metadata.num_warps)

x = torch.empty(2, 16384, dtype=torch.float16)
for options in (dict(num_warps=16), dict(num_warps=8), dict(num_warps=8, maxnreg=72)):
    said(softmax_kernel[(2,)](x, x, 16384, 16384, 1, 16384, BLOCK_N=16384, **options))
for n, dtype in ((12288, torch.float16), (12288, torch.bfloat16), (12288, torch.float32), (8192, torch.float16),
                 (9001, torch.float16)):
    softmax(torch.empty(2, n, dtype=dtype))
    said(launches.kernels[-1])
"""


def test_a_cap_of_80_registers_lets_a_third_program_of_the_solution_in():
    source = (ROOT / "solutions/04-softmax-and-reductions/softmax.py").read_text(encoding="utf-8")
    lines = [tuple(map(int, line.split())) for line in compiled(USAGE + source + CAPPED).splitlines()]
    assert [warps for *_, warps in lines] == [16, 8, 8, 8, 8, 16, 8, 8]
    wide, free, tight, capped, *_, odd = lines
    assert [programs(registers, warps) for registers, _, warps in (wide, free, tight, capped)] == [2, 2, 3, 3]
    assert (wide[1], free[1]) == (0, 0) and capped[1] < tight[1]
    spilled = {"3.6": (0, 8), "3.7": (0, 8), "3.9": (24, 120)}  # bytes a thread
    assert (capped[1], odd[1]) == spilled.get(version("triton")[:3], (capped[1], odd[1])) and odd[0] == 80
    if version("triton").startswith("3.7."):
        assert (wide[0], free[0], capped[0]) == (63, 114, 80)
