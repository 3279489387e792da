"""What module 6 says about dtypes on the tensor cores: instructions, 8-bit operands and their layout, ranges."""

from __future__ import annotations

import torch

from tests.evidence.matmul_source import ATTEMPT, kernel
from tests.evidence.run import ROOT, compiled, interpreted

INSTRUCTIONS = r"""
import re
def instruction(k):
    return min(re.findall(r"wgmma\.mma_async\S+|mma\.sync\S+", k.asm["ptx"]), default="none")

h = torch.zeros(128, 128, dtype=torch.float16)
def made(dtype, b_of=lambda x: x.t()):
    x = h.to(getattr(torch, dtype))
    return (matmul_whole if dtype == "int8" else matmul)(x, b_of(x), 64, 64, 64, num_warps=4)
"""
WHOLE = (
    kernel("_whole", dot="tl.dot(a, b, acc, out_dtype=tl.int32)")
    .replace("dtype=tl.float32", "dtype=tl.int32")
    .replace("dtype=a.dtype)", "dtype=torch.int32)")
)
MATMULS = kernel() + WHOLE + INSTRUCTIONS


def test_a_row_of_the_instruction_is_32_bytes_whatever_the_dtype() -> None:
    out = compiled(
        MATMULS
        + """
for dtype in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8"):
    print(instruction(made(dtype)))
"""
    ).split()
    names = [line.rsplit(".", 4)[1:] for line in out]
    assert [name[0] for name in names] == ["m64n64k8", "m64n64k16", "m64n64k16", "m64n64k32", "m64n64k32", "m64n64k32"]
    assert [name[1] for name in names] == ["f32"] * 5 + ["s32"]
    assert [name[2] for name in names] == ["tf32", "f16", "bf16", "e4m3", "e5m2", "s8"]


def test_ampere_has_no_e4m3_and_multiplies_e5m2_as_float16() -> None:
    out = compiled(
        MATMULS
        + ATTEMPT
        + """
print(attempt(lambda: made("float8_e4m3fn"), "fp8e4nv not supported"))
print(instruction(made("float8_e5m2")))
print(instruction(made("int8")))
""",
        "sm_80",
    ).split()
    assert out[0] == "refused"
    assert "m16n8k16" in out[1] and ".f16.f16." in out[1]
    assert "m16n8k32" in out[2] and ".s8.s8." in out[2]


def test_the_solution_of_matmul_takes_the_same_tile_for_both_16_bit_dtypes() -> None:
    out = compiled(
        (ROOT / "solutions/06-blocked-matmul/matmul.py").read_text(encoding="utf-8")
        + """
from grader.triton_adapter import watch_launches
launches = watch_launches("compile")
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    matmul(*(torch.empty(1024, 1024, dtype=dtype) for _ in "ab"))
    print(launches.grids[-1][1][0], launches.kernels[-1].metadata.num_warps)
"""
    ).split("\n")
    assert out[:3] == ["32 8", "32 8", "128 4"]  # tiles of 128 x 256; of 128 x 64 for exact float32


def test_8_bit_operands_want_k_contiguous_on_hopper() -> None:
    """A row-major B goes through registers on its way into shared memory; a row-major float16 B is copied as it is."""
    out = compiled(
        MATMULS
        + """
for dtype in ("float16", "float8_e4m3fn"):
    for b_of in (lambda x: x.t(), lambda x: x):
        k = made(dtype, b_of)
        print(k.asm["ptx"].count("st.shared"), k.asm["ptx"].count("prmt"))
"""
    )
    half_t, half, eight_t, eight = [sum(map(int, line.split())) for line in out.strip().split("\n")]
    assert half <= half_t + 16
    assert eight >= eight_t + 32


def test_fp8_sums_leave_the_tensor_core_when_asked() -> None:
    every = {"": "", "_128": ", max_num_imprecise_acc=128", "_32": ", max_num_imprecise_acc=32"}
    out = compiled(
        "".join(kernel(name, dot=f"tl.dot(a, b, acc{option})") for name, option in every.items())
        + r"""
import re
x = torch.zeros(128, 128, dtype=torch.float16).to(torch.float8_e4m3fn)
for multiply in (matmul, matmul_128, matmul_32):
    print(len(re.findall(r"add(?:\.\w+)*\.f32", multiply(x, x.t(), 64, 64, 128, num_warps=4).asm["ptx"])))
"""
    )
    # 64 * 64 values over 128 threads are 32 a thread; a step of 128 terms is added once, or four times
    assert out.split() == ["0", "32", "128"]


def test_ranges_of_the_narrow_types() -> None:
    largest = {name: torch.finfo(getattr(torch, name)).max for name in ("float8_e4m3fn", "float8_e5m2", "float16")}
    assert largest == {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float16": 65504.0}
    assert torch.finfo(torch.bfloat16).max > 3e38
    steps = [torch.finfo(t).eps for t in (torch.float8_e5m2, torch.float8_e4m3fn, torch.bfloat16, torch.float16)]
    assert steps == [2.0**-2, 2.0**-3, 2.0**-7, 2.0**-10]
    assert (
        bool(torch.tensor(500.0).to(torch.float8_e4m3fn).isnan()) or torch.tensor(500.0).to(torch.float8_e4m3fn) == 448
    )


def test_split_k_adds_parts_and_its_epilogue_must_wait() -> None:
    out = interpreted(
        """
@triton.jit
def split(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr, RELU: tl.constexpr):
    m, n, k = tl.arange(0, B), tl.arange(0, B), tl.arange(0, BK)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for start in range(tl.program_id(0) * BK, K, SPLIT * BK):
        a = tl.load(a_ptr + m[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (start + k)[:, None] * B + n[None, :], mask=(start + k)[:, None] < K, other=0.0)
        acc = tl.dot(a, b, acc)
    if RELU:
        acc = tl.where(acc < 0, 0.0, acc)
    tl.atomic_add(c_ptr + m[:, None] * B + n[None, :], acc)

torch.manual_seed(0)
a, b = torch.randint(-4, 5, (16, 200)).float(), torch.randint(-4, 5, (200, 16)).float()
def run(SPLIT, RELU):
    c = torch.zeros(16, 16)
    split[(SPLIT,)](a, b, c, 200, B=16, BK=16, SPLIT=SPLIT, RELU=RELU)
    return c
print(all(torch.equal(run(s, False), a @ b) for s in (1, 2, 4)))
print(torch.equal(run(1, True), (a @ b).relu()), torch.equal(run(4, True), (a @ b).relu()))
"""
    )
    assert out.split() == ["True", "True", "False"]


def test_programs_of_a_split_product() -> None:
    def programs(m: int, n: int, bm: int, bn: int, split: int) -> int:
        return -(-m // bm) * -(-n // bn) * split

    assert programs(16, 4096, 16, 128, 1) == 32
    assert programs(16, 4096, 16, 128, 4) == 128
    assert 4 * 16 * 4096 * 4 == 1_048_576  # bytes of four float32 parts of a 16 x 4096 output
    assert programs(128, 256, 128, 256, 1) == 1
