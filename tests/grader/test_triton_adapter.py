"""What is private in Triton and used here, each with a test: run these against every supported version."""

from __future__ import annotations

import pytest

from tests.evidence.run import compiled, interpreted

WATCHED = """
from grader.triton_adapter import use_own_benchmark, watch_interpreter
from grader.watch import OutOfBounds
use_own_benchmark(runs=2)
watch = watch_interpreter(__file__)

def cause(error):
    while error is not None and not isinstance(error, OutOfBounds):
        error = error.__cause__
    return error
"""

KERNELS = """
@triton.jit
def copy(x_ptr, out_ptr, n, shift, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs + shift, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)

@triton.jit
def rows(x_ptr, out_ptr, n_rows, n_cols, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    offs = tl.arange(0, BLOCK)
    for row in range(0, n_rows):
        total += tl.load(x_ptr + row * n_cols + offs, mask=offs < n_cols, other=0.0)
    tl.store(out_ptr + offs, total, mask=offs < n_cols)

@triton.jit
def count(out_ptr):
    tl.atomic_add(out_ptr + 3, 1.0)
"""


def test_an_access_out_of_bounds_names_tensor_index_program_and_line():
    out = interpreted(WATCHED + KERNELS + """
x, out = torch.ones(8), torch.empty(8)
copy[(1,)](x, out, 8, 0, BLOCK=16)
assert out.eq(1).all()
for shift in (1, 10**6, -1):
    try:
        copy[(1,)](x, out, 8, shift, BLOCK=16)
    except Exception as error:
        found = cause(error)
        print(found.name, found.index, found.count, found.program, found.masked, found.line > 0)
""")  # fmt: skip
    assert out.splitlines() == [
        "x_ptr 8 8 (0, 0, 0) True True",
        "x_ptr 1000000 8 (0, 0, 0) True True",
        "x_ptr -1 8 (0, 0, 0) True True",
    ]


def test_traffic_counts_active_lanes_only():
    out = interpreted(WATCHED + KERNELS + """
copy[(1,)](torch.ones(8), torch.empty(8), 5, 0, BLOCK=16)
print(watch.traffic.loaded_bytes, watch.traffic.stored_bytes, watch.traffic.launches)
""")  # fmt: skip
    assert out.split() == ["20", "20", "1"]


def test_a_loop_over_a_runtime_bound_runs():
    out = interpreted(WATCHED + KERNELS + """
x, out = torch.ones(3, 5), torch.empty(5)
rows[(1,)](x, out, 3, 5, BLOCK=8)
print(out.tolist())
""")  # fmt: skip
    assert out.strip() == str([3.0] * 5)


def test_an_atomic_out_of_bounds_is_found():
    out = interpreted(WATCHED + KERNELS + """
count[(2,)](torch.zeros(4))
try:
    count[(1,)](torch.zeros(3))
except Exception as error:
    print(cause(error).name, cause(error).access)
""")  # fmt: skip
    assert out.split() == ["out_ptr", "atomic"]


def test_masked_off_lanes_without_other_are_poison_or_zero():
    out = interpreted(WATCHED + """
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n), axis=0))

out = torch.empty(1)
for filler in ("poison", "zero"):
    watch.filler = filler
    total[(1,)](torch.ones(5), out, 5, BLOCK=8)
    print(out.item())
""")  # fmt: skip
    assert out.split() == ["nan", "5.0"]


def test_each_configuration_runs_twice_then_the_first_wins_and_is_counted_once():
    out = interpreted(WATCHED + """
@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (8, 16)], key=["n"])
@triton.jit
def add_one(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)

x = torch.zeros(8)
add_one[(1,)](x, 8)
print(x[0].item(), watch.traffic.launches, watch.traffic.loaded_bytes)
""")  # fmt: skip
    assert out.split() == ["5.0", "1", "32"]


def test_a_launch_that_is_switched_off_does_nothing():
    out = interpreted(WATCHED + KERNELS + """
watch.noop = True
out = torch.zeros(8)
copy[(1,)](torch.ones(8), out, 8, 0, BLOCK=8)
print(out.sum().item())
""")  # fmt: skip
    assert out.strip() == "0.0"


def test_pytorchs_operators_take_interpreted_kernels():
    out = interpreted("""
from grader.triton_adapter import allow_interpreted_in_torch_library
allow_interpreted_in_torch_library()
from torch.library import triton_op, wrap_triton

@triton.jit
def double(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2)

@triton_op("adapter::double", mutates_args={})
def twice(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(double)[(1,)](x, out, BLOCK=8)
    return out

print(twice(torch.ones(8)).sum().item())
""")  # fmt: skip
    assert out.strip() == "16.0"


@pytest.mark.parametrize(("target", "binary"), [("sm_80", "cubin"), ("sm_90", "cubin"), ("gfx942", "hsaco")])
def test_a_launch_compiles_for_a_gpu_that_is_not_here(target, binary):
    out = compiled(KERNELS + f"""
kernel = copy[lambda meta: (triton.cdiv(8, meta["BLOCK"]),)](torch.ones(8), torch.empty(8), 8, 0, BLOCK=16)
print({binary!r} in kernel.asm, kernel.metadata.num_warps)
""", target)  # fmt: skip
    assert out.split() == ["True", "4"]


def test_a_grid_callable_that_returns_a_number_fails_offline_too():
    out = compiled(KERNELS + """
try:
    copy[lambda meta: 1](torch.ones(8), torch.empty(8), 8, 0, BLOCK=16)
except TypeError as error:
    print(error)
""")  # fmt: skip
    assert "tuple" in out
