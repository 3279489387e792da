"""Guard bands and poison, and the runner's guarded allocations."""

from __future__ import annotations

import pytest
import torch

from grader import guards
from grader.allocations import GuardedAllocations


@pytest.fixture
def arena():
    memory = torch.empty(1 << 16, dtype=torch.uint8)
    guards.fill(memory)
    return memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_poison_is_nan_in_every_float_dtype(arena, dtype):
    region = guards.Layout(256).place((5,), (1,), dtype)
    guards.poison(arena, region)
    assert guards.view(arena, region).isnan().all()
    assert guards.poisoned(guards.view(arena, region)).all()


def test_a_computed_nan_is_not_poison():
    nan = torch.tensor([float("inf")]) - torch.tensor([float("inf")])
    assert nan.isnan().all() and not guards.poisoned(nan).any()


def test_a_byte_written_beside_a_region_is_a_breach_and_one_inside_is_not(arena):
    layout = guards.Layout(256)
    first, second = layout.place((10,), (1,), torch.float32), layout.place((3,), (1,), torch.float32)
    for region in (first, second):
        guards.view(arena, region).fill_(1.0)
    assert guards.breached(arena, layout) is None
    arena[second.offset + second.nbytes] = 0
    assert guards.breached(arena, layout) == second
    arena[second.offset + second.nbytes] = guards.GUARD_BYTE
    arena[first.offset - 1] = 0
    assert guards.breached(arena, layout) == first


def test_a_view_keeps_shape_and_strides(arena):
    region = guards.Layout(256).place((3, 4), (1, 3), torch.float32)
    view = guards.view(arena, region)
    assert view.shape == (3, 4) and view.stride() == (1, 3)


def test_an_empty_region_has_no_bytes(arena):
    region = guards.Layout(256).place((0, 4), (4, 1), torch.float32)
    assert region.nbytes == 0 and guards.view(arena, region).shape == (0, 4)


def test_what_is_allocated_uninitialised_comes_poisoned():
    like = torch.ones(3, 4).t()
    with GuardedAllocations("cpu"):
        made = [torch.empty(5), torch.empty_like(like), like.new_empty(2), torch.empty_strided((2, 3), (1, 2))]
        zeros = torch.zeros(3)
    assert all(guards.poisoned(t).all() for t in made)
    assert made[1].stride() == like.stride()
    assert not zeros.any()


def test_a_store_past_an_allocation_is_seen():
    allocations = GuardedAllocations("cpu")
    with allocations:
        out = torch.empty(5)
    out.fill_(1.0)
    assert not allocations.breached()
    out.as_strided((6,), (1,), out.storage_offset()).fill_(2.0)
    assert allocations.breached()


@pytest.mark.parametrize("dtype", list(guards.FLOAT_POISON))
def test_what_was_read_beside_a_tensor_is_not_taken_for_what_was_never_written(dtype):
    memory = torch.full((16 * dtype.itemsize,), guards.GUARD_BYTE, dtype=torch.uint8)
    beside = memory.view(dtype).clone()
    assert beside.isnan().all() and not guards.poisoned(beside).any()
    guards.fill_with_poison(memory, dtype)
    unwritten = memory.view(dtype)
    assert unwritten.isnan().all() and guards.poisoned(unwritten).all()
    assert not guards.poisoned(torch.full((4,), float("nan"), dtype=dtype)).any()


def test_a_cast_of_what_was_never_written_is_still_poison():
    memory = torch.empty(32, dtype=torch.uint8)
    guards.fill_with_poison(memory, torch.float32)
    assert guards.poisoned(memory.view(torch.float32).half()).all()
