"""attention, rung 10: Gluon with roles. One warp fetches, groups of 4 warps compute, each with registers for its role.

Takes contiguous q [B, H, N_q, D], k and v [B, H, N_k, D] of float16 or bfloat16 with D = 64 or 128, on a Hopper GPU;
raises ValueError for anything else. Gluon is not interpreted, so this rung is no submission.
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
def tiles_of_this_program(tiles):
    """A program stays, and takes every num_programs-th tile."""
    return gl.cdiv(tiles - gl.program_id(0), gl.num_programs(0))


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
    N_k, tiles, tiles_m, _ = sizes
    CONSUMERS: gl.constexpr = q_bufs.shape[0]
    STAGES: gl.constexpr = k_bufs.shape[0]
    BLOCK_N: gl.constexpr = k_bufs.shape[2]
    n = gl.cdiv(N_k, BLOCK_N)
    slot = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    for i in range(tiles_of_this_program(tiles)):
        tile = gl.program_id(0) + i * gl.num_programs(0)
        head = tile // tiles_m
        row = tile % tiles_m * 64 * CONSUMERS
        # In the order of use: k of a block, then v of the block before it. The last block is the first.
        fetch(k_desc, head, (n - 1) * BLOCK_N, k_empty.index(slot), k_full.index(slot), phase, k_bufs.index(slot))
        for w in gl.static_range(CONSUMERS):
            fetch(q_desc, head, row + 64 * w, q_empty.index(w), q_full.index(w), i & 1, q_bufs.index(w))
        for j in range(1, n):
            v_slot, v_phase = slot, phase
            slot, phase = following(slot, phase, STAGES)
            first = (n - 1 - j) * BLOCK_N
            fetch(k_desc, head, first, k_empty.index(slot), k_full.index(slot), phase, k_bufs.index(slot))
            first += BLOCK_N
            fetch(v_desc, head, first, v_empty.index(v_slot), v_full.index(v_slot), v_phase, v_bufs.index(v_slot))
        fetch(v_desc, head, 0, v_empty.index(slot), v_full.index(slot), phase, v_bufs.index(slot))
        slot, phase = following(slot, phase, STAGES)


@gluon.jit
def consume(w: gl.constexpr, RAGGED: gl.constexpr, out_desc, buffers, barriers, sizes):
    """The role of 4 warps: rows [64 w, 64 w + 64) of each tile, as in rung 9. Nothing is fetched here."""
    q_bufs, k_bufs, v_bufs, out_bufs = buffers
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    N_k, tiles, tiles_m, scale = sizes
    dtype: gl.constexpr = q_bufs.dtype
    CONSUMERS: gl.constexpr = q_bufs.shape[0]
    STAGES: gl.constexpr = k_bufs.shape[0]
    BLOCK_N: gl.constexpr = k_bufs.shape[2]
    D: gl.constexpr = k_bufs.shape[3]
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, acc_layout, 2)
    s_row: gl.constexpr = gl.SliceLayout(1, s_layout)
    acc_row: gl.constexpr = gl.SliceLayout(1, acc_layout)
    q = q_bufs.index(w).reshape([64, D])
    n = gl.cdiv(N_k, BLOCK_N)
    slot = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    for i in range(tiles_of_this_program(tiles)):
        tile = gl.program_id(0) + i * gl.num_programs(0)
        m = gl.full([64], float("-inf"), gl.float32, s_row)
        l = gl.full([64], 0.0, gl.float32, s_row)
        acc = gl.zeros([64, D], gl.float32, acc_layout)
        zero = gl.zeros([64, BLOCK_N], gl.float32, s_layout)

        # the last block: only its p
        mbarrier.wait(q_full.index(w), i & 1)
        mbarrier.wait(k_full.index(slot), phase)
        k = k_bufs.index(slot).reshape([BLOCK_N, D])
        s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, (s,))
        mbarrier.arrive(k_empty.index(slot), count=1)
        if RAGGED:  # compiled away for whole blocks: its 32 column numbers a thread would take registers
            keys = (n - 1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, s_layout))
            s = gl.where(gl.expand_dims(keys < N_k, 0), s, float("-inf"))
        p, alpha, m, l = softmax(s, m, l, scale)
        p16 = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)
        k_slot, k_phase = following(slot, phase, STAGES)
        mbarrier.wait(k_full.index(k_slot), k_phase, pred=n > 1)

        for j in range(1, n):
            # p16 is of the block before, whose v is in `slot`
            k = k_bufs.index(k_slot).reshape([BLOCK_N, D])
            s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.wait(v_full.index(slot), phase)
            v = v_bufs.index(slot).reshape([BLOCK_N, D])
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
        acc = warpgroup_mma(p16, v_bufs.index(slot).reshape([BLOCK_N, D]), acc, is_async=True)
        acc = warpgroup_mma_wait(0, (acc,))
        mbarrier.arrive(v_empty.index(slot), count=1)
        slot, phase = following(slot, phase, STAGES)
        l_acc = gl.convert_layout(l, acc_row, assert_trivial=True)
        tma.store_wait(0)  # the tile before has left the buffer
        out_bufs.index(w).reshape([64, D]).store((acc * gl.expand_dims(1.0 / l_acc, 1)).to(dtype))
        fence_async_shared()
        row = tile % tiles_m * 64 * CONSUMERS + 64 * w
        store_tile(out_desc, [tile // tiles_m, row, 0], out_bufs.index(w))  # runs on; rows past N_q are not written
    tma.store_wait(0)


@gluon.jit(do_not_specialize=["N_k", "tiles", "tiles_m"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, N_k, tiles, tiles_m, scale,
    D: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr, CONSUMERS: gl.constexpr, REGISTERS: gl.constexpr,
    RAGGED: gl.constexpr,
):  # fmt: skip
    dtype: gl.constexpr = q_desc.dtype
    layout: gl.constexpr = mbarrier.MBarrierLayout()
    q_bufs = gl.allocate_shared_memory(dtype, [CONSUMERS, 1, 64, D], q_desc.layout)
    out_bufs = gl.allocate_shared_memory(dtype, [CONSUMERS, 1, 64, D], out_desc.layout)
    k_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK_N, D], k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK_N, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], layout)
    q_empty = gl.allocate_shared_memory(gl.int64, [CONSUMERS, 1], layout)
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], layout)
    for i in gl.static_range(CONSUMERS):  # each has a tile of q of its own
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=1)
    for i in gl.static_range(STAGES):  # a tile of k or v is left when all of them have left it
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=CONSUMERS)
        mbarrier.init(v_empty.index(i), count=CONSUMERS)
    fence_async_shared()  # the copy engine sees the barriers
    buffers = (q_bufs, k_bufs, v_bufs, out_bufs)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty)
    sizes = (N_k, tiles, tiles_m, scale * 1.4426950408889634)  # log2(e)
    # The first role goes to the launch's own 4 warps. Then come warps and registers a thread of each of the others.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (consume, (0, RAGGED, out_desc, buffers, barriers, sizes)),
                (consume, (1, RAGGED, out_desc, buffers, barriers, sizes)),
                (produce, (q_desc, k_desc, v_desc, buffers, barriers, sizes)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (consume, (0, RAGGED, out_desc, buffers, barriers, sizes)),
                (consume, (1, RAGGED, out_desc, buffers, barriers, sizes)),
                (consume, (2, RAGGED, out_desc, buffers, barriers, sizes)),
                (produce, (q_desc, k_desc, v_desc, buffers, barriers, sizes)),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, 24],
        )


def described(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Of x as [B * H, N, D], in tiles of one head's `rows` rows: a tile ends where its head ends."""
    block = [1, rows, x.shape[3]]
    dtype = gl.float16 if x.dtype == torch.float16 else gl.bfloat16
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor.from_tensor(x.flatten(0, 1), block, layout)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    B, H, N_q, D = q.shape
    N_k = k.shape[2]
    if D not in (64, 128) or k.shape != (B, H, N_k, D) or v.shape != k.shape or N_k == 0:
        raise ValueError(f"wants D = 64 or 128, one shape of k and v, and a key: {q.shape}, {k.shape}, {v.shape}")
    if q.dtype not in (torch.float16, torch.bfloat16) or not q.dtype == k.dtype == v.dtype:
        raise ValueError(f"wants float16 or bfloat16: {q.dtype}, {k.dtype}, {v.dtype}")
    if not all(x.is_contiguous() and x.data_ptr() % 16 == 0 for x in (q, k, v)):
        raise ValueError("wants contiguous tensors that start at a multiple of 16 bytes")
    if q.is_cuda and torch.cuda.get_device_capability(q.device)[0] != 9:
        raise ValueError("wants a Hopper GPU (sm_90)")
    out = torch.empty_like(q)
    if out.numel() == 0:
        return out
    # The registers that a launch is given are one number a thread. They are handed over: the warps that fetch keep 24.
    CONSUMERS, REGISTERS, GIVEN = (2, 240, 168) if D == 128 else (3, 160, 128)
    BLOCK_N, STAGES = 128, 2
    tiles_m = triton.cdiv(N_q, 64 * CONSUMERS)
    tiles = tiles_m * B * H
    multiprocessors = torch.cuda.get_device_properties(q.device).multi_processor_count if q.is_cuda else 132
    attention_kernel[(min(tiles, multiprocessors),)](
        described(q, 64), described(k, BLOCK_N), described(v, BLOCK_N), described(out, 64),
        N_k, tiles, tiles_m, D**-0.5, D=D, BLOCK_N=BLOCK_N, STAGES=STAGES,
        CONSUMERS=CONSUMERS, REGISTERS=REGISTERS, RAGGED=N_k % BLOCK_N != 0, num_warps=4, maxnreg=GIVEN,
    )  # fmt: skip
    return out
