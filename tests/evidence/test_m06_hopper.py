"""What module 6 says about descriptors and warp specialisation on Hopper, read off kernels compiled for sm_90."""

from __future__ import annotations

from tests.evidence.matmul_source import ATTEMPT, kernel
from tests.evidence.run import compiled
from tests.evidence.test_m05_resources import USAGE

DESCRIPTORS = r"""
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WARPS: tl.constexpr):
    a_desc = tl.make_tensor_descriptor(a_ptr, shape=[M, K], strides=[K, 1], block_shape=[BM, BK])
    b_desc = tl.make_tensor_descriptor(b_ptr, shape=[K, N], strides=[N, 1], block_shape=[BK, BN])
    c_desc = tl.make_tensor_descriptor(c_ptr, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    m, n = tl.program_id(0) // tl.cdiv(N, BN) * BM, tl.program_id(0) % tl.cdiv(N, BN) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, warp_specialize=WARPS):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc)
    c_desc.store([m, n], acc.to(tl.float16))

a = torch.ones(256, 256).half()
def described(BM, BN, specialise=False, **options):
    return product[(4,)](a, a, a, 256, 256, 256, BM=BM, BN=BN, BK=64, WARPS=specialise, num_stages=3, **options)

def threads(k):
    return int(re.search(r"\.(?:req|max)ntid (\d+)", k.asm["ptx"]).group(1))
"""


def test_descriptors_save_registers() -> None:
    out = compiled(
        USAGE
        + kernel()
        + DESCRIPTORS
        + """
pointers, descriptors = matmul(a, a, 128, 256, 64, num_warps=8, num_stages=3), described(128, 256, num_warps=8)
for k in (pointers, descriptors):
    print(*usage(k), int("cp.async.c" in k.asm["ptx"]), int("cp.async.bulk.tensor" in k.asm["ptx"]))
"""
    )
    pointers, descriptors = [[int(word) for word in line.split()] for line in out.strip().split("\n")]
    assert abs(pointers[0] - 203) <= 6 and abs(descriptors[0] - 154) <= 12 and pointers[1] == descriptors[1] == 0
    assert pointers[2] == 147_456 and 0 < descriptors[2] - 147_456 < 1024  # a few barriers besides the tiles
    assert pointers[3:] == [1, 0] and descriptors[3:] == [0, 1]


def test_warp_specialization_adds_warps_and_needs_four() -> None:
    out = compiled(
        USAGE
        + DESCRIPTORS
        + """
for warps, asked in ((4, False), (4, True), (8, True)):
    k = described(128, 128, asked, num_warps=warps)
    print(threads(k), int("setmaxnreg" in k.asm["ptx"]), int("ttg.warp_specialize" in k.asm["ttgir"]), k.metadata.shared)
"""
    )
    plain, special, eight = [[int(word) for word in line.split()] for line in out.strip().split("\n")]
    assert plain[:3] == [128, 0, 0]
    assert special[:3] == [384, 1, 1]
    assert eight[:3] == [256, 0, 0]  # asked for, and dropped without a word


def test_warp_specialization_wants_descriptor_loads() -> None:
    ask = "in tl.range(0, tl.cdiv(K, BK), warp_specialize=True):"
    looped = kernel("_asked").replace("in range(0, tl.cdiv(K, BK)):", ask)
    out = compiled(
        looped
        + ATTEMPT
        + """
a = torch.ones(256, 256).half()
print(attempt(lambda: matmul_asked(a, a, 128, 128, 64, num_warps=4, num_stages=3), "PassManager::run failed"))
"""
    )
    assert out.split() == ["refused"]
