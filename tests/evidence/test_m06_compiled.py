"""What module 6 says about compiled matmul kernels: what is refused, precision, tensor cores, shared memory."""

from __future__ import annotations

import triton

from tests.evidence.matmul_source import ATTEMPT, kernel
from tests.evidence.run import compiled, interpreted

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])


def test_accumulator_type_must_not_change() -> None:
    half = kernel(dot="acc + tl.dot(a, b)").replace("dtype=tl.float32", "dtype=tl.float16")
    cast = kernel("_cast", dot="(acc + tl.dot(a, b)).to(tl.float16)").replace("dtype=tl.float32", "dtype=tl.float16")
    ones = "ones = torch.ones(32, 32).half()\n"
    interpreted(half + ones + "matmul(ones, ones)\n")
    attempts = """
print(attempt(lambda: matmul(ones, ones), "Loop-carried variable acc"), attempt(lambda: matmul_cast(ones, ones)))
"""
    assert compiled(half + cast + ATTEMPT + ones + attempts).split() == ["refused", "ok"]


def test_fp16_accumulator_across_versions() -> None:
    variants = kernel(dot="tl.dot(a, b, acc)") + kernel("_asked", dot="tl.dot(a, b, acc, out_dtype=tl.float16)")
    attempts = """
ones = torch.ones(32, 32).half()
print(attempt(lambda: matmul_asked(ones, ones)), attempt(lambda: matmul(ones, ones)))
"""
    out = compiled(variants.replace("dtype=tl.float32", "dtype=tl.float16") + ATTEMPT + attempts).split()
    assert out[0] == "ok"
    assert out[1] == ("ok" if VERSION >= (3, 8) else "refused")


def test_fp32_dot_defaults_to_tf32() -> None:
    variants = {
        "": "tl.dot(a, b, acc)",
        "_ieee": 'tl.dot(a, b, acc, input_precision="ieee")',
        "_three": 'tl.dot(a, b, acc, input_precision="tf32x3")',
        "_old": "tl.dot(a, b, acc, allow_tf32=False)",
        "_both": 'tl.dot(a, b, acc, input_precision="ieee", allow_tf32=False)',
    }
    out = compiled(
        "".join(kernel(name, dot=dot) for name, dot in variants.items())
        + ATTEMPT
        + """
ones = torch.ones(64, 64)
for multiply in (matmul, matmul_ieee, matmul_three, matmul_old):
    ptx = multiply(ones, ones, 64, 64, 32).asm["ptx"]
    print(ptx.count("wgmma.mma_async"), ".tf32" in ptx, "fma.rn.f32" in ptx)
print(attempt(lambda: matmul_both(ones, ones), "Only one of input_precision and allow_tf32"))
"""
    ).split("\n")
    products, *rest = out[0].split()
    assert int(products) > 0 and rest == ["True", "False"]
    assert out[1].split() == ["0", "False", "True"]
    assert int(out[2].split()[0]) == 3 * int(products)
    assert out[3:5] == [out[1], "refused"]


def test_tensor_core_instructions() -> None:
    call = "a = torch.ones(256, 256).half()\n"
    large = call + "print('wgmma' in matmul(a, a, 128, 256, 64, num_warps=8).asm['ptx'])\n"
    small = call + "p = matmul(a, a, 32, 32, 32).asm['ptx']; print('wgmma' in p, 'mma.sync' in p)\n"
    ieee = kernel(dot='tl.dot(a, b, acc, input_precision="ieee")')
    assert compiled(ieee + large + small).split() == ["True", "False", "True"]
    ampere = call + "p = matmul(a, a, 128, 128, 32).asm['ptx']; print('wgmma' in p, 'mma.sync.aligned.m16n8k16' in p)\n"
    assert compiled(kernel() + ampere, "sm_80").split() == ["False", "True"]
    blackwell = call + "print('tcgen05.mma' in matmul(a, a, 128, 256, 64, num_warps=8).asm['ptx'])\n"
    assert compiled(kernel() + blackwell, "sm_100").split() == ["True"]


def test_smallest_dot() -> None:
    out = compiled(
        kernel()
        + ATTEMPT
        + """
for dtype, tile in (("float16", (16, 16, 16)), ("float16", (64, 64, 8)), ("float16", (1, 16, 32)), ("float32", (16, 16, 8))):
    a = torch.ones(64, 64, dtype=getattr(torch, dtype))
    print(attempt(lambda: matmul(a, a, *tile), "M >= 1, N >= 1 and K >="))
"""
    ).split()
    assert out[:3] == ["ok", "refused", "ok"]
    assert out[3] == ("ok" if VERSION >= (3, 8) else "refused")
    interpreted(kernel() + "a = torch.ones(64, 64).half()\nassert torch.equal(matmul(a, a, 64, 64, 8), a @ a)\n")


def test_stages_multiply_shared_memory() -> None:
    out = compiled(
        kernel()
        + """
a = torch.ones(256, 256).half()
for stages in (1, 2, 3, 4, 5):
    k = matmul(a, a, 128, 256, 64, num_warps=8, num_stages=stages)
    print(k.metadata.shared, 'cp.async' in k.asm['ptx'])
print(matmul(a, a, 128, 128, 64, num_warps=8, num_stages=4).metadata.shared)
"""
    )
    ampere = compiled(
        kernel()
        + """
a = torch.ones(256, 256).half()
print(matmul(a, a, 128, 256, 64, num_warps=8, num_stages=3).metadata.shared)
print(matmul(a, a, 128, 128, 64, num_warps=8, num_stages=4).metadata.shared)
""",
        "sm_80",
    )
    assert ampere.split() == ["98304", "98304"]
    lines = out.split("\n")
    assert [int(line.split()[0]) for line in lines[:5]] == [49_152 * stages for stages in (1, 2, 3, 4, 5)]
    assert [line.split()[1] for line in lines[:5]] == ["False", "True", "True", "True", "True"]
    assert int(lines[5]) == 131_072
    assert 196_608 < 227 * 1024 < 245_760


def test_eight_warps_hold_a_128x256_accumulator() -> None:
    out = compiled(
        kernel()
        + """
import os, re, subprocess, tempfile
tool = os.path.join(os.path.dirname(triton.__file__), "backends", "nvidia", "bin", "cuobjdump")
a = torch.ones(256, 256).half()
for tile, warps in (((128, 256, 64), 4), ((128, 256, 64), 8), ((128, 128, 64), 4)):
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(matmul(a, a, *tile, num_warps=warps, num_stages=3).asm["cubin"])
        file.flush()
        usage = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    print(*re.search(r"REG:(\\d+) STACK:(\\d+)", usage).groups())
"""
    )
    (four, spilled), (eight, none), (square, also_none) = [map(int, line.split()) for line in out.split("\n")[:3]]
    assert four == 255 and spilled > 0
    assert abs(eight - 203) <= 4 and none == 0
    assert abs(square - 208) <= 4 and also_none == 0


def test_descriptors_made_in_the_kernel_need_scratch_memory() -> None:
    source = """
from triton.runtime._allocation import NullAllocator
@triton.jit
def copy(x, y):
    desc = tl.make_tensor_descriptor(x, shape=[16, 16], strides=[16, 1], block_shape=[16, 16])
    tl.store(y + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], desc.load([0, 0]))

a = torch.ones(16, 16).half()
print(copy[(1,)](a, a).metadata.global_scratch_size > 0)
try:
    NullAllocator()(128, 128, None)      # what is in place until triton.set_allocator is called
except RuntimeError as error:
    print("triton.set_allocator" in str(error))
"""
    assert compiled(source, "sm_90").split() == ["True", "True"]
    assert compiled(source, "sm_100").split() == ["True", "True"]
    assert compiled(source, "sm_80").split() == ["False", "True"]


def test_block_pointers_end_in_3_9() -> None:
    source = """
import warnings
@triton.jit
def copy(x, y):
    block = tl.make_block_ptr(x, (16,), (1,), (0,), (16,), (0,))
    tl.store(y + tl.arange(0, 16), tl.load(block))

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        copy[(1,)](torch.ones(16), torch.ones(16))
        print("ran", any("make_block_ptr is deprecated" in str(w.message) for w in caught))
    except Exception as error:
        print("raised", "have been removed" in str(error) or "have been removed" in str(error.__cause__))
"""
    expected = {(3, 6): ["ran", "False"], (3, 7): ["ran", "True"], (3, 8): ["ran", "True"]}.get(
        VERSION, ["raised", "True"]
    )
    assert compiled(source).split() == expected
