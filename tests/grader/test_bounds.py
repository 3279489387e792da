"""Accesses out of bounds on every path to memory: named by tensor, element, program and line."""

from __future__ import annotations

import pytest

from tests.evidence.run import interpreted

WATCHED = """
from grader.triton_adapter import watch_interpreter
from grader.watch import OutOfBounds
watch = watch_interpreter(__file__)

def outcome(kernel, grid, *args, **constexprs):
    try:
        kernel[grid](*args, **constexprs)
    except Exception as error:
        while not isinstance(error, OutOfBounds):
            error = error.__cause__
        text = open(__file__).read().splitlines()[error.line - 1]
        print(error.access, error.name, error.index, error.count, error.program, "FAULT" in text)
    else:
        print("fine")
"""


def lines(source: str) -> list[str]:
    return interpreted(WATCHED + source).splitlines()


def test_a_compare_and_swap_past_the_end_is_found():
    assert lines("""
@triton.jit
def swap(lock_ptr):
    tl.atomic_cas(lock_ptr + tl.program_id(0), 0, 1)  # FAULT

outcome(swap, (2,), torch.zeros(2, dtype=torch.int32))
outcome(swap, (3,), torch.zeros(2, dtype=torch.int32))
""") == ["fine", "atomic lock_ptr 2 2 (2, 0, 0) True"]  # fmt: skip


def test_atomic_loads_and_stores_past_the_end_are_found():
    found = lines("""
@triton.jit
def flag(in_ptr, out_ptr):
    value = tl.atomic_load(in_ptr + 4)  # FAULT
    tl.atomic_store(out_ptr + 4, value)  # FAULT

if not hasattr(tl, "atomic_load"):
    print("not in this version")
else:
    short, long = torch.zeros(4, dtype=torch.int32), torch.zeros(5, dtype=torch.int32)
    outcome(flag, (1,), long, long.clone())
    outcome(flag, (1,), short, long)
    outcome(flag, (1,), long, short)
""")
    if found == ["not in this version"]:
        pytest.skip("tl.atomic_load and tl.atomic_store came with Triton 3.9")
    assert found == ["fine", "load in_ptr 4 4 (0, 0, 0) True", "store out_ptr 4 4 (0, 0, 0) True"]


def test_a_descriptor_whose_shape_lies_about_its_tensor_is_found():
    """Within its shape a descriptor masks by itself; a shape with more rows than the tensor has reaches past it. Here
    the first program's tile lies inside, and no tile but the first begins where the tensor does."""
    assert lines("""
@triton.jit
def load(x_ptr, rows, BLOCK: tl.constexpr):
    tile = tl.make_tensor_descriptor(x_ptr, shape=[rows, 8], strides=[8, 1], block_shape=[BLOCK, 8])
    tile.load([tl.program_id(0) * BLOCK, 0])  # FAULT

@triton.jit
def store(x_ptr, rows, BLOCK: tl.constexpr):
    tile = tl.make_tensor_descriptor(x_ptr, shape=[rows, 8], strides=[8, 1], block_shape=[BLOCK, 8])
    tile.store([tl.program_id(0) * BLOCK, 0], tl.zeros((BLOCK, 8), tl.float32))  # FAULT

for kernel in (load, store):
    for rows in (6, 7):
        outcome(kernel, (2,), torch.ones(6, 8), rows, BLOCK=4)
""") == ["fine", "load x_ptr 48 48 (1, 0, 0) True", "fine", "store x_ptr 48 48 (1, 0, 0) True"]  # fmt: skip


def test_gather_and_scatter_past_the_end_are_found():
    assert lines("""
@triton.jit
def gather(x_ptr, index_ptr, rows):
    tile = tl.make_tensor_descriptor(x_ptr, shape=[rows, 16], strides=[16, 1], block_shape=[1, 16])
    tile.gather(tl.load(index_ptr + tl.arange(0, 8)), 0)  # FAULT

@triton.jit
def scatter(x_ptr, index_ptr, rows):
    tile = tl.make_tensor_descriptor(x_ptr, shape=[rows, 16], strides=[16, 1], block_shape=[1, 16])
    tile.scatter(tl.zeros((8, 16), tl.float32), tl.load(index_ptr + tl.arange(0, 8)), 0)  # FAULT

index = torch.tensor([0, 5, 5, 1, 2, 3, 4, 9], dtype=torch.int32)
for kernel in (gather, scatter):
    for rows in (6, 16):
        outcome(kernel, (1,), torch.ones(6, 16), index, rows)
""") == ["fine", "load x_ptr 144 96 (0, 0, 0) True", "fine", "store x_ptr 144 96 (0, 0, 0) True"]  # fmt: skip


def test_a_descriptor_made_on_the_host_is_checked_against_its_tensor():
    assert lines("""
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.jit
def load(tile, BLOCK: tl.constexpr):
    tile.load([tl.program_id(0) * BLOCK, 0])  # FAULT

for rows in (6, 8):
    outcome(load, (2,), TensorDescriptor(torch.ones(6, 8), [rows, 8], [8, 1], [4, 4]), BLOCK=4)
""") == ["fine", "load tile 48 48 (1, 0, 0) True"]  # fmt: skip


def test_a_block_pointer_is_checked_with_and_without_boundary_check():
    found = lines("""
@triton.jit
def load(x_ptr, rows, BLOCK: tl.constexpr, CHECKED: tl.constexpr):
    block = tl.make_block_ptr(
        x_ptr, shape=(rows, 8), strides=(8, 1), offsets=(tl.program_id(0) * BLOCK, 0), block_shape=(BLOCK, 8),
        order=(1, 0),
    )
    if CHECKED:
        tl.load(block, boundary_check=(0, 1))  # FAULT
    else:
        tl.load(block)  # FAULT

try:
    load[(1,)](torch.ones(6, 8), 6, BLOCK=4, CHECKED=True)
except Exception:
    print("not in this version")
else:
    outcome(load, (2,), torch.ones(6, 8), 6, BLOCK=4, CHECKED=True)
    outcome(load, (2,), torch.ones(6, 8), 6, BLOCK=4, CHECKED=False)
    outcome(load, (2,), torch.ones(6, 8), 7, BLOCK=4, CHECKED=True)
""")
    if found == ["not in this version"]:
        pytest.skip("block pointers went with Triton 3.9")
    assert found == ["fine", "load x_ptr 48 48 (1, 0, 0) True", "load x_ptr 48 48 (1, 0, 0) True"]


def test_an_address_made_from_an_integer_is_found_beside_a_tensor():
    assert lines("""
@triton.jit
def load(x_ptr, step):
    address = x_ptr.to(tl.int64) + 4 * step
    tl.load(address.to(tl.pointer_type(tl.float32)))  # FAULT

for step in (3, 4, -1):
    outcome(load, (1,), torch.ones(4), step)
""") == ["fine", "load x_ptr 4 4 (0, 0, 0) True", "load x_ptr -1 4 (0, 0, 0) True"]  # fmt: skip


def test_bytes_of_a_wider_tensor_may_be_read_to_the_last():
    assert lines("""
@triton.jit
def load(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.load(x_ptr.to(tl.pointer_type(tl.int8)) + offs, mask=offs < n)  # FAULT

for n in (16, 17):
    outcome(load, (1,), torch.ones(4), n, BLOCK=32)
""") == ["fine", "load x_ptr 4 4 (0, 0, 0) True"]  # fmt: skip


def test_a_block_of_pointers_may_point_into_two_tensors():
    assert lines("""
@triton.jit
def load(a_ptr, b_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.load(tl.where(offs < 4, a_ptr + offs, b_ptr + offs - 4))  # FAULT

outcome(load, (1,), torch.ones(4), torch.ones(4), BLOCK=8)
outcome(load, (1,), torch.ones(4), torch.ones(3), BLOCK=8)
""") == ["fine", "load b_ptr 3 3 (0, 0, 0) True"]  # fmt: skip
