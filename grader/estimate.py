"""A time for a GPU that is not there, from counted bytes, FLOPs, launches and the compiler's resources. A model.

A call takes as long as the slowest of five things that go on together, and its launches on top:

    memory    bytes / (data-sheet bandwidth x COPY_SHARE), and never faster than the loads in flight allow: Little's law
    compute   FLOPs / (data-sheet peak x PRODUCT_SHARE), times the last wave's idle multiprocessors; what a loop issues
              beside its products comes on top where one program has a multiprocessor to itself, and hides else
    issue     what the warps of a kernel without products issue outside loops, over what a multiprocessor starts in a
              clock, and over what each kind of unit takes. NVIDIA's only: on AMD GPUs a mask is a jump
    l2        bytes that a loop of products loads, over what the L2 gives
    starts    one program a clock
    launch    LAUNCH_US for each kernel

The constants are of the hardware, or round numbers; benchmarks/estimate.py compares the model with measurements, and
says which of them were known when the rules were written. Left out: bank conflicts, partition camping, atomics that
collide, scattered access, spilled registers, power limits, what loops without products issue, and the time in which
Python prepares a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from grader.devices import Device
from grader.instruction_mix import Issue, Mix

COPY_SHARE = 0.88  # of the data sheet's bandwidth reaches a device-to-device copy: 4,228 of 4,800 GB/s, an H200
PRODUCT_SHARE = 0.75  # of the data sheet's peak reaches an 8192^3 matmul of PyTorch: 738 of 989.5 TFLOP/s, an H200
LATENCY_US = 0.7  # of a load from memory under load: assumed for every device
LAUNCH_US = 2.5  # a kernel's start and end on an idle device: assumed for every device
SPECIAL_LANES = 16  # exponentials a clock and multiprocessor; CUDA C++ Programming Guide 13.0, Arithmetic Instructions
# (AMD: a quarter of the rate of 64 lanes, as much)
INTEGER_LANES = 64  # the same table, compute capability 8.0 to 9.0: sums, comparisons, logic, shifts; and products
# A product whose upper half is kept is taken to need the multiplier twice, since it has two results of 32 bits. NVIDIA
# gives no figure; others measured half of the rate (RTX 4090: 32 a clock).
SHUFFLE_LANES = 32  # the same table


@dataclass(frozen=True)
class Launch:
    """One launch: its grid's size and what the compiler gave it. None where the compiler does not say."""

    kernel: str
    programs: int
    num_warps: int
    registers: int | None
    shared_bytes: int
    mix: Mix | None = None
    issue: Issue | None = None
    stages: int = 1  # of its loads that a loop has under way
    trial: bool = False  # an autotuner's
    binary: str = ""  # the file of its machine code


@dataclass(frozen=True)
class Call:
    """One call of an entry. Bytes and FLOPs of all of its launches together."""

    read_bytes: float  # that must come from memory
    again_bytes: float  # read again by the program that had read them
    written_bytes: float
    flops: float
    launches: tuple[Launch, ...]
    least_bytes: float  # of the task, and so the limit
    in_flight_bytes: float | None = None  # of one program whose loads stand in a loop; None: all of its loads at a time
    torch_bytes: float = 0.0  # that PyTorch's own operations move
    torch_calls: int = 0


@dataclass(frozen=True)
class Estimate:
    """Modelled, in microseconds. `limit` is the largest part: memory, latency, compute, issue, l2, starts or launch."""

    device: str
    time_us: float
    limit: str
    memory_us: float
    compute_us: float
    issue_us: float
    l2_us: float
    starts_us: float
    launch_us: float
    limit_us: float  # no call of this task is faster on this device, by the same model
    roof_gb_per_s: float  # what the model takes for reached: of memory …
    roof_tflop_per_s: float  # … and of the units that the call computes with
    moved_bytes: float
    least_bytes: float  # of the task
    flops: float
    occupancy: float | None  # of the launch with the most programs

    def as_dict(self) -> dict[str, Any]:
        rounded = {k: round(v, 3) if isinstance(v, float) else v for k, v in vars(self).items()}
        return {**rounded, "model": True, "percent_of_limit": round(100 * self.limit_us / self.time_us, 1)}


def estimate(device: Device, call: Call) -> Estimate:
    launches = tuned(device, call.launches)
    largest = max(launches, key=lambda launch: launch.programs, default=None)
    moved = call.read_bytes + call.written_bytes + call.torch_bytes
    if call.again_bytes and largest is not None and not _stays_in_l2(device, call, largest):
        moved += call.again_bytes
    memory = moved / (device.gb_per_s * COPY_SHARE) / 1000
    # of several launches it is not known which bytes are whose
    latency = _waiting_us(device, call, launches[0]) if len(launches) == 1 else 0.0
    compute, l2 = _compute_us(device, call.flops, launches), _l2_us(device, call.flops, launches)
    issue = sum(_issue_us(device, launch) for launch in launches)
    starts = sum(launch.programs for launch in launches) / device.mhz
    launch_us = LAUNCH_US * (len(launches) + call.torch_calls)
    parts = {"memory": memory, "latency": latency, "compute": compute, "issue": issue, "l2": l2, "starts": starts}
    limit = max(parts, key=lambda name: parts[name])
    return Estimate(
        device=device.name,
        time_us=parts[limit] + launch_us,
        limit="launch" if launch_us > parts[limit] else limit,
        memory_us=max(memory, latency),
        compute_us=compute,
        issue_us=issue,
        l2_us=l2,
        starts_us=starts,
        launch_us=launch_us,
        limit_us=limit_us(device, call.least_bytes, call.flops, _kind(launches)),
        roof_gb_per_s=device.gb_per_s * COPY_SHARE,
        roof_tflop_per_s=_peak(device, _kind(launches)),
        moved_bytes=moved,
        least_bytes=call.least_bytes,
        flops=call.flops,
        occupancy=_occupancy(device, largest) if largest is not None else None,
    )


def limit_us(device: Device, least_bytes: float, flops: float, kind: str = "fp32") -> float:
    """What no call of a task can be faster than, with the shares of the data sheet that a good kernel reaches."""
    memory = least_bytes / (device.gb_per_s * COPY_SHARE) / 1000
    return max(memory, flops / (_peak(device, kind) * 1e6)) + LAUNCH_US


def resident(device: Device, launch: Launch) -> int:
    """Programs of this launch that a multiprocessor holds at a time, at least 1."""
    most = min(device.programs, device.warps // launch.num_warps or 1)
    if launch.registers:
        # handed out by warp, in units of 256 (NVIDIA) or of 8 for each of 64 lanes (AMD)
        unit = 256 if device.lanes == 32 else 512
        per_warp = -(-launch.registers * device.lanes // unit) * unit
        most = min(most, device.registers // (per_warp * launch.num_warps))
    if launch.shared_bytes:
        reserved = 1024 if device.lanes == 32 else 0
        most = min(most, device.shared_bytes // (launch.shared_bytes + reserved))
    return max(most, 1)


def _occupancy(device: Device, launch: Launch) -> float:
    return round(resident(device, launch) * launch.num_warps / device.warps, 4)


def tuned(device: Device, launches: Sequence[Launch]) -> tuple[Launch, ...]:
    """The launches that count: where an autotuner tried several configurations, the one the model finds fastest."""
    found = []
    for launch in launches:
        if launch.trial:
            continue
        tries = [t for t in launches if t.trial and t.kernel == launch.kernel] or [launch]
        found.append(replace(min(tries, key=lambda t: _alone_us(device, t)), trial=False))
    return tuple(found)


def _alone_us(device: Device, launch: Launch) -> float:
    """For comparing configurations of one kernel that do the same work."""
    flops = 1e12
    return max(_compute_us(device, flops, (launch,)), _l2_us(device, flops, (launch,))) + launch.programs / device.mhz


def _kind(launches: Sequence[Launch]) -> str:
    return next((launch.mix.kind for launch in launches if launch.mix is not None), "fp32")


def _peak(device: Device, kind: str) -> float:
    """TFLOP/s that are reached. Ordinary arithmetic: half of the peak, which counts a fused multiply-add as two."""
    if kind == "fp32" or kind not in device.tflops:
        return device.tflops["fp32"] / 2
    return device.tflops[kind] * PRODUCT_SHARE


def _compute_us(device: Device, flops: float, launches: Sequence[Launch]) -> float:
    multiplying = [launch for launch in launches if launch.mix is not None]
    if not multiplying:
        return flops / (_peak(device, "fp32") * 1e6)
    share = flops / sum(launch.programs for launch in multiplying)  # of each program, of equal ones
    return sum(_products_us(device, share * launch.programs, launch) for launch in multiplying)


def _products_us(device: Device, flops: float, launch: Launch) -> float:
    mix = launch.mix
    assert mix is not None
    each = launch.programs / device.multiprocessors
    idle = -(-launch.programs // device.multiprocessors) / each  # the last wave leaves some without work
    products = flops / (_peak(device, mix.kind) * 1e6)
    passes = flops / mix.flops / device.multiprocessors  # of a warp through the loops, on each multiprocessor
    issue = passes * mix.issued / device.issued
    special = passes * mix.special * device.lanes / SPECIAL_LANES
    beside = max(issue, special) / device.mhz
    # with one program on a multiprocessor, nothing multiplies while it takes exponentials
    return idle * (products + beside if resident(device, launch) == 1 else max(products, beside))


def _issue_us(device: Device, launch: Launch) -> float:
    """A launch's warps, at the slowest of the rates at which a multiprocessor takes their instructions."""
    issue = launch.issue
    if issue is None:
        return 0.0
    clocks = max(
        issue.issued / device.issued,
        issue.integer * device.lanes / INTEGER_LANES,
        issue.products * device.lanes / INTEGER_LANES,
        # integers are multiplied by units that serve float32 as well
        (issue.products + issue.floating) * device.lanes / device.float_lanes,
        issue.special * device.lanes / SPECIAL_LANES,
        issue.shuffles * device.lanes / SHUFFLE_LANES,
    )
    return launch.programs * launch.num_warps / device.multiprocessors * clocks / device.mhz


def _l2_us(device: Device, flops: float, launches: Sequence[Launch]) -> float:
    """Small tiles load the same data again and again: from the L2, which has a bandwidth of its own."""
    multiplying = [launch for launch in launches if launch.mix is not None]
    if device.l2_bytes_per_clock is None or not multiplying:
        return 0.0
    share = flops / sum(launch.programs for launch in multiplying)
    loaded = sum(
        share * launch.programs / launch.mix.flops * launch.mix.loaded * device.lanes
        for launch in multiplying
        if launch.mix is not None
    )
    return loaded / device.l2_bytes_per_clock / device.mhz


def _stays_in_l2(device: Device, call: Call, launch: Launch) -> bool:
    """Whether what the programs on the device read is still in the L2 when they read it again."""
    on_device = min(launch.programs, resident(device, launch) * device.multiprocessors)
    return on_device * call.read_bytes / max(launch.programs, 1) <= device.l2_bytes


def _waiting_us(device: Device, call: Call, launch: Launch) -> float:
    """Little's law: the loads in flight, over the time that each takes, are the bandwidth that can be had."""
    if launch.mix is not None or not launch.programs or not call.read_bytes:
        return 0.0
    on_device = min(launch.programs, resident(device, launch) * device.multiprocessors)
    each = call.read_bytes / launch.programs
    if call.in_flight_bytes is not None:
        each = min(each, call.in_flight_bytes * max(launch.stages, 1))
    return call.read_bytes / (on_device * each / LATENCY_US) if each else 0.0
