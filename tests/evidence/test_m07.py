"""What module 7 claims about attention, shown by running it."""

import functools
import json
import math
from pathlib import Path

import pytest
import torch
import yaml

from tests.evidence.run import compiled, interpreted

ROOT = Path(__file__).resolve().parents[2]


def item(name: str) -> dict:
    module = yaml.load((ROOT / "modules" / "07-flash-attention.yaml").read_text(), Loader=yaml.CSafeLoader)
    return next(item for item in module["items"] if item["id"] == name)


# A flash attention loop for one head with one step to choose, 16 queries, tiles of 16 keys, D = 16.
FLASH = """
@triton.jit
def flash(q_ptr, k_ptr, v_ptr, o_ptr, N, scale, START: tl.constexpr, DIVIDE: tl.constexpr, PAD: tl.constexpr,
          BASE2: tl.constexpr):
    r = tl.arange(0, 16)
    q = tl.load(q_ptr + r[:, None] * 16 + r[None, :])
    m = tl.full([16], START, tl.float32)
    l = tl.zeros([16], tl.float32)
    acc = tl.zeros([16, 16], tl.float32)
    for first in range(0, N, 16):
        keys = first + r
        k = tl.load(k_ptr + keys[None, :] * 16 + r[:, None], mask=keys[None, :] < N, other=0.0)
        v = tl.load(v_ptr + keys[:, None] * 16 + r[None, :], mask=keys[:, None] < N, other=0.0)
        s = tl.dot(q, k) * scale
        if not PAD:
            s = tl.where(keys[None, :] < N, s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, axis=1))
        alpha = tl.exp2(m - m_new) if BASE2 else tl.exp(m - m_new)
        p = tl.exp2(s - m_new[:, None]) if BASE2 else tl.exp(s - m_new[:, None])
        l = l * alpha + tl.sum(p, axis=1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None])
        if DIVIDE:
            acc = acc / l[:, None]
        m = m_new
    if not DIVIDE:
        acc = acc / l[:, None]
    tl.store(o_ptr + r[:, None] * 16 + r[None, :], acc)

def run(q, k, v, start=float("-inf"), divide=False, pad=False, base2=False, scale=0.25):
    out = torch.empty(16, 16)
    flash[(1,)](q, k, v, out, k.shape[0], scale, START=start, DIVIDE=divide, PAD=pad, BASE2=base2)
    return out

def truth(q, k, v, scale=0.25):
    return (torch.softmax(q.double() @ k.double().T * scale, -1) @ v.double()).float()

def draw(n, seed=0):
    torch.manual_seed(seed)
    return torch.randn(16, 16).half(), torch.randn(n, 16).half(), torch.randn(n, 16).half()

close = lambda a, b: torch.allclose(a, b, atol=2e-3, rtol=2e-3)
"""


FACTS = """
import json, math
inf = float("inf")
facts = {}
facts["sizes"] = all(close(run(*draw(n)), truth(*draw(n))) for n in (1, 16, 17, 100))
q, k, v = draw(100)
growing = (k.float() + torch.arange(100)[:, None] / 10).half()
facts["growing maximum"] = close(run(q, growing, v), truth(q, growing, v))

facts["start at 0, ordinary scores"] = close(run(q, k, v, start=0.0), truth(q, k, v))
far_q, far_k = torch.full_like(q, 10.0), torch.full_like(k, -12.5)   # each score is about -500
facts["start at 0, scores near -500: all NaN"] = run(far_q, far_k, v, start=0.0).isnan().all().item()
facts["start at -inf, scores near -500"] = close(run(far_q, far_k, v), truth(far_q, far_k, v))

one, two = draw(16), draw(32)
facts["divided in the loop, one tile"] = close(run(*one, divide=True), truth(*one))
facts["divided in the loop, two tiles: wrong"] = not close(run(*two, divide=True), truth(*two))

q, k, v = draw(28)
longer = [torch.cat([t, torch.zeros(4, 16).half()]) for t in (k, v)]
facts["scores not masked, whole tiles"] = close(run(*two, pad=True), truth(*two))
facts["scores not masked, padding: wrong"] = not close(run(q, k, v, pad=True), truth(q, k, v))
facts["scores not masked: as four keys of score 0"] = close(run(q, k, v, pad=True), truth(q, *longer))

q, k, v = draw(64)
facts["exp2 alone: wrong"] = not close(run(q, k, v, base2=True), truth(q, k, v))
facts["exp2 alone: a flatter softmax"] = close(run(q, k, v, base2=True), truth(q, k, v, scale=0.25 * math.log(2)))
facts["exp2 alone: rows add up to 1"] = close(run(q, k, torch.ones_like(v), base2=True), torch.ones(16, 16))
facts["exp2 with log2(e)"] = close(run(q, k, v, base2=True, scale=0.25 * math.log2(math.e)), truth(q, k, v))
print(json.dumps(facts))
"""


@functools.cache
def facts_of_the_loop() -> dict[str, bool]:
    return json.loads(interpreted(FLASH + FACTS))


def assert_holds(*names: str) -> None:
    facts = facts_of_the_loop()
    assert all(facts[name] for name in names), facts


def test_online_softmax_equals_softmax_of_the_whole_row():
    assert_holds("sizes", "growing maximum")


def test_a_maximum_that_starts_at_zero_fails_only_on_very_negative_scores():
    assert_holds(
        "start at 0, ordinary scores", "start at 0, scores near -500: all NaN", "start at -inf, scores near -500"
    )


def test_dividing_by_l_inside_the_loop_is_wrong():
    assert_holds("divided in the loop, one tile", "divided in the loop, two tiles: wrong")


def test_padding_with_zero_scores_changes_the_answer():
    assert_holds(
        "scores not masked, whole tiles",
        "scores not masked, padding: wrong",
        "scores not masked: as four keys of score 0",
    )


def test_exp2_without_log2e_gives_other_weights():
    assert_holds(
        "exp2 alone: wrong", "exp2 alone: a flatter softmax", "exp2 alone: rows add up to 1", "exp2 with log2(e)"
    )


def test_infinity_minus_infinity_is_nan():
    interpreted(
        """
@triton.jit
def kernel(out_ptr, m_ptr, s_ptr):
    i = tl.arange(0, 4)
    m, s = tl.load(m_ptr + i), tl.load(s_ptr + i)
    tl.store(out_ptr + i, tl.exp(s - m))
    tl.store(out_ptr + 4 + i, tl.exp(s - tl.where(m == float("-inf"), 0.0, m)))

inf = float("inf")
out = torch.empty(8)
kernel[(1,)](out, torch.tensor([2.5, -inf, 0.0, 1.0]), torch.tensor([-inf, -inf, -inf, 1.0]))
assert out[0] == 0 and out[1].isnan() and out[2] == 0 and out[3] == 1
assert out[4] == 0 and out[5] == 0 and out[6] == 0 and out[7] == 1
"""
    )


def test_the_numbers_of_the_rescaling_walkthrough():
    tiles = [([1.0, 3.0], [10.0, 20.0]), ([2.0, 5.0], [30.0, 40.0]), ([4.0, 0.0], [50.0, 60.0])]
    steps = item("m07.walk.rescale")["steps"]
    shown = iter(steps[1:])
    m, total, acc = -math.inf, 0.0, 0.0
    plain_acc = plain_l = 0.0
    for number, (scores, values) in enumerate(tiles):
        m_new = max(m, *scores)
        alpha = math.exp(m - m_new)
        p = [math.exp(s - m_new) for s in scores]
        own = sum(w * v for w, v in zip(p, values, strict=True))
        before = next(shown)["state"]
        assert (before["tile"], before["m"], before["alpha"]) == (str(number), f"{m_new:g}", f"{alpha:.4f}")
        assert float(before["l"]) == pytest.approx(total, abs=5e-5)
        assert float(before["acc"]) == pytest.approx(acc, abs=5e-5)
        if number == 1:  # a step of its own between rescaling and adding
            rescaled = next(shown)["state"]
            assert (rescaled["l"], rescaled["acc"]) == (f"{total * alpha:.4f}", f"{acc * alpha:.4f}")
        total, acc, m = total * alpha + sum(p), acc * alpha + own, m_new
        plain_acc, plain_l = plain_acc + own, plain_l + sum(p)
        after = next(shown)["state"]
        assert after["p"] == " ".join(f"{w:.4f}" for w in p)
        assert (after["l"], after["acc"]) == (f"{total:.4f}", f"{acc:.4f}")
    scores, values = ([x for tile in tiles for x in tile[i]] for i in (0, 1))
    weights = [math.exp(s - 5) for s in scores]
    whole = sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)
    assert acc / total == pytest.approx(whole)
    for figure in (whole, plain_acc / total, plain_acc / plain_l):
        assert f"{figure:.4f}" in steps[-1]["text"]


def test_the_kernel_of_the_walkthrough_is_right():
    interpreted(
        item("m07.walk.kernel")["stage"]
        + """
torch.manual_seed(0)
q, k, v = (torch.randn(n, 64).half() for n in (128, 100, 100))
out = torch.empty(128, 64).half()
flash[(2,)](q, k, v, out, 128, 100, 64**-0.5, D=64, BLOCK_M=64, BLOCK_N=64)
ref = torch.softmax(q.double() @ k.double().T / 8, -1) @ v.double()
assert (out.double() - ref).abs().max() < 2e-3
"""
    )


def test_dot_wants_operands_of_one_dtype_and_returns_float32():
    compiled(
        """
@triton.jit
def kernel(x_ptr, out_ptr, CAST: tl.constexpr):
    i = tl.arange(0, 32)
    v = tl.load(x_ptr + i[:, None] * 32 + i[None, :])
    p = v.to(tl.float32)
    if CAST:
        p = p.to(v.dtype)
    product = tl.dot(p, v)
    tl.static_assert(product.dtype == tl.float32)
    tl.store(out_ptr + i[:, None] * 32 + i[None, :], product)

x, out = torch.zeros(32, 32).half(), torch.zeros(32, 32)
kernel[(1,)](x, out, CAST=True)
try:
    kernel[(1,)](x, out, CAST=False)
except Exception as error:
    assert "same dtype" in str(error) + str(error.__cause__), error
else:
    raise AssertionError("two dtypes were accepted")
"""
    )


def test_exp_compiles_to_a_multiplication_and_exp2():
    compiled(
        """
@triton.jit
def kernel(x_ptr, out_ptr, TWO: tl.constexpr):
    i = tl.arange(0, 128)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.exp2(x) if TWO else tl.exp(x))

LOG2E = "0f3FB8AA3B"   # 1.44269502, as PTX writes a float32
x = torch.zeros(128)
natural, two = (kernel[(1,)](x, x, TWO=two).asm["ptx"] for two in (False, True))
assert "ex2.approx" in natural and LOG2E in natural
assert "ex2.approx" in two and LOG2E not in two
"""
    )


def test_causal_tiles_visited():
    """The walk over tiles as the solution does it, counted with the interpreter."""
    interpreted(
        """
@triton.jit
def kernel(visited_ptr, masked_ptr, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    pid = tl.program_id(0)
    below = pid * BLOCK_M // BLOCK_N * BLOCK_N
    stop = tl.minimum((pid + 1) * BLOCK_M, N)
    visited = 0
    masked = 0
    for first in range(0, below, BLOCK_N):
        visited += 1
    for first in range(below, stop, BLOCK_N):
        visited += 1
        masked += 1
    tl.store(visited_ptr + pid, visited)
    tl.store(masked_ptr + pid, masked)

visited, masked = torch.zeros(32, dtype=torch.int32), torch.zeros(32, dtype=torch.int32)
kernel[(32,)](visited, masked, 4096, BLOCK_M=128, BLOCK_N=128)
assert visited.tolist() == list(range(1, 33)) and visited.sum() == 528 and masked.sum() == 32
"""
    )


def test_stages_and_shared_memory_of_the_attention_solution():
    """Two and three stages of 128 x 128 tiles at D = 128 fit an SM (227 KiB), four do not; four warps spill."""
    source = (ROOT / "solutions/07-flash-attention/attention.py").read_text()
    compiled(
        source
        + """
from pathlib import Path
import subprocess, tempfile
q = torch.zeros(1, 1, 256, 128).half()
strides = q.stride() * 4

def build(stages, warps):
    return attention_kernel[(2, 1)](q, q, q, q, *strides, 1, 256, 256, 1.0, D=128, BLOCK_M=128, BLOCK_N=128,
                                    num_warps=warps, num_stages=stages)

two = build(2, 8)
assert "wgmma" in two.asm["ptx"]
assert 160 * 1024 <= two.metadata.shared < 161 * 1024
assert 224 * 1024 <= build(3, 8).metadata.shared <= 227 * 1024 < build(4, 8).metadata.shared

def stack_bytes(kernel):
    folder = Path(tempfile.mkdtemp())
    (folder / "k.cubin").write_bytes(kernel.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    usage = subprocess.run([tool, "-res-usage", folder / "k.cubin"], capture_output=True, text=True).stdout
    return int(usage.split("STACK:")[1].split()[0])

assert stack_bytes(two) == 0 and stack_bytes(build(2, 4)) > 0
"""
    )


DESCRIPTOR = """
@triton.jit
def kernel(x_ptr, out_ptr, N, D: tl.constexpr, B: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, shape=[N, D], strides=[D, 1], block_shape=[B, D])
    tile = desc.load([0, 0])
    tl.store(out_ptr + tl.arange(0, B)[:, None] * D + tl.arange(0, D)[None, :], tile)

x = torch.ones(16, 16).half()
out = torch.full((16, 16), 7.0).half()
compiled = kernel[(1,)](x, out, 10, D=16, B=16)
"""


def test_descriptor_loads_fill_zeros_and_use_the_copy_engine():
    interpreted(DESCRIPTOR + "assert (out[:10] == 1).all() and (out[10:] == 0).all()")
    compiled(DESCRIPTOR + "assert 'cp.async.bulk.tensor' in compiled.asm['ptx']")


def test_warp_specialization_on_hopper_needs_four_warps():
    compiled(
        """
@triton.jit
def kernel(x_ptr, out_ptr, N, SPLIT: tl.constexpr):
    desc = tl.make_tensor_descriptor(x_ptr, shape=[N, 64], strides=[64, 1], block_shape=[128, 64])
    a = desc.load([0, 0])
    acc = tl.zeros([128, 128], tl.float32)
    for first in tl.range(0, N, 128, warp_specialize=SPLIT):
        acc = tl.dot(a, desc.load([first, 0]).T, acc)
    i = tl.arange(0, 128)
    tl.store(out_ptr + i[:, None] * 128 + i[None, :], acc)

x, out = torch.zeros(512 * 64).half(), torch.zeros(128 * 128)
warps = lambda split, num_warps: kernel[(1,)](x, out, 512, SPLIT=split, num_warps=num_warps).metadata.num_warps
assert warps(False, 4) == 4
assert warps(True, 4) == 12
assert warps(True, 8) == 8
"""
    )


def test_sdpa_conventions():
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.bias import causal_lower_right

    assert {"MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"} <= set(SDPBackend.__members__)
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 1, 2, 8), torch.randn(1, 1, 5, 8), torch.randn(1, 1, 5, 8)
    sdpa = F.scaled_dot_product_attention
    plain = torch.softmax(q @ k.transpose(-1, -2) * 8**-0.5, -1) @ v
    assert torch.allclose(sdpa(q, k, v), plain, atol=1e-5)
    top_left = torch.ones(2, 5, dtype=torch.bool).tril()  # True takes part
    assert torch.allclose(sdpa(q, k, v, is_causal=True), sdpa(q, k, v, attn_mask=top_left), atol=1e-5)
    lower_right = torch.ones(2, 5, dtype=torch.bool).tril(3)
    assert torch.equal(causal_lower_right(2, 5)._materialize(), lower_right)
    one = q[:, :, :1]
    assert torch.allclose(sdpa(one, k, v, is_causal=True), v[:, :, :1], atol=1e-5)
    with sdpa_kernel(SDPBackend.MATH):
        nothing = sdpa(q, k, v, attn_mask=torch.zeros(2, 5, dtype=torch.bool))
    assert (nothing == 0).all()


def test_gradients_from_the_logsumexp_equal_autograd():
    torch.manual_seed(0)
    q, k, v = (torch.randn(n, 8, dtype=torch.float64, requires_grad=True) for n in (6, 10, 10))
    scale = 8**-0.5
    s = q @ k.T * scale
    out = torch.softmax(s, -1) @ v
    do = torch.randn_like(out)
    wanted = torch.autograd.grad(out, (q, k, v), do)
    with torch.no_grad():
        lse = s.amax(-1) + torch.log(torch.exp(s - s.amax(-1, keepdim=True)).sum(-1))
        p = torch.exp(q @ k.T * scale - lse[:, None])
        delta = (do * out).sum(-1, keepdim=True)
        ds = p * (do @ v.T - delta)
        found = scale * ds @ k, scale * ds.T @ q, p.T @ do
    assert all(torch.allclose(a, b) for a, b in zip(found, wanted, strict=True))


def test_partial_results_over_key_ranges_combine():
    torch.manual_seed(0)
    q, k, v = (torch.randn(n, 8, dtype=torch.float64) for n in (1, 100, 100))

    def part(a, b):
        s = q @ k[a:b].T
        m = s.amax(-1, keepdim=True)
        p = torch.exp(s - m)
        return m, p.sum(-1, keepdim=True), p @ v[a:b]

    def join(x, y):
        m = torch.maximum(x[0], y[0])
        return m, *(x[i] * torch.exp(x[0] - m) + y[i] * torch.exp(y[0] - m) for i in (1, 2))

    a, b, c = part(0, 13), part(13, 77), part(77, 100)
    wanted = torch.softmax(q @ k.T, -1) @ v
    for _, total, acc in (join(join(a, b), c), join(a, join(b, c)), join(join(c, a), b)):
        assert torch.allclose(acc / total, wanted)
