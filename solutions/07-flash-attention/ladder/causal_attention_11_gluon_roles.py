"""Causal attention, rung 11: the roles of rung 10; a program takes a long row tile and a short one in turn.

Takes contiguous q, k and v [B, H, N, D] of float16 or bfloat16 with D = 64 or 128, on a Hopper GPU; raises ValueError
for anything else. Gluon is not interpreted, so this rung is no submission.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

# Gluon's names change from release to release: the newer one, or what Triton 3.6 has.
load_tile = tma.async_load if hasattr(tma, "async_load") else tma.async_copy_global_to_shared
store_tile = tma.async_store if hasattr(tma, "async_store") else tma.async_copy_shared_to_global


@gluon.jit
def fetch(desc, head, first, empty, full, phase, buf):
    """Once the consumers have left buf, fetch the tile at row `first` into it; that ends this phase of `full`."""
    mbarrier.wait(empty, phase ^ 1)  # on a new barrier the phase before the first counts as over: nobody waits
    mbarrier.expect(full, desc.block_type.nbytes)
    load_tile(desc, [head, first, 0], full, buf)


@gluon.jit
def following(slot, phase, STAGES: gl.constexpr):
    """The ring's next buffer. Each time round, its barriers are in the other phase."""
    last = slot == STAGES - 1
    return gl.where(last, 0, slot + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def tiles_of_this_program(pairs):
    """A program stays, and takes every num_programs-th pair of row tiles."""
    return 2 * gl.cdiv(pairs - gl.program_id(0), gl.num_programs(0))


@gluon.jit
def tile_of(i, N, tiles_m, BLOCK: gl.constexpr):
    """Head and first row of this program's i-th tile, and its blocks of keys: a long row tile, then its short mate.

    All pairs are equally long, but for one a head where the last tile lies past N: tiles_m is even, so that each tile
    has a mate. That tile takes one block, and nothing of it is stored.
    """
    pair = gl.program_id(0) + i // 2 * gl.num_programs(0)
    head = pair // (tiles_m // 2)
    short = pair % (tiles_m // 2)
    tile = gl.where(i % 2 == 0, tiles_m - 1 - short, short)
    return head, tile * BLOCK, gl.where(tile * BLOCK < N, tile + 1, 1)


@gluon.jit
def softmax(s, m, l, scale):
    """p of one block of scores, the factor for what was summed before it, the new maximum and sum."""
    m_new = gl.maximum(m, gl.max(s, axis=1) * scale)
    alpha = gl.exp2(m - m_new)
    p = gl.exp2(s * scale - gl.expand_dims(m_new, 1))
    return p, alpha, m_new, l * alpha + gl.sum(p, axis=1)


@gluon.jit
def produce(q_desc, k_desc, v_desc, buffers, barriers, sizes):
    """The role of one warp: fetch q, k and v of all this program's tiles, as far ahead as the ring has room."""
    q_bufs, k_bufs, v_bufs, _ = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    N, pairs, tiles_m, _ = sizes
    STAGES: gl.constexpr = k_bufs.shape[0]
    BLOCK: gl.constexpr = k_bufs.shape[2]
    slot = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    for i in range(tiles_of_this_program(pairs)):
        head, row, n = tile_of(i, N, tiles_m, BLOCK)
        # In the order of use: k of a block, then v of the block before it. The last block is the first.
        fetch(k_desc, head, (n - 1) * BLOCK, k_empty.index(slot), k_full.index(slot), phase, k_bufs.index(slot))
        for w in gl.static_range(2):
            fetch(q_desc, head, row + 64 * w, q_empty.index(w), q_full.index(w), i & 1, q_bufs.index(w))
        for j in range(1, n):
            v_slot, v_phase = slot, phase
            slot, phase = following(slot, phase, STAGES)
            first = (n - 1 - j) * BLOCK
            fetch(k_desc, head, first, k_empty.index(slot), k_full.index(slot), phase, k_bufs.index(slot))
            first += BLOCK
            fetch(v_desc, head, first, v_empty.index(v_slot), v_full.index(v_slot), v_phase, v_bufs.index(v_slot))
        fetch(v_desc, head, 0, v_empty.index(slot), v_full.index(slot), phase, v_bufs.index(slot))
        slot, phase = following(slot, phase, STAGES)


@gluon.jit
def consume(w: gl.constexpr, out_desc, buffers, barriers, sizes):
    """The role of 4 warps: rows [64 w, 64 w + 64) of each tile. Nothing is fetched here."""
    q_bufs, k_bufs, v_bufs, out_bufs = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    N, pairs, tiles_m, scale = sizes
    dtype: gl.constexpr = q_bufs.dtype
    STAGES: gl.constexpr = k_bufs.shape[0]
    BLOCK: gl.constexpr = k_bufs.shape[2]
    D: gl.constexpr = k_bufs.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, acc_layout, 2)
    s_row: gl.constexpr = gl.SliceLayout(1, s_layout)
    acc_row: gl.constexpr = gl.SliceLayout(1, acc_layout)
    q = q_bufs.index(w).reshape([64, D])
    slot = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    for i in range(tiles_of_this_program(pairs)):
        head, row, n = tile_of(i, N, tiles_m, BLOCK)
        m = gl.full([64], float("-inf"), gl.float32, s_row)
        l = gl.full([64], 0.0, gl.float32, s_row)
        acc = gl.zeros([64, D], gl.float32, acc_layout)
        zero = gl.zeros([64, BLOCK], gl.float32, s_layout)

        # The last block: only its p. A tile has as many rows as a block has keys, so that the diagonal runs through
        # this block alone, and every row sees one of its keys at least.
        mbarrier.wait(q_full.index(w), i & 1)
        mbarrier.wait(k_full.index(slot), phase)
        k = k_bufs.index(slot).reshape([BLOCK, D])
        s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, (s,))
        mbarrier.arrive(k_empty.index(slot), count=1)
        rows = row + 64 * w + gl.arange(0, 64, layout=s_row)
        keys = (n - 1) * BLOCK + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, s_layout))
        s = gl.where(gl.expand_dims(keys, 0) <= gl.expand_dims(rows, 1), s, float("-inf"))
        p, alpha, m, l = softmax(s, m, l, scale)
        p16 = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)
        k_slot, k_phase = following(slot, phase, STAGES)
        mbarrier.wait(k_full.index(k_slot), k_phase, pred=n > 1)

        for j in range(1, n):
            # p16 is of the block before, whose v is in `slot`
            k = k_bufs.index(k_slot).reshape([BLOCK, D])
            s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.wait(v_full.index(slot), phase)
            v = v_bufs.index(slot).reshape([BLOCK, D])
            acc = warpgroup_mma(p16, v, acc, is_async=True)
            s = warpgroup_mma_wait(1, (s,))  # s is there, acc need not be
            mbarrier.arrive(k_empty.index(k_slot), count=1)
            p, alpha, m, l = softmax(s, m, l, scale)
            old_slot, slot, phase = slot, k_slot, k_phase
            k_slot, k_phase = following(slot, phase, STAGES)
            # as in rung 9, this wait keeps the exponentials before the wait for acc
            mbarrier.wait(k_full.index(k_slot), k_phase, pred=j + 1 < n)
            acc = warpgroup_mma_wait(0, (acc,))
            mbarrier.arrive(v_empty.index(old_slot), count=1)
            acc = acc * gl.expand_dims(gl.convert_layout(alpha, acc_row, assert_trivial=True), 1)
            p16 = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)

        mbarrier.arrive(q_empty.index(w), count=1)  # the producer may fetch the next tile's q
        mbarrier.wait(v_full.index(slot), phase)
        acc = warpgroup_mma(p16, v_bufs.index(slot).reshape([BLOCK, D]), acc, is_async=True)
        acc = warpgroup_mma_wait(0, (acc,))
        mbarrier.arrive(v_empty.index(slot), count=1)
        slot, phase = following(slot, phase, STAGES)
        l_acc = gl.convert_layout(l, acc_row, assert_trivial=True)
        tma.store_wait(0)  # the tile before has left the buffer
        out_bufs.index(w).reshape([64, D]).store((acc * gl.expand_dims(1.0 / l_acc, 1)).to(dtype))
        fence_async_shared()
        store_tile(out_desc, [head, row + 64 * w, 0], out_bufs.index(w))  # runs on; rows past N are not written
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["N", "pairs", "tiles_m"])
def causal_attention_kernel(
    q_desc, k_desc, v_desc, out_desc, N, pairs, tiles_m, scale,
    D: gl.constexpr, BLOCK: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    dtype: gl.constexpr = q_desc.dtype
    layout: gl.constexpr = mbarrier.MBarrierLayout()
    q_bufs = gl.allocate_shared_memory(dtype, [2, 1, 64, D], q_desc.layout)
    out_bufs = gl.allocate_shared_memory(dtype, [2, 1, 64, D], out_desc.layout)
    k_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK, D], k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], layout)
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], layout)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    for i in gl.static_range(2):  # each consumer has a tile of q of its own
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(STAGES):  # a tile of k or v is left when both have left it
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_empty.index(i), count=2)
    fence_async_shared()  # the copy engine sees the barriers
    buffers = (q_bufs, k_bufs, v_bufs, out_bufs)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty)
    sizes = (N, pairs, tiles_m, scale * 1.4426950408889634)  # log2(e)
    # The first role goes to the launch's own 4 warps. Then come warps and registers a thread of each of the others.
    gl.warp_specialize(
        [
            (consume, (0, out_desc, buffers, barriers, sizes)),
            (consume, (1, out_desc, buffers, barriers, sizes)),
            (produce, (q_desc, k_desc, v_desc, buffers, barriers, sizes)),
        ],
        [4, 1],
        [240, 24],
    )


def described(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Of x as [B * H, N, D], in tiles of one head's `rows` rows: a tile ends where its head ends."""
    block = [1, rows, x.shape[3]]
    dtype = gl.float16 if x.dtype == torch.float16 else gl.bfloat16
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor.from_tensor(x.flatten(0, 1), block, layout)


def causal_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N, D = q.shape
    if D not in (64, 128) or not q.shape == k.shape == v.shape:
        raise ValueError(f"wants D = 64 or 128, and one shape: {q.shape}, {k.shape}, {v.shape}")
    if q.dtype not in (torch.float16, torch.bfloat16) or not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"wants float16 or bfloat16: {q.dtype}, {k.dtype}, {v.dtype}")
    if not all(x.is_contiguous() and x.data_ptr() % 16 == 0 for x in (q, k, v)):
        raise ValueError("wants contiguous tensors that start at a multiple of 16 bytes")
    if q.is_cuda and torch.cuda.get_device_capability(q.device)[0] != 9:
        raise ValueError("wants a Hopper GPU (sm_90)")
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    BLOCK, STAGES = 128, 2
    tiles_m = 2 * triton.cdiv(N, 2 * BLOCK)
    pairs = tiles_m // 2 * B * H
    multiprocessors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 132
    causal_attention_kernel[(min(pairs, multiprocessors),)](
        described(q, 64), described(k, BLOCK), described(v, BLOCK), described(out, 64),
        N, pairs, tiles_m, D**-0.5, D=D, BLOCK=BLOCK, STAGES=STAGES, num_warps=4, maxnreg=168,
    )  # fmt: skip
    return out
