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


def test_programs_run_in_another_order_each_once():
    out = interpreted(WATCHED + """
@triton.jit
def place(out_ptr, count_ptr):
    here = (tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(2) + tl.program_id(2)
    turn = tl.atomic_add(count_ptr, 1)
    tl.store(out_ptr + turn, here)

for order in ("forward", "reversed", "shuffled", "shuffled"):
    watch.new_call(filler="zero", noop=False, order=order, trace=None)
    out, count = torch.zeros(12, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    place[(2, 3, 2)](out, count)
    print(*out.tolist(), watch.traffic.programs)
""")  # fmt: skip
    forward, backward, shuffled, again = ([int(n) for n in line.split()] for line in out.splitlines())
    assert forward == [*range(12), 12]
    assert backward == [*reversed(range(12)), 12]
    assert shuffled == again != forward and sorted(shuffled) == [*range(12), 12]


def test_a_trace_holds_every_access_with_values_and_what_was_there():
    out = interpreted(WATCHED + """
@triton.jit
def step(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, x + 1, mask=offs < n)
    tl.debug_barrier()
    tl.atomic_add(out_ptr + offs, x, mask=offs < n)

watch.new_call(filler="zero", noop=False, order="forward", trace="accesses")
x, out = torch.tensor([10, 20, 30]), torch.tensor([7, 8, 9])
step[(2,)](x, out, 3, BLOCK=2)
launch, = watch.launches
print(launch.grid, [extent.name for extent in launch.extents], launch.locks, launch.counters)
for a in launch.accesses:
    base = (x if a.kind == "load" else out).data_ptr()
    line = open(__file__).read().splitlines()[a.line - 1]
    print(a.kind, a.program, (a.addresses - base) // 8, a.lanes, a.values, a.before, a.epoch, a.kind in line)
""")  # fmt: skip
    assert out.splitlines() == [
        "(2, 1, 1) ['x_ptr', 'out_ptr'] False False",
        "load 0 [0 1] [0 1] [10 20] [0 0] 0 True",
        "store 0 [0 1] [0 1] [11 21] [7 8] 0 True",
        "atomic 0 [0 1] [0 1] [0 0] [0 0] 1 True",
        "load 1 [2] [0] [30] [0] 0 True",
        "store 1 [2] [0] [31] [9] 0 True",
        "atomic 1 [2] [0] [0] [0] 1 True",
    ]


def test_atomics_that_order_programs_are_told_from_those_that_add():
    out = interpreted(WATCHED + """
@triton.jit
def add(x_ptr): tl.atomic_add(x_ptr + tl.arange(0, 4), 1.0)
@triton.jit
def count(x_ptr): tl.atomic_add(x_ptr, 1)
@triton.jit
def lock(x_ptr): tl.atomic_cas(x_ptr, 0, 1)
@triton.jit
def hand_over(x_ptr): tl.atomic_xchg(x_ptr, 0)

for kernel in (add, count, lock, hand_over):
    watch.new_call(filler="zero", noop=False, order="forward", trace="accesses")
    kernel[(1,)](torch.zeros(4, dtype=torch.float32 if kernel is add else torch.int32))
    print(watch.launches[0].locks, watch.launches[0].counters)
""")  # fmt: skip
    assert out.splitlines() == ["False False", "False True", "True True", "True True"]


def test_a_trace_ends_when_it_is_long_and_leaves_out_what_a_tuner_tries():
    out = interpreted(WATCHED + """
import grader.triton_interpreter
grader.triton_interpreter.MOST_LANES = 1000

@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (16, 32)], key=["n"])
@triton.jit
def fill(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, offs, mask=offs < n)

watch.new_call(filler="zero", noop=False, order="forward", trace="accesses")
fill[lambda meta: (triton.cdiv(4096, meta["BLOCK"]),)](torch.zeros(4096), 4096)
print(len(watch.launches), len(watch.launches[0].accesses))
""")  # fmt: skip
    assert out.split() == ["1", "13"]  # 16 lanes and 64 for keeping them, each


def test_one_configuration_can_be_forced_and_the_tuner_picks_again_after():
    out = interpreted(WATCHED + """
from grader.triton_adapter import watch_tuners
tuners = watch_tuners()

@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (8, 16, 32)], key=["n"])
@triton.jit
def tile(out_ptr, n, scale, BLOCK: tl.constexpr):
    tl.store(out_ptr, BLOCK)

out = torch.zeros(1)
for forced in (None, (0, 2), (0, 1), (1, 2), None):
    tuners.new_call(forced)
    tile[(1,)](out, 5, 0.5)
    print(int(out.item()), tuners.ran)
tile[(1,)](out, 6, scale=0.25)
print(*tuners.described(), sep="\\n")
""")  # fmt: skip
    *runs, described = out.splitlines()
    assert runs == ["8 1", "32 1", "16 1", "8 1", "8 1"]
    assert described == str(
        {
            "kernel": "tile",
            "configurations": [f"BLOCK={b}, num_warps=4" for b in (8, 16, 32)],
            "keys": ["n"],
            "pointers": ["out_ptr"],
            "sizes": ["n"],
            "factors": ["scale"],
        }
    )


def test_the_configuration_whose_trial_raised_is_known():
    out = interpreted(WATCHED + """
from grader.watch import TUNING

@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (8, 16)], key=["n"])
@triton.jit
def tile(out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(n < 100)
    if BLOCK == 16 and n == 7:
        tl.store(out_ptr + tl.arange(0, 3), 1)
    tl.store(out_ptr, BLOCK)

tile[(1,)](torch.zeros(1), 5)
print(TUNING.configuration)
try:
    tile[(1,)](torch.zeros(1), 7)
except Exception:
    print(TUNING.configuration)
""")  # fmt: skip
    assert out.splitlines() == ["None", "BLOCK=16, num_warps=4"]


def test_whole_number_constexprs_are_noted_by_kernel_and_name():
    out = interpreted(WATCHED + KERNELS + """
for block in (8, 16):
    copy[(1,)](torch.ones(8), torch.empty(8), 8, 0, BLOCK=block)
print(watch.constexprs)
""")  # fmt: skip
    assert out.strip() == "{('copy', 'BLOCK'): {8, 16}}"
