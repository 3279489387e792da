"""Module 8: layer norm's gradients, breaks and recompilations, AMD, Gluon."""

import functools
import json
import math

import torch
import yaml

from tests.evidence.run import compiled, interpreted
from tests.evidence.test_m07 import ROOT
from tests.evidence.test_m07_counts import SASS
from tests.evidence.test_m08 import TRACED


def item(name: str) -> dict:
    module = yaml.load((ROOT / "modules" / "08-pytorch-integration.yaml").read_text(), Loader=yaml.CSafeLoader)
    return next(item for item in module["items"] if item["id"] == name)


def test_layer_norm_gradients_of_the_walkthrough():
    x = torch.tensor([[1.0, 3.0, 5.0, 7.0]], dtype=torch.float64, requires_grad=True)
    weight, bias = (torch.tensor([value] * 4, dtype=torch.float64, requires_grad=True) for value in (1.0, 0.0))
    out = torch.nn.functional.layer_norm(x, (4,), weight, bias, 0.0)
    grad = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    grad_x, grad_weight, grad_bias = torch.autograd.grad(out, (x, weight, bias), grad)
    xhat, rstd = (x.detach() - 4) / math.sqrt(5), 1 / math.sqrt(5)
    along_one, along_xhat = grad.mean(), (grad * xhat).mean()
    assert torch.allclose(grad_x, rstd * (grad - along_one - xhat * along_xhat))
    assert abs(grad_x.sum()) < 1e-12 and abs((grad_x * xhat).sum()) < 1e-12
    assert torch.equal(grad_bias, grad[0]) and torch.allclose(grad_weight, (grad * xhat)[0])
    assert grad_x.abs().min() > 0.04  # everyone has a gradient
    shown = item("m08.walk.layer-norm")["steps"][-1]["state"]
    assert shown["xhat"] == " ".join(f"{v:.2f}" for v in xhat[0].tolist())
    assert shown["grad_x"] == " ".join(f"{v:.2f}" for v in grad_x[0].tolist())
    assert (shown["along_one"], shown["along_xhat"]) == (f"{along_one:.4f}", f"{along_xhat:.4f}")
    assert f"{rstd:.4f}" == "0.4472" and f"{grad_x[0, 0]:.4f}" == "0.1342"


def test_padded_lanes_of_xhat():
    interpreted(
        """
@triton.jit
def kernel(x_ptr, out_ptr, n):
    i = tl.arange(0, 8)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(out_ptr + i, x - tl.sum(x, axis=0) / n)
out = torch.empty(8)
kernel[(1,)](torch.tensor([1.0, 2.0, 3.0, 6.0, 8.0]), out, 5)
assert out[5:].tolist() == [-4, -4, -4]   # not 0
"""
    )


def test_registers_of_the_layer_norm_backward():
    out = compiled(
        (ROOT / "solutions/08-pytorch-integration/layer_norm_backward.py").read_text()
        + SASS.replace('r"REG:', 'r"STACK:').replace("def registers", "def stack")
        + SASS
        + """
for n, warps in ((8192, 4), (8192, 8), (8192, 16), (8192, 32), (16384, 16), (16384, 32)):
    x, f = torch.zeros(64, n).bfloat16(), torch.zeros(64, n)
    kernel = backward_kernel[(64,)](x, x, f, f, x, x, f, f, 64, n, BLOCK_N=n, num_warps=warps)
    print(registers(kernel), stack(kernel))
"""
    )
    registers, stacks = zip(*(map(int, line.split()) for line in out.splitlines()), strict=True)
    assert [size > 0 for size in stacks] == [True, False, False, False, True, True]  # 5 * 16384 numbers fit nowhere
    assert list(registers[:4]) == sorted(registers[:4], reverse=True)
    assert registers[0] == 255 and registers[1] > 200 and 96 <= registers[2] <= 128 and registers[3] <= 64


def test_two_sigmoids():
    interpreted(
        """
@triton.jit
def kernel(x_ptr, out_ptr, KIND: tl.constexpr):
    i = tl.arange(0, 4)
    x = tl.load(x_ptr + i)
    if KIND == 0:
        y = x * tl.exp(x) / (1 + tl.exp(x))
    elif KIND == 1:
        y = x / (1 + tl.exp(-x))
    else:
        y = x * tl.sigmoid(x)
    tl.store(out_ptr + i, y)
def run(kind):
    out = torch.empty(4)
    kernel[(1,)](torch.tensor([-100.0, 1.0, 88.0, 89.0]), out, KIND=kind)
    return out
assert run(0).isnan().tolist() == [False, False, False, True]
for kind in (1, 2):
    assert not run(kind).isnan().any() and run(kind)[0].abs() < 1e-40 and run(kind)[3] == 89
"""
    )


def test_contiguous_returns_the_same_tensor():
    x = torch.zeros(4, 3)
    assert x.contiguous() is x and x.t().contiguous().data_ptr() != x.data_ptr()


@functools.cache
def traced_facts() -> dict[str, list[int]]:
    return json.loads(
        compiled(
            TRACED
            + """
import json
import torch._dynamo.config
def prints(x):
    y = bare(x)
    print("here", end="")
    return torch.relu(y)
def branches(x):
    y = bare(x)
    if y.sum() > 0:
        y = y + 1
    return torch.relu(y)
def whole(x):
    out = torch.empty_like(x)
    square_kernel[(1,)](x, out, x.numel(), BLOCK=triton.next_power_of_2(x.numel()))
    return out

facts = {"limit": [torch._dynamo.config.recompile_limit]}
for function in (bare, prints, branches):
    torch._dynamo.reset()
    report = torch._dynamo.explain(function)(x)
    facts[function.__name__] = [report.graph_count, report.graph_break_count, len(report.break_reasons)]
for function in (bare, whole):
    torch._dynamo.reset()
    graphs, counts = [], []
    def keep(graph, inputs):
        graphs.append(graph)
        return graph.forward
    traced = torch.compile(function, backend=keep, fullgraph=True)
    for n in (5, 6, 7, 9, 17, 33):
        traced(torch.ones(n))
        counts.append(len(graphs))
    facts["sizes, " + function.__name__] = counts
print()
print(json.dumps(facts))
"""
        ).splitlines()[-1]
    )


def test_explain_counts_breaks():
    facts = traced_facts()
    assert facts["bare"] == [1, 0, 0] and facts["prints"] == facts["branches"] == [2, 1, 1]


def test_sizes_that_recompile():
    facts = traced_facts()
    assert facts["sizes, bare"] == [1, 2, 2, 2, 2, 2] and facts["sizes, whole"] == [1, 2, 2, 3, 4, 5]
    assert facts["limit"] == [8]


def test_the_hunt_of_the_walkthrough():
    stage = item("m08.walk.hunt")["stage"]
    first = stage.replace("/ BLOCK)", "/ N)").replace("row_mean", "row_mean_1").replace("def mean", "def mean_1")
    second = first.replace("_1", "_2").replace("row * N", "row * stride").replace("N, BLOCK:", "N, stride, BLOCK:")
    second = second.replace("out, N, BLOCK=", "out, N, x.stride(0), BLOCK=")
    interpreted(
        "\n".join((stage, first, second))
        + """
torch.manual_seed(0)
big = torch.randn(4, 128)[:, :100]
wrong = lambda out: not torch.isclose(out, big.mean(1), rtol=1e-3).any()
wide = torch.tensor([[0.0, 1, 2, 3], [10, 11, 12, 13]])
assert wrong(mean(big)) and mean(torch.ones(1, 4)).item() == 1 and mean(torch.ones(1, 3)).item() == 0.75
assert mean_1(torch.ones(1, 3)).item() == 1 and not torch.allclose(mean_1(big), big.mean(1))
assert mean_1(wide[:, :3].contiguous()).tolist() == [1, 11] and mean_1(wide[:, :3]).tolist() == [1, 8]
assert mean_2(wide[:, :3]).tolist() == [1, 11] and torch.allclose(mean_2(big), big.mean(1))
"""
    )


def test_static_print_says_it_once_and_device_print_stays():
    out = compiled(
        """
@triton.jit
def kernel(idx_ptr, BLOCK: tl.constexpr):
    tl.static_print("BLOCK is", BLOCK)
    tl.static_assert(BLOCK % 16 == 0)
    idx = tl.load(idx_ptr + tl.arange(0, 16))
    tl.device_print("idx", idx)
    tl.device_assert(idx < 5, "idx out of range")
idx = torch.zeros(16, dtype=torch.int32)
first, second = kernel[(1,)](idx, BLOCK=16), kernel[(1,)](idx + 7, BLOCK=16)
assert first is second
assert "vprintf" in first.asm["ptx"] and "idx out of range" not in first.asm["ttir"]
try:
    kernel[(1,)](idx, BLOCK=24)
except Exception as error:
    assert "static" in (str(error) + str(error.__cause__)).lower()
else:
    raise AssertionError("compiled")
"""
    )
    assert out.count("BLOCK is 16") == 1


PRODUCT = """
import json
@triton.jit
def product(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros([BM, BN], tl.float32)
    for first in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (first + k)[None, :])
        b = tl.load(b_ptr + (first + k)[:, None] * BN + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * BN + n[None, :], acc)

a, c = torch.zeros(1024 * 128).half(), torch.zeros(128, 128)
def build(stages, depth=64, **options):
    return product[(1,)](a, a, c, 1024, BM=128, BN=128, BK=depth, num_warps=4, num_stages=stages, **options)
facts = {"shared": [build(stages).metadata.shared // 1024 for stages in (1, 2, 3, 4)],
         "shallow": build(4, depth=32).metadata.shared, "warp": build(2).metadata.warp_size, "asm": list(build(2).asm)}
try:
    build(2, waves_per_eu=2, matrix_instr_nonkdim=16)
    facts["options"] = "taken"
except KeyError as error:
    facts["options"] = str(error)
"""
ON_AMD = """
@triton.jit
def dot8(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    offs = i[:, None] * 64 + i[None, :]
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.dot(x, x))
@triton.jit
def described(x_ptr, out_ptr):
    tile = tl.make_tensor_descriptor(x_ptr, shape=[64, 64], strides=[64, 1], block_shape=[64, 64]).load([0, 0])
    tl.store(out_ptr + tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :], tile)
def eight_bits(dtype):
    return dot8[(1,)](torch.zeros(64, 64).to(dtype), c).asm["amdgcn"]
facts["matrix"] = "v_mfma_f32" in build(2).asm["amdgcn"]
facts["e4m3fn is multiplied as fp16"] = "_f16" in eight_bits(torch.float8_e4m3fn) and "fp8_fp8" not in eight_bits(
    torch.float8_e4m3fn)
facts["e4m3fnuz has its own"] = "fp8_fp8" in eight_bits(torch.float8_e4m3fnuz)
text = described[(1,)](torch.zeros(64, 64).half(), torch.zeros(64, 64).half()).asm["amdgcn"]
facts["descriptor"] = "buffer_load" in text or "global_load" in text or "flat_load" in text
"""


def test_what_changes_on_amd():
    nvidia = json.loads(compiled(PRODUCT + "print(json.dumps(facts))"))
    amd = json.loads(compiled(PRODUCT + ON_AMD + "print(json.dumps(facts))", "gfx942"))
    assert (nvidia["warp"], amd["warp"]) == (32, 64)
    assert nvidia["asm"][-2:] == ["ptx", "cubin"] and amd["asm"][-2:] == ["amdgcn", "hsaco"]
    assert nvidia["shared"] == [32, 64, 96, 128] and amd["shared"] == [16, 32, 64, 96]
    assert (nvidia["shallow"], amd["shallow"]) == (65536, 49152)
    assert "unrecognised" in nvidia["options"] and amd["options"] == "taken"
    assert all(value for name, value in amd.items() if isinstance(value, bool)), amd


def test_gluon_makes_layouts_yours():
    compiled(
        """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia import hopper
assert all(hasattr(gl, name) for name in ("allocate_shared_memory", "warp_specialize", "convert_layout"))
assert all(hasattr(hopper, name) for name in ("tma", "mbarrier", "warpgroup_mma"))

@gluon.jit
def copy(x_ptr, out_ptr, n, BLOCK: gl.constexpr, PER: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([PER], [32], [gl.num_warps()], [0])
    offs = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    x = gl.load(x_ptr + offs, mask=offs < n)
    gl.store(out_ptr + offs, x, mask=offs < n)

@gluon.jit
def mixed(x_ptr, CONVERT: gl.constexpr):
    a: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    b: gl.constexpr = gl.BlockedLayout([4], [32], [4], [0])
    i, j = gl.arange(0, 512, layout=a), gl.arange(0, 512, layout=b)
    if CONVERT:
        gl.store(x_ptr + j, gl.convert_layout(gl.load(x_ptr + i), b))
    else:
        gl.store(x_ptr + i, i + j)

x = torch.zeros(4096)
for per, loads, width in ((1, 8, "ld.global.b32"), (4, 2, "ld.global.v4.b32")):
    ptx = copy[(4,)](x, x, 4096, BLOCK=1024, PER=per, num_warps=4).asm["ptx"]
    assert ptx.count("ld.global") == loads and width in ptx
converted = mixed[(1,)](x, CONVERT=True)
assert converted.metadata.shared > 0 and "bar" in converted.asm["ptx"]
try:
    mixed[(1,)](x, CONVERT=False)
except Exception as error:
    assert "Layout mismatch" in str(error) + str(error.__cause__)
else:
    raise AssertionError("two layouts were added")
import os
os.environ["TRITON_INTERPRET"] = "1"
def nothing():
    pass
assert "Interpreted" in type(triton.jit(nothing)).__name__
assert "Interpreted" not in type(gluon.jit(nothing)).__name__
"""
    )
