"""What five GPUs can do by their makers' documents: the base of an estimate for a GPU that is not there.

No figure here was measured. What a device reaches of them is the business of `grader/estimate.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One GPU. A multiprocessor is an SM of NVIDIA's or a compute unit (CU) of AMD's.

    `tflops` are dense peaks with accumulation in float32 (int8: in int32), in TFLOP/s or TOP/s; "fp32" is the ordinary
    units', two FLOPs a fused multiply-add, all others are the tensor or matrix cores'. A dtype that
    they lack is left out.
    """

    name: str
    target: str  # as `--target` takes it
    gb_per_s: float  # device memory, 10^9 bytes a second, reads and writes together
    tflops: Mapping[str, float]  # by fp32, tf32, fp16 (bf16 is the same), fp8, int8
    multiprocessors: int
    mhz: int  # the highest clock
    l2_bytes: int
    warps: int  # a multiprocessor holds, of `lanes` threads
    lanes: int
    programs: int  # a multiprocessor holds at most; AMD: as many as it holds warps
    registers: int  # of 32 bits, a multiprocessor
    shared_bytes: int  # a multiprocessor: shared memory, or LDS
    l2_bytes_per_clock: int | None  # that all multiprocessors together read from the L2; None: not published
    issued: int  # instructions of warps that a multiprocessor starts in a clock
    sources: tuple[str, ...]

    @property
    def float_lanes(self) -> int:
        """Fused multiply-adds of float32 that a multiprocessor takes in a clock, by the peak."""
        return round(self.tflops["fp32"] * 1e6 / (2 * self.multiprocessors * self.mhz))


KB, MB = 1024, 1024 * 1024
_CUDA_TABLE = (
    "NVIDIA CUDA C++ Programming Guide 13.0, table Technical Specifications per Compute Capability: warps, thread "
    "blocks, registers and shared memory of a multiprocessor"
)
_HOPPER = (
    "NVIDIA H100 Tensor Core GPU Architecture white paper, V1.04: 132 SMs, 50 MB of L2; that it is read at 5120 bytes "
    "a clock, as the A100's, is assumed"
)

A100 = Device(
    "NVIDIA A100 SXM 80GB", "sm_80", 2039.0, {"fp32": 19.5, "tf32": 156.0, "fp16": 312.0, "int8": 624.0},
    108, 1410, 40 * MB, 64, 32, 32, 65536, 164 * KB, 5120, 4,
    (
        "NVIDIA A100 80GB SXM datasheet: 2,039 GB/s, FP32 19.5, TF32 156, FP16 and BF16 312 TFLOPS, INT8 624 TOPS, "
        "dense",
        "NVIDIA A100 Tensor Core GPU Architecture white paper: 108 SMs, 1410 MHz boost, 40 MB of L2, which is "
        "read at 5120 bytes a clock",
        _CUDA_TABLE,
    ),
)  # fmt: skip
H100 = Device(
    "NVIDIA H100 SXM", "sm_90", 3350.0,
    {"fp32": 67.0, "tf32": 494.5, "fp16": 989.5, "fp8": 1979.0, "int8": 1979.0},
    132, 1980, 50 * MB, 64, 32, 32, 65536, 228 * KB, 5120, 4,
    (
        "NVIDIA H100 SXM datasheet: 3.35 TB/s, FP32 67, TF32 989, FP16 and BF16 1,979, FP8 3,958 TFLOPS, INT8 "
        "3,958 TOPS; those of the tensor cores with sparsity, half of it dense",
        _HOPPER,
        "clock: the one that gives the data sheet's 67 TFLOPS, 132 SMs x 128 lanes x 2 FLOPs x 1.98 GHz",
        _CUDA_TABLE,
    ),
)  # fmt: skip
H200 = Device(
    "NVIDIA H200 SXM", "sm_90", 4800.0,
    {"fp32": 67.0, "tf32": 494.5, "fp16": 989.5, "fp8": 1979.0, "int8": 1979.0},
    132, 1980, 50 * MB, 64, 32, 32, 65536, 228 * KB, 5120, 4,
    (
        "NVIDIA H200 SXM datasheet: 4.8 TB/s, FP32 67, TF32 989, FP16 and BF16 1,979, FP8 3,958 TFLOPS, INT8 "
        "3,958 TOPS; those of the tensor cores with sparsity, half of it dense",
        f"{_HOPPER} (the H200 has the same chip; its driver may report more L2)",
        "clock: the one that gives the data sheet's 67 TFLOPS, 132 SMs x 128 lanes x 2 FLOPs x 1.98 GHz",
        _CUDA_TABLE,
    ),
)  # fmt: skip
RTX_4090 = Device(
    "NVIDIA GeForce RTX 4090", "sm_89", 1008.0,
    {"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "fp8": 330.3, "int8": 660.6},
    128, 2520, 72 * MB, 48, 32, 24, 65536, 100 * KB, None, 4,
    (
        "NVIDIA Ada GPU Architecture white paper, V2.01, appendix A: 1008 GB/s, 128 SMs, 2520 MHz boost, 72 MB of L2, "
        "FP32 82.6, TF32 82.6, FP16 and BF16 with FP32 accumulate 165.2, FP8 with FP32 accumulate 330.3 TFLOPS, INT8 "
        "660.6 TOPS, dense",
        _CUDA_TABLE,
    ),
)  # fmt: skip
MI300X = Device(
    "AMD Instinct MI300X", "gfx942", 5300.0,
    {"fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "fp8": 2614.9, "int8": 2614.9},
    304, 2100, 32 * MB, 32, 64, 32, 131072, 64 * KB, 16384, 1,
    (
        "AMD Instinct MI300X data sheet (2023): 304 compute units, 2100 MHz peak, 5.3 TB/s, FP32 163.4, TF32 653.7, "
        "FP16 and BF16 1,307.4, FP8 2,614.9 TFLOPS, INT8 2,614.9 TOPS, dense",
        "AMD CDNA 3 Architecture white paper (2023): 4 MB of L2, read at 2 KB a clock, on each of 8 dies, 64 KB of "
        "LDS and 512 KB of vector registers a compute unit, four units of 16 lanes, each a warp of 64 in four clocks",
    ),
)  # fmt: skip

DEVICES = {"a100": A100, "h100": H100, "h200": H200, "rtx4090": RTX_4090, "mi300x": MI300X}
DEFAULT = "h200"  # the device whose measurements the estimate was compared with
