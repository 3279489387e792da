"""What module 6 says about blocked matrix multiplication: the order of programs, addresses, masks, numbers."""

from __future__ import annotations

import pytest
import torch

from tests.evidence.matmul_source import ATTEMPT, kernel
from tests.evidence.run import interpreted

# ---- tiles and the order of programs -------------------------------------------------------------------------------


def test_blocked_loops_compute_the_same_sums() -> None:
    a, b = torch.randint(-4, 5, (5, 7)), torch.randint(-4, 5, (7, 6))
    c = torch.zeros(5, 6, dtype=a.dtype)
    for m in range(0, 5, 2):
        for n in range(0, 6, 4):
            for k in range(0, 7, 3):
                c[m : m + 2, n : n + 4] += a[m : m + 2, k : k + 3] @ b[k : k + 3, n : n + 4]
    assert torch.equal(c, a @ b)


def row_major(pid: int, tiles_m: int, tiles_n: int) -> tuple[int, int]:
    return pid // tiles_n, pid % tiles_n


def grouped(group_m: int):
    def tile_of(pid: int, tiles_m: int, tiles_n: int) -> tuple[int, int]:
        first_row = pid // (group_m * tiles_n) * group_m
        rows = min(tiles_m - first_row, group_m)
        place = pid % (group_m * tiles_n)
        return first_row + place % rows, place // rows

    return tile_of


def test_row_major_order_takes_every_tile_once() -> None:
    assert [row_major(pid, 2, 2) for pid in range(4)] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert len({row_major(pid, 5, 3) for pid in range(15)}) == 15


def test_grouped_order_takes_every_tile_once() -> None:
    for tiles_m in range(1, 12):
        for tiles_n in range(1, 6):
            everything = {(m, n) for m in range(tiles_m) for n in range(tiles_n)}
            for group_m in (1, 2, 3, 4, 8):
                programs = range(tiles_m * tiles_n)
                assert {grouped(group_m)(pid, tiles_m, tiles_n) for pid in programs} == everything
                if group_m == 1:
                    assert all(grouped(1)(p, tiles_m, tiles_n) == row_major(p, tiles_m, tiles_n) for p in programs)
    assert [grouped(2)(pid, 5, 3) for pid in (12, 13, 14)] == [(4, 0), (4, 1), (4, 2)]
    assert [grouped(3)(pid, 6, 4) for pid in (0, 1, 2, 3, 12)] == [(0, 0), (1, 0), (2, 0), (0, 1), (3, 0)]


def strips(tile_of, programs: int, tiles_m: int, tiles_n: int) -> tuple[int, int]:
    owned = [tile_of(pid, tiles_m, tiles_n) for pid in range(programs)]
    return len({m for m, _ in owned}), len({n for _, n in owned})


def test_tile_loads_of_the_9x9_example() -> None:
    loads = lambda tile_of, outputs, side: side * sum(strips(tile_of, outputs, side, side))
    assert [loads(row_major, outputs, 9) for outputs in (1, 3, 9)] == [18, 36, 90]
    assert [loads(grouped(3), outputs, 9) for outputs in (1, 3, 6, 9)] == [18, 36, 45, 54]
    assert (loads(row_major, 4, 6), loads(grouped(2), 4, 6)) == (30, 24)


def test_strips_touched_by_one_wave() -> None:
    assert strips(row_major, 132, 128, 64) == (3, 64)
    assert strips(grouped(8), 132, 128, 64) == (8, 17)
    assert 3 * 128 + 64 * 256 == 16_768 and 8 * 128 + 17 * 256 == 5_376


def test_intensity_figures() -> None:
    tile = lambda m, n: m * n / (m + n)
    assert [round(tile(*sides), 1) for sides in ((1, 1), (16, 16), (64, 64), (128, 128), (128, 256))] == [
        0.5,
        8,
        32,
        64,
        85.3,
    ]
    whole = lambda m, n, k: m * n * k / (m * k + k * n + m * n)
    assert [round(whole(m, 4096, 4096)) for m in (1, 16, 64, 229, 4096)] == [1, 16, 62, 206, 1365]
    assert round(whole(8, 8192, 8192)) == 8


# ---- pointers and masks --------------------------------------------------------------------------------------------


def test_pointer_tiles_have_the_operands_shapes() -> None:
    out = interpreted("""
@triton.jit
def shapes(p):
    m, n, k = tl.arange(0, 64), tl.arange(0, 128), tl.arange(0, 32)
    a, b = p + m[:, None] * 3 + k[None, :], p + k[:, None] * 3 + n[None, :]
    print(int(a.shape[0]), int(a.shape[1]), int(b.shape[0]), int(b.shape[1]))

shapes[(1,)](torch.zeros(1))
""")
    assert out.split() == ["64", "32", "32", "128"]


def test_step_along_k_needs_the_stride() -> None:
    out = interpreted(
        kernel(step="BK")
        + """
a, b = torch.randn(40, 40), torch.randn(40, 40)
wide = torch.randn(40, 80)[:, ::2]
right = lambda a, b: torch.allclose(matmul(a, b), a @ b, atol=1e-4)
print(right(a, b), right(a, b.t()), right(a.t()[:, :30], b[:30]), right(a.t(), b), right(wide, b))
"""
    )
    assert out.split() == ["True", "True", "True", "False", "False"]


def test_a_missing_k_mask_adds_neighbours() -> None:
    """Both operands are views into larger buffers, so that the read stays inside an allocation."""
    out = interpreted(
        kernel("_unmasked", a_k="", b_k="")
        + kernel()
        + """
wide_a, wide_b = torch.randn(17, 96), torch.randn(96, 33)
for multiply in (matmul_unmasked, matmul):
    for K in (64, 65):
        a, b = wide_a[:, :K], wide_b[:K]
        print(torch.allclose(multiply(a, b), a @ b, atol=1e-4))
"""
    )
    assert out.split() == ["True", "False", "True", "True"]


def test_zeros_on_one_side_let_nan_through() -> None:
    check = """
wide_a, wide_b = torch.randn(17, 96), torch.randn(96, 33)
a, b = wide_a[:, :65], wide_b[:65]
print(torch.allclose(matmul(a, b), a @ b, atol=1e-4))
wide_b[70, 5] = float("nan")
c = matmul(a, b)
print(torch.allclose(c, a @ b, atol=1e-4), c[:, 5].isnan().all().item())
"""
    assert interpreted(kernel(b_k="") + check).split() == ["True", "False", "True"]


def test_wrapped_rows_need_no_mask() -> None:
    source = kernel().replace("(rm[:, None] < M) & (rk[None, :] < left)", "rk[None, :] < left")
    source = source.replace("(rn[None, :] < N) & (rk[:, None] < left)", "rk[:, None] < left")
    source = source.replace("rm[:, None] * sam", "(rm % M)[:, None] * sam").replace(
        "rn[None, :] * sbn", "(rn % N)[None, :] * sbn"
    )
    assert "(rm % M)" in source and "mask=rk" in source
    out = interpreted(
        source
        + "a, b = torch.randn(17, 65), torch.randn(65, 33)\nprint(torch.allclose(matmul(a, b), a @ b, atol=1e-4))\n"
    )
    assert out.split() == ["True"]


def test_walked_program_owns_one_row_of_c() -> None:
    only_program_2 = kernel().replace("& (rn[None, :] < N))", "& (rn[None, :] < tl.where(pid == 2, N, 0)))")
    assert "pid == 2" in only_program_2
    out = interpreted(
        only_program_2
        + """
torch.empty = lambda *shape, dtype: torch.full(*shape, float("nan"), dtype=dtype)
a, b = torch.randn(17, 65).half(), torch.randn(65, 33).half()
c, truth = matmul(a, b), a.double() @ b.double()
print(torch.allclose(c[16, :32].double(), truth[16, :32], atol=2e-2), c.isfinite().sum().item(), triton.cdiv(65, 32))
"""
    )
    assert out.split() == ["True", "32", "3"]


# ---- numbers -------------------------------------------------------------------------------------------------------


def test_fp16_running_sums_lose_what_fp32_keeps() -> None:
    assert (torch.tensor(2048.0, dtype=torch.float16) + 1).item() == 2048
    assert torch.finfo(torch.float16).max == 65504
    out = interpreted(
        kernel()
        + kernel("_rounding", dot="(acc + tl.dot(a, b)).to(tl.float16).to(tl.float32)")
        + """
a, b = torch.ones(16, 4096).half() * 1.5, torch.ones(4096, 16).half() * 1.1
truth = a.double() @ b.double()
for multiply in (matmul, matmul_rounding):
    print(((multiply(a, b).double() - truth).abs() / truth).max().item())
"""
    )
    right, wrong = map(float, out.split())
    assert right < 5e-4 < wrong


def test_dot_of_fp16_returns_fp32() -> None:
    out = interpreted(
        kernel(dot="tl.dot(a, b)").replace("acc = tl.dot(a, b)", "acc = tl.dot(a, b)\n        print(acc.dtype)")
        + "matmul(torch.ones(16, 16).half(), torch.ones(16, 16).half())\n"
    )
    assert out.split() == ["fp32"]


def test_dot_without_acc_keeps_the_last_step() -> None:
    out = interpreted(
        kernel(dot="tl.dot(a, b)")
        + "a, b = torch.randn(16, 65), torch.randn(65, 16)\nprint(torch.allclose(matmul(a, b), a[:, 64:] @ b[64:], atol=1e-5))\n"
    )
    assert out.split() == ["True"]


def test_both_operands_need_one_dtype() -> None:
    with pytest.raises(AssertionError, match="same dtype"):
        interpreted(kernel() + "matmul(torch.ones(16, 16).half(), torch.ones(16, 16))\n")


def test_activation_before_and_after_the_cast() -> None:
    total = torch.tensor([80_000.0])
    assert (total * 0.01).half().item() == 800
    assert (total.half() * 0.01).item() == float("inf")
    sums = torch.randn(4096) * 20
    silu = torch.nn.functional.silu
    assert not torch.equal(silu(sums).half(), silu(sums.half()))
    assert torch.equal(torch.relu(sums).half(), torch.relu(sums.half()))


def cut_to_tf32(x: torch.Tensor) -> torch.Tensor:
    """Drop 13 of the 23 mantissa bits, as Hopper does with float32 operands."""
    return (x.view(torch.int32) & -8192).view(torch.float32)


def test_tf32_errors_are_a_thousand_times_larger() -> None:
    draw = torch.Generator().manual_seed(0)
    a, b = torch.randn(128, 512, generator=draw), torch.randn(512, 128, generator=draw)
    truth = a.double() @ b.double()
    tf32 = ((cut_to_tf32(a) @ cut_to_tf32(b)) - truth).abs().mean().item()
    fp32 = ((a @ b) - truth).abs().mean().item()
    assert 5e-3 < tf32 < 5e-2 and fp32 < 2e-5
    assert tf32 / fp32 > 1000


def test_interpreter_does_not_show_tf32() -> None:
    out = interpreted(
        kernel()
        + "a, b = torch.randn(32, 512), torch.randn(512, 32)\nprint((matmul(a, b) - a @ b).abs().max().item())\n"
    )
    assert float(out) < 1e-3


# ---- descriptors --------------------------------------------------------------------------------------------------


DESCRIPTOR = """
from triton.tools.tensor_descriptor import TensorDescriptor
@triton.jit
def corner(src, dst):
    dst.store([0, 0], src.load([16, 16]) + 1)
"""


def test_descriptor_fills_zeros_and_clips_stores() -> None:
    out = interpreted(
        DESCRIPTOR
        + """
x, y = torch.ones(20, 24), torch.zeros(10, 12)
corner[(1,)](TensorDescriptor.from_tensor(x, [16, 16]), TensorDescriptor.from_tensor(y, [16, 16]))
print(y[:4, :8].unique().tolist(), y[4:].unique().tolist(), y[:, 8:].unique().tolist())
"""
    )
    assert out.split() == ["[2.0]", "[1.0]", "[1.0]"]


def test_descriptor_wants_aligned_rows() -> None:
    out = interpreted(
        DESCRIPTOR
        + ATTEMPT
        + """
make = lambda x, words="": attempt(lambda: TensorDescriptor.from_tensor(x, [16, 16]), words)
print(make(torch.ones(32, 64).half()), make(torch.ones(32, 65).half(), "strides must be 16-byte aligned"))
print(make(torch.ones(32, 128).half()[:, ::2], "Last dimension must be contiguous"))
"""
    )
    assert out.split() == ["ok", "refused", "refused"]
