"""What module 7 counts: tiles, FLOPs, bytes, instructions and registers of attention kernels, and what FP8 does to them."""

import functools
import json
import math

import pytest
import torch

from tests.evidence.run import compiled, interpreted
from tests.evidence.test_m07 import ROOT, item

SASS = """
from pathlib import Path
import re, subprocess, tempfile
def registers(kernel):
    path = Path(tempfile.mkdtemp()) / "k.cubin"
    path.write_bytes(kernel.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    usage = subprocess.run([tool, "-res-usage", path], capture_output=True, text=True).stdout
    return int(re.search(r"REG:(\\d+)", usage)[1])
"""


def test_instructions_for_one_score():
    fused = item("m07.walk.kernel")["stage"]
    scaled_first = fused
    natural = fused.replace("tl.exp2(", "tl.exp(").replace("    scale *= 1.4426950408889634\n", "")
    fused = fused.replace("tl.dot(q, k) * scale", "tl.dot(q, k)").replace("axis=1))", "axis=1) * scale)")
    fused = fused.replace("tl.exp2(s - m_new", "tl.exp2(s * scale - m_new")
    assert len({natural, scaled_first, fused}) == 3
    variants = [
        source.replace("def flash(", f"def flash_{i}(") for i, source in enumerate((natural, scaled_first, fused))
    ]
    counts = compiled(
        "\n".join(variants)
        + """
q = torch.zeros(128, 64).half()
for kernel in (flash_0, flash_1, flash_2):
    ptx = kernel[(2,)](q, q, q, q, 128, 100, 0.125, D=64, BLOCK_M=64, BLOCK_N=64).asm["ptx"]
    print(*(ptx.count(name) for name in ("mul.f32", "sub.f32", "fma.rn.f32", "ex2.approx")))
"""
    )
    rows = [[int(number) for number in line.split()] for line in counts.splitlines()]
    assert rows == [[98, 34, 2, 34], [65, 34, 2, 34], [35, 2, 34, 34]]
    figure = item("m07.predict.exp2")["measured"]["figure"]
    assert all(" + ".join(map(str, row[:3])) in figure for row in rows)
    assert [sum(row[:3]) for row in rows] == [134, 101, 71]


def test_registers_and_programs_on_a_multiprocessor():
    out = compiled(
        (ROOT / "solutions/07-flash-attention/attention.py").read_text()
        + SASS
        + """
q = torch.zeros(1, 1, 256, 128).half()
for tile, warps in ((128, 8), (64, 4)):
    kernel = attention_kernel[(2, 1)](q, q, q, q, *q.stride() * 4, 1, 256, 256, 1.0, D=128, BLOCK_M=tile, BLOCK_N=tile,
                                      num_warps=warps, num_stages=2)
    print(registers(kernel), kernel.metadata.shared, warps)
"""
    )
    programs = []
    for line in out.splitlines():
        count, shared, warps = map(int, line.split())
        of_a_program = -(-count // 8) * 8 * 32 * warps  # registers are handed out in eights
        programs.append(min(65536 // of_a_program, 227 * 1024 // shared))
        assert 160 < count <= 255
    assert programs == [1, 2]


def visited(n, m_tile, n_tile, window=None):
    """Tiles between a row tile's start and stop, those that need a mask among them, and a row that starts blind."""
    total = masked = 0
    blind = False
    for first in range(0, n, m_tile):
        low = max(first - window + 1, 0) if window else 0
        start, stop = low // n_tile * n_tile, min(first + m_tile, n)
        for number, key in enumerate(range(start, stop, n_tile)):
            rows, keys = torch.arange(first, first + m_tile)[:, None], torch.arange(key, key + n_tile)[None, :]
            seen = keys <= rows if window is None else (keys <= rows) & (keys > rows - window)
            assert seen.any()  # no tile is visited in vain
            total, masked = total + 1, masked + int(not seen.all())
            blind = blind or (number == 0 and not bool(seen.any(dim=1).all()))
    return total, masked, blind


def test_tiles_visited_under_masks():
    needed = 4096 * 4097 / 2
    for m_tile, n_tile, tiles, share, over in (
        (64, 64, 2080, 50.8, 1.015),
        (128, 64, 1056, 51.6, 1.031),
        (128, 128, 528, 51.6, 1.031),
        (128, 256, 272, 53.1, 1.062),
    ):
        count, _, blind = visited(4096, m_tile, n_tile)
        assert count == tiles and not blind
        assert round(100 * count * m_tile * n_tile / 4096**2, 1) == share
        assert round(count * m_tile * n_tile / needed, 3) == over
    assert visited(512, 128, 128)[0] == 10
    count, masked, blind = visited(4096, 128, 128, window=1024)
    assert (count, round(100 * count / 1024, 1)) == (252, 24.6)
    assert masked == 8 + 24 * 2  # the diagonal tile of each row tile, and the oldest one from row tile 8 on
    assert blind  # a row that sees nothing in the first tile it visits


def test_a_mask_by_place_within_the_tile():
    i, j = torch.arange(128)[:, None], torch.arange(128)[None, :]
    right, wrong = j <= i, j % 64 <= i
    assert torch.equal(right[:64, :64], wrong[:64, :64])
    assert wrong[64:].all() and not right[64:].all()


def test_training_counts():
    heads, n, d = 64, 4096, 128
    product = 2 * n * n * d * heads
    assert (round(product * 2 / 2e9), round(product * 5 / 2e9)) == (275, 687)  # causal is half
    assert (round(product / 989e12 * 1e3, 2), round(product * 2.5 / 989e12 * 1e3, 2)) == (0.28, 0.69)
    mib = 2**20
    assert heads * n * d * 2 == 64 * mib and heads * n * n * 2 == 2048 * mib and heads * n * 4 == mib


def test_a_logsumexp_in_the_wrong_base():
    torch.manual_seed(0)
    s = torch.randn(6, 50, dtype=torch.float64)
    s += (5 - torch.logsumexp(s, -1))[:, None]  # each row's natural logsumexp is 5
    log2e = math.log2(math.e)
    right, wrong = torch.exp2(s * log2e - 5 * log2e), torch.exp2(s * log2e - 5)
    assert torch.allclose(right, torch.softmax(s, -1))
    assert torch.allclose(wrong, right * 2 ** (5 * log2e - 5)) and round(2 ** (5 * log2e - 5), 1) == 4.6


def test_a_finite_fill_gives_empty_rows_a_mean():
    interpreted(
        """
@triton.jit
def kernel(v_ptr, out_ptr, lse_ptr, FILL: tl.constexpr, FLOOR: tl.constexpr):
    i = tl.arange(0, 4)
    s = tl.where(i < 0, 0.0, tl.full([4], FILL, tl.float32))   # a row that sees nothing
    m = tl.maximum(tl.max(s, axis=0), FLOOR)
    p = tl.exp(s - m)
    l = tl.sum(p, axis=0)
    tl.store(out_ptr, tl.sum(p * tl.load(v_ptr + i), axis=0) / tl.where(l == 0.0, 1.0, l))
    tl.store(lse_ptr, m + tl.log(l))

def row(fill, floor):
    out, lse = torch.empty(1), torch.empty(1)
    kernel[(1,)](torch.tensor([1.0, 2.0, 3.0, 6.0]), out, lse, FILL=fill, FLOOR=floor)
    return out.item(), lse.item()

inf = float("inf")
assert row(-1e9, -inf) == (3.0, -1e9)   # a mean of the values, and a finite logsumexp
assert row(-inf, -1e9) == (0.0, -inf)
assert row(-inf, -inf)[1] != row(-inf, -inf)[1]   # NaN
"""
    )


def test_decode_arithmetic():
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 8, 1, 16), torch.randn(1, 2, 5, 16), torch.randn(1, 2, 5, 16)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    shared = sdpa(q, k, v, enable_gqa=True)
    neighbours = sdpa(q, *(t.repeat_interleave(4, dim=1) for t in (k, v)))
    in_turn = sdpa(q, *(t.repeat(1, 4, 1, 1) for t in (k, v)))
    assert torch.allclose(shared, neighbours, atol=1e-6)
    same = [torch.allclose(shared[:, h], in_turn[:, h], atol=1e-6) for h in range(8)]
    assert [h for h in range(8) if same[h]] == [0, 2, 5, 7]
    assert [2 * 32 * heads * 128 * 2 // 1024 for heads in (32, 8, 1)] == [512, 128, 16]  # KiB a token, 32 layers
    cache = 64 * 8192 * 128 * 1024
    assert cache == 64 * 2**30 and round(cache / 4.8e12 * 1e3) == 14
    splits = 2 * 132 // 8
    tokens = round(65536 / splits)
    assert (splits, tokens) == (33, 1986)
    assert round(4 * 129 * 4 / (tokens * 512), 3) == 0.002 and round(4 * 129 * 4 / (64 * 512), 2) == 0.06


JOIN = """
@triton.jit
def join(parts_ptr, lse_ptr, out_ptr, n, D: tl.constexpr, S: tl.constexpr):
    splits, d = tl.arange(0, S), tl.arange(0, D)
    real = splits < n
    lse = tl.load(lse_ptr + splits, mask=real, other=float("-inf"))
    parts = tl.load(parts_ptr + splits[:, None] * D + d[None, :], mask=real[:, None], other=0.0)
    top = tl.max(lse, axis=0)
    top = tl.where(top == float("-inf"), 0.0, top)
    w = tl.exp(lse - top)
    w = w / tl.maximum(tl.sum(w, axis=0), 1e-30)
    tl.store(out_ptr + d, tl.sum(w[:, None] * parts, axis=0))

@triton.jit
def leaves_at_once(out_ptr, n):
    if tl.program_id(0) >= n:
        return
    tl.store(out_ptr + tl.program_id(0), 1.0)
"""


def test_splits_join_and_an_empty_one_weighs_nothing():
    interpreted(
        JOIN
        + """
torch.manual_seed(0)
inf = float("inf")
s, v = torch.randn(20), torch.randn(20, 8)
parts, lse = torch.zeros(5, 8), torch.full((5,), -inf)
for i, keys in enumerate((range(0, 7), range(7, 16), range(16, 20))):   # parts 3 and 4 have no keys
    keys = list(keys)
    parts[i], lse[i] = torch.softmax(s[keys], 0) @ v[keys], torch.logsumexp(s[keys], 0)
def joined(parts, lse):
    out = torch.empty(8)
    join[(1,)](parts, lse, out, 5, D=8, S=8)
    return out
whole = torch.softmax(s, 0) @ v
assert torch.allclose(joined(parts, lse), whole, atol=1e-6)
assert (joined(torch.zeros(5, 8), torch.full((5,), -inf)) == 0).all()
old = parts.clone()
old[4] = float("nan")   # written by nobody: weight 0, and 0 * NaN
assert joined(old, lse).isnan().all()
lse[4] = 3.0            # nobody wrote lse: its old number is joined
assert not torch.allclose(joined(parts, lse), whole, atol=1e-2)
out = torch.zeros(8)
leaves_at_once[(8,)](out, 3)
assert out.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
"""
    )
    compiled(JOIN + "assert leaves_at_once[(8,)](torch.zeros(8), 3).asm['ptx']")


def test_zero_times_a_stale_nan():
    interpreted(
        """
@triton.jit
def kernel(s_ptr, v_ptr, out_ptr, n, STALE: tl.constexpr):
    i = tl.arange(0, 16)
    s = tl.load(s_ptr + i[None, :] + 0 * i[:, None])
    s = tl.where(i[None, :] < n, s, float("-inf"))       # whatever the score was, NaN too
    p = tl.exp(s - tl.max(s, axis=1)[:, None])
    v = tl.load(v_ptr + i[:, None] * 16 + i[None, :], mask=(i[:, None] < n) | STALE, other=0.0)
    tl.store(out_ptr + i[:, None] * 16 + i[None, :], tl.dot(p.to(v.dtype), v))
s, v, out = torch.zeros(16), torch.ones(16, 16).half(), torch.empty(16, 16)
s[10:], v[10:] = float("nan"), float("nan")
kernel[(1,)](s, v, out, 10, STALE=True)
assert out.isnan().all()
kernel[(1,)](s, v, out, 10, STALE=False)
assert (out == 10).all()
"""
    )


@functools.cache
def fp8_on(target: str, *names: str) -> dict[str, str]:
    return json.loads(
        compiled(
            f"NAMES = {names!r}"
            """
import json, re
@triton.jit
def product(x_ptr, out_ptr, IMPRECISE: tl.constexpr):
    i = tl.arange(0, 64)
    offs = i[:, None] * 64 + i[None, :]
    acc = tl.zeros([64, 64], tl.float32)
    acc = tl.dot(tl.load(x_ptr + offs), tl.load(x_ptr + offs), acc, max_num_imprecise_acc=IMPRECISE)
    tl.store(out_ptr + offs, acc)
facts, out = {}, torch.zeros(64, 64)
for name, dtype, imprecise in (("e4m3", torch.float8_e4m3fn, None), ("e5m2", torch.float8_e5m2, None),
                               ("e4m3, 32", torch.float8_e4m3fn, 32)):
    if name not in NAMES:
        continue
    try:
        ptx = product[(1,)](torch.zeros(64, 64).to(dtype), out, IMPRECISE=imprecise).asm["ptx"]
        found = re.search(r"(wgmma.mma_async|mma.sync)\\S*(\\.\\w+\\.\\w+)(\\.f32)? ?", ptx)
        facts[name] = f"{found[0].strip()} adds {ptx.count('add.f32') + ptx.count('add.rn.f32')}"
    except Exception as error:
        facts[name] = str(error) + str(error.__cause__)
print(json.dumps(facts))
""",
            target,
        )
    )


def test_fp8_dots_by_target():
    hopper = fp8_on("sm_90", "e4m3", "e5m2", "e4m3, 32")
    ada, ampere = fp8_on("sm_89", "e4m3"), fp8_on("sm_80", "e4m3", "e5m2")
    assert "wgmma" in hopper["e4m3"] and "e4m3" in hopper["e4m3"] and "e5m2" in hopper["e5m2"]
    assert "mma.sync" in ada["e4m3"] and "e4m3" in ada["e4m3"]
    assert "fp8e4nv not supported" in ampere["e4m3"]
    assert "f16" in ampere["e5m2"]  # accepted, and widened
    assert hopper["e4m3"].endswith("adds 0")  # the default leaves the sum to the tensor core
    assert int(hopper["e4m3, 32"].rsplit(" ", 1)[1]) > 0


def test_weights_in_fp8():
    e4m3, e5m2 = torch.float8_e4m3fn, torch.float8_e5m2
    assert (torch.finfo(e4m3).max, torch.finfo(e5m2).max) == (448, 57344)
    small = torch.tensor([2.0**-9, 0.0009, 0.0009 * 256])
    assert small.to(e4m3).float()[:2].tolist() == [2.0**-9, 0.0] and small.to(e4m3).float()[2] > 0
    torch.manual_seed(0)
    q, k, v = torch.randn(64, 128), torch.randn(4096, 128), torch.randn(4096, 128)

    def weights(q, k):
        s = q @ k.T * 128**-0.5
        return torch.exp(s - s.amax(-1, keepdim=True))

    def eight_bits(t):
        scale = t.abs().amax() / 448
        return (t / scale).to(e4m3).float() * scale

    p = weights(q, k)
    total = p.sum(-1, keepdim=True)
    right = p @ v / total

    def error(p, v=v, total=total):
        return float((p @ v / total - right).abs().mean() / right.abs().mean())

    assert error(p.half().float()) == pytest.approx(0.0002, abs=0.0001)
    assert error(p.to(e4m3).float()) == pytest.approx(0.026, abs=0.001)
    assert error((p * 256).to(e4m3).float() / 256) == pytest.approx(0.025, abs=0.001)
    p8 = weights(eight_bits(q), eight_bits(k))
    assert error((p8 * 256).to(e4m3).float() / 256, eight_bits(v), p8.sum(-1, keepdim=True)) == pytest.approx(
        0.05, abs=0.01
    )
