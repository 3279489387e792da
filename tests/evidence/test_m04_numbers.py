"""What module 4 says about number formats, variances and the logarithm of a softmax."""

import math

import torch

from tests.evidence.run import compiled, interpreted


def test_range_and_spacing_of_the_formats():
    limits = {d: (torch.finfo(d).max, torch.finfo(d).eps) for d in (torch.float16, torch.bfloat16)}
    assert limits[torch.float16] == (65504.0, 2.0**-10) and limits[torch.bfloat16][1] == 2.0**-7
    assert limits[torch.bfloat16][0] > 3.38e38
    e4m3, e5m2 = torch.finfo(torch.float8_e4m3fn), torch.finfo(torch.float8_e5m2)
    assert (e4m3.max, e4m3.eps, e5m2.max, e5m2.eps) == (448.0, 0.125, 57344.0, 0.25)

    def rounded(value, *dtypes):
        return [torch.tensor(value).to(d).float().item() for d in dtypes]

    formats = (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
    assert [f"{v:.8g}" for v in rounded(1 / 3, *formats)] == ["0.33325195", "0.33398438", "0.34375", "0.3125"]
    assert rounded(math.pi, *formats) == [3.140625, 3.140625, 3.25, 3.0]
    assert [rounded(1000.1, d)[0] for d in (formats[0], formats[1], formats[3])] == [1000.0, 1000.0, 1024.0]
    for dtype, counts_to in zip((torch.float32, *formats), (2**24, 2048, 256, 16, 8), strict=True):
        assert rounded(float(counts_to), dtype) == [counts_to] == rounded(counts_to + 1.0, dtype)
        assert rounded(counts_to - 1.0, dtype) == [counts_to - 1]
    assert rounded(70000.0, torch.bfloat16)[0] < 71000 and rounded(70000.0, torch.float16) == [math.inf]
    assert rounded(1.001, torch.float16)[0] > 1 == rounded(1.001, torch.bfloat16)[0]
    bits = torch.tensor(math.pi).to(torch.bfloat16).view(torch.int16).int() << 16
    assert bits.view(torch.float32).item() == 3.140625  # the upper half of a float32
    assert rounded(2.0**-25, torch.float16) == [0.0] and rounded(2.0**-24, torch.float16)[0] > 0
    assert rounded(2.0**-9, torch.float8_e4m3fn)[0] > 0 == rounded(2.0**-10, torch.float8_e4m3fn)[0]


def test_a_bfloat16_sum_stands_still():
    for dtype, value, end in ((torch.bfloat16, 0.75, 256.0), (torch.float16, 0.9, 2048.0)):
        total = torch.zeros((), dtype=dtype)
        for _ in range(4096):
            total += torch.tensor(value, dtype=dtype)
        assert total.item() == end
    torch.manual_seed(0)
    total, terms = torch.zeros((), dtype=torch.bfloat16), torch.rand(4096).bfloat16()
    for term in terms:
        total += term
    assert total.item() == 256.0 and 1900 < terms.double().sum() < 2200


FP8 = """
@triton.jit
def store(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float8e4nv))
@triton.jit
def widen(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float32) * 2)
@triton.jit
def add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x + x)
@triton.jit
def fold(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))
wide, narrow = torch.zeros(128), torch.zeros(128).to(torch.float8_e4m3fn)
def refused(kernel, x, out):
    try:
        kernel[(1,)](x, out, BLOCK=128)
    except Exception as error:
        return str(error)
    return ""
"""


def test_eight_bit_floats_are_for_storage():
    source = """
assert "cvt.rn.satfinite.e4m3x2" in store[(1,)](wide, narrow, BLOCK=128).asm["ptx"]
assert not refused(widen, narrow, wide)
assert refused(add, narrow, wide) and refused(fold, narrow, wide)
"""
    compiled(FP8 + source)
    assert "not supported in this architecture" in compiled(FP8 + "print(refused(store, wide, narrow))", "sm_80")


def test_the_interpreter_rounds_eight_bit_floats_wrongly():
    source = (
        FP8
        + """
x, out = torch.tensor([17.0, 500.0]), torch.zeros(2)
@triton.jit
def there_and_back(x_ptr, out_ptr):
    i = tl.arange(0, 2)
    tl.store(out_ptr + i, tl.load(x_ptr + i).to(tl.float8e4nv).to(tl.float32))
there_and_back[(1,)](x, out)
print(*out.tolist())
"""
    )
    assert interpreted(source).split() == ["18.0", "256.0"]
    assert torch.tensor(17.0).to(torch.float8_e4m3fn).float().item() == 16.0


def test_a_padded_zero_enters_the_variance():
    source = """
@triton.jit
def variance(x_ptr, out_ptr, n, AGAIN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    d = x - tl.sum(x, axis=0) / n
    if AGAIN:
        d = tl.where(i < n, d, 0.0)
    tl.store(out_ptr, tl.sum(d * d, axis=0) / n)
    tl.store(out_ptr + 1, tl.sum(x * x, axis=0) / n)
x, out = torch.tensor([1., 2., 3.]), torch.zeros(2)
variance[(1,)](x, out, 3, AGAIN=False, BLOCK=4)
assert out[0].item() == 2.0 and abs(out[1].item() - 14 / 3) < 1e-6  # squares of 0 add nothing
variance[(1,)](x, out, 3, AGAIN=True, BLOCK=4)
assert abs(out[0].item() - 2 / 3) < 1e-6
"""
    interpreted(source)


def test_the_difference_of_means_cancels():
    torch.manual_seed(0)
    noise = torch.randn(4096)
    for mean, at_least in ((0.0, 0.0), (1000.0, 1e-3), (4096.0, 0.1), (10000.0, 0.5)):
        x = noise + mean
        true = x.double().var(unbiased=False).item()
        difference = (x.square().mean() - x.mean().square()).item()
        assert abs(difference - true) >= at_least, (mean, difference)
        assert abs((x - x.mean()).square().mean().item() - true) < 1e-3
        assert mean or abs(difference - true) < 1e-5
    x = torch.tensor([1e4, 30000.0])
    following = torch.nextafter(x.square(), torch.tensor(math.inf)) - x.square()
    assert following.tolist() == [8.0, 64.0]


def test_partial_means_merge():
    def parts(values):
        mean = sum(values) / len(values)
        return len(values), mean, sum((v - mean) ** 2 for v in values)

    (n1, u1, q1), (n2, u2, q2) = parts([1.0, 3.0]), parts([2.0, 5.0, 8.0])
    assert (n1, u1, q1, n2, u2, q2) == (2, 2, 2, 3, 5, 18)
    n, d = n1 + n2, u2 - u1
    merged = (n, u1 + d * n2 / n, q1 + q2 + d * d * n1 * n2 / n)
    assert all(math.isclose(a, b) for a, b in zip(merged, parts([1.0, 3.0, 2.0, 5.0, 8.0]), strict=True))
    assert math.isclose(merged[1], 3.8) and math.isclose(merged[2], 30.8)


def test_the_gradient_of_layer_norm_needs_two_means():
    torch.manual_seed(0)
    x, weight, grad = (
        torch.randn(5, 7, dtype=torch.float64).requires_grad_(),
        torch.randn(7).double(),
        torch.randn(5, 7).double(),
    )
    torch.layer_norm(x, (7,), weight, None, 1e-5).backward(grad)
    with torch.no_grad():
        rstd = (x.var(1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
        h, g = (x - x.mean(1, keepdim=True)) * rstd, grad * weight
        layer = rstd * (g - g.mean(1, keepdim=True) - h * (g * h).mean(1, keepdim=True))
    assert torch.allclose(x.grad, layer)
    x.grad = None
    (x * (x.square().mean(1, keepdim=True) + 1e-5).rsqrt() * weight).backward(grad)
    with torch.no_grad():
        rstd = (x.square().mean(1, keepdim=True) + 1e-5).rsqrt()
        h = x * rstd
        assert torch.allclose(x.grad, rstd * (g - h * (g * h).mean(1, keepdim=True)))


def test_log_of_softmax_loses_what_log_sum_exp_keeps():
    z = torch.tensor([0.0, 200.0])
    assert torch.softmax(z, 0).log()[0] == -math.inf
    m = z.max()
    assert (m + torch.log(torch.exp(z - m).sum()) - z[0]).item() == 200.0
    assert torch.exp(torch.tensor(-104.5)).item() == 0.0 and torch.exp(torch.tensor(-100.0)).item() > 0


def test_the_gradient_of_cross_entropy_is_softmax_minus_one_hot():
    torch.manual_seed(0)
    z, target = torch.randn(4, 9, requires_grad=True), torch.tensor([2, -100, 8, 0])
    loss = torch.nn.functional.cross_entropy(z, target, reduction="none", ignore_index=-100)
    loss.sum().backward()
    with torch.no_grad():
        wanted = torch.exp(z - torch.logsumexp(z, 1, keepdim=True))
        kept = target != -100
        wanted[kept, target[kept]] -= 1
        wanted[~kept] = 0
    assert torch.allclose(z.grad, wanted, atol=1e-6) and loss[1] == 0
    mean = torch.nn.functional.cross_entropy(z, target, ignore_index=-100)
    assert torch.allclose(mean, loss.sum() / 3)


def test_a_cap_turns_minus_inf_into_a_logit():
    source = """
@triton.jit
def capped(x_ptr, out_ptr, n, cap, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=-float("inf"))
    tl.store(out_ptr + i, cap * (2 * tl.sigmoid(2 * x / cap) - 1))
out = torch.zeros(4)
capped[(1,)](torch.zeros(3), out, 3, 2.0, BLOCK=4)
assert out.tolist() == [0.0, 0.0, 0.0, -2.0]
assert not hasattr(tl, "tanh")
"""
    interpreted(source)
