"""attention, rung 9: Gluon. Both products are in flight at once, and the second one still runs during the softmax.

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
barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier


@gluon.jit
def fetch(desc, head, first, bar, buf, wanted):
    """Ask the copy engine for the tile at row `first`, if it is wanted. bar ends its phase when all bytes are there."""
    mbarrier.expect(bar, desc.block_type.nbytes, pred=wanted)
    load_tile(desc, [head, first, 0], bar, buf, pred=wanted)


@gluon.jit
def following(slot, phase, STAGES: gl.constexpr):
    """The ring's next buffer. Each time round, its barriers are in the other phase."""
    last = slot == STAGES - 1
    return gl.where(last, 0, slot + 1), gl.where(last, phase ^ 1, phase)


@gluon.jit
def softmax(s, m, l, scale):
    """p of one block of scores, the factor for what was summed before it, the new maximum and sum."""
    m_new = gl.maximum(m, gl.max(s, axis=1) * scale)
    alpha = gl.exp2(m - m_new)
    p = gl.exp2(s * scale - gl.expand_dims(m_new, 1))
    return p, alpha, m_new, l * alpha + gl.sum(p, axis=1)


@gluon.jit(do_not_specialize=["N_k", "tiles_m"])
def attention_kernel(
    q_desc, k_desc, v_desc, out_desc, N_k, tiles_m, scale,
    D: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    dtype: gl.constexpr = q_desc.dtype
    # Where wgmma leaves its results: 4 warps, 16 rows each. p is multiplied from registers, without any exchange.
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    acc_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, acc_layout, 2)
    s_row: gl.constexpr = gl.SliceLayout(1, s_layout)
    acc_row: gl.constexpr = gl.SliceLayout(1, acc_layout)

    q_buf = gl.allocate_shared_memory(dtype, [1, BLOCK_M, D], q_desc.layout)
    k_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK_N, D], k_desc.layout)
    v_bufs = gl.allocate_shared_memory(dtype, [STAGES, 1, BLOCK_N, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full.index(0), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
    fence_async_shared()  # the copy engine sees the barriers
    barrier()

    head = gl.program_id(0) // tiles_m
    row = gl.program_id(0) % tiles_m * BLOCK_M
    # Blocks are taken from the last one: the one with keys past N_k comes first, and no other needs a mask.
    n = gl.cdiv(N_k, BLOCK_N)
    fetch(q_desc, head, row, q_full.index(0), q_buf, True)
    for i in gl.static_range(STAGES):
        first = (n - 1 - i) * BLOCK_N
        fetch(k_desc, head, first, k_full.index(i), k_bufs.index(i), i < n)
        fetch(v_desc, head, first, v_full.index(i), v_bufs.index(i), i < n)
    q = q_buf.reshape([BLOCK_M, D])
    scale *= 1.4426950408889634  # log2(e)
    m = gl.full([BLOCK_M], float("-inf"), gl.float32, s_row)
    l = gl.full([BLOCK_M], 0.0, gl.float32, s_row)
    acc = gl.zeros([BLOCK_M, D], gl.float32, acc_layout)
    zero = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, s_layout)

    # block 0: only its p
    mbarrier.wait(q_full.index(0), 0)
    mbarrier.wait(k_full.index(0), 0)
    k = k_bufs.index(0).reshape([BLOCK_N, D])
    s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
    s = warpgroup_mma_wait(0, (s,))
    barrier()  # every warp has read this k
    fetch(k_desc, head, (n - 1 - STAGES) * BLOCK_N, k_full.index(0), k_bufs.index(0), n > STAGES)
    keys = (n - 1) * BLOCK_N + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, s_layout))
    s = gl.where(gl.expand_dims(keys < N_k, 0), s, float("-inf"))
    p, alpha, m, l = softmax(s, m, l, scale)
    p16 = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)
    slot = gl.to_tensor(0)
    phase = gl.to_tensor(0)
    k_slot, k_phase = following(slot, phase, STAGES)
    mbarrier.wait(k_full.index(k_slot), k_phase, pred=n > 1)

    for i in range(1, n):
        # p16 is of block i - 1, whose v is in `slot`
        k = k_bufs.index(k_slot).reshape([BLOCK_N, D])
        s = warpgroup_mma(q, k.permute((1, 0)), zero, use_acc=False, is_async=True)
        mbarrier.wait(v_full.index(slot), phase)
        v = v_bufs.index(slot).reshape([BLOCK_N, D])
        acc = warpgroup_mma(p16, v, acc, is_async=True)
        s = warpgroup_mma_wait(1, (s,))  # all but the youngest are done: s is there, acc need not be
        barrier()
        fetch(k_desc, head, (n - 1 - i - STAGES) * BLOCK_N, k_full.index(k_slot), k_bufs.index(k_slot), i + STAGES < n)
        p, alpha, m, l = softmax(s, m, l, scale)
        # The wait for the next k stands here for a second reason: ptxas moves no exponential past this branch. One
        # line further down, all of them come behind the wait for acc at D = 128, and nothing overlaps.
        old_slot, slot, phase = slot, k_slot, k_phase
        k_slot, k_phase = following(slot, phase, STAGES)
        mbarrier.wait(k_full.index(k_slot), k_phase, pred=i + 1 < n)
        acc = warpgroup_mma_wait(0, (acc,))
        barrier()  # every warp has read this v
        first = (n - i - STAGES) * BLOCK_N
        fetch(v_desc, head, first, v_full.index(old_slot), v_bufs.index(old_slot), i - 1 + STAGES < n)
        acc = acc * gl.expand_dims(gl.convert_layout(alpha, acc_row, assert_trivial=True), 1)
        p16 = gl.convert_layout(p.to(dtype), p_layout, assert_trivial=True)

    # the last block's product
    mbarrier.wait(v_full.index(slot), phase)
    acc = warpgroup_mma(p16, v_bufs.index(slot).reshape([BLOCK_N, D]), acc, is_async=True)
    acc = warpgroup_mma_wait(0, (acc,))
    l_acc = gl.convert_layout(l, acc_row, assert_trivial=True)
    q.store((acc * gl.expand_dims(1.0 / l_acc, 1)).to(dtype))  # q is not needed any more
    fence_async_shared()
    store_tile(out_desc, [head, row, 0], q_buf)  # rows past N_q are not written
    tma.store_wait(0)


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
    # Three programs fit on a multiprocessor at D = 64, two at D = 128.
    BLOCK_M, BLOCK_N, STAGES = (64, 64, 3) if D == 128 else (64, 128, 2)
    tiles_m = triton.cdiv(N_q, BLOCK_M)
    attention_kernel[(tiles_m * B * H,)](
        described(q, BLOCK_M), described(k, BLOCK_N), described(v, BLOCK_N), described(out, BLOCK_M),
        N_k, tiles_m, D**-0.5, D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, STAGES=STAGES, num_warps=4,
    )  # fmt: skip
    return out
