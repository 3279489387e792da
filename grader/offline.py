"""What the compiler made of a kernel, read off its binary with the tools that ship in Triton's wheel."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Chip:
    """Limits of one multiprocessor. Source: NVIDIA CUDA C++ Programming Guide 13.0, table "Technical Specifications per
    Compute Capability"."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    shared_per_block: int
    shared_reserved: int = 1024  # bytes the system keeps for each block


CHIPS = {
    "sm_80": Chip(2048, 32, 65536, 164 * 1024, 163 * 1024),
    "sm_86": Chip(1536, 16, 65536, 100 * 1024, 99 * 1024),
    "sm_89": Chip(1536, 24, 65536, 100 * 1024, 99 * 1024),
    "sm_90": Chip(2048, 32, 65536, 228 * 1024, 227 * 1024),
    "sm_100": Chip(2048, 32, 65536, 228 * 1024, 227 * 1024),
}
# Counted in PTX, where each is one instruction of the machine code (tests/grader/test_offline_counts.py compares the
# two): a disassembly costs 0.35 s a kernel, the PTX is there already.
TENSOR_CORE = re.compile(r"\b(?:wgmma\.mma_async|mma\.sync|tcgen05\.mma)\b")
VECTOR_LOAD = re.compile(
    r"\bld\.global\S*\.v4\.(?:b32|u32|f32)|\bld\.global\S*\.v2\.(?:b64|u64)|\bcp\.async\.c[ag]\.\S+ .*, 0x10\b"
)
ASYNC_COPY = re.compile(r"\bcp\.async\.c[ag]\.|\bcp\.async\.bulk\.tensor\S*\.global\b")


def occupancy(target: str, registers: int, shared_bytes: int, num_warps: int) -> float | None:
    """Resident warps over the most a multiprocessor holds, from registers, shared memory and block slots."""
    chip = CHIPS.get(target)
    if chip is None:
        return None
    # registers are handed out by warp, in units of 256
    per_warp = -(-registers * 32 // 256) * 256
    by_registers = chip.registers // (per_warp * num_warps) if registers else chip.blocks
    shared = shared_bytes + chip.shared_reserved
    by_shared = chip.shared_bytes // shared if shared_bytes else chip.blocks
    blocks = min(by_registers, by_shared, chip.blocks, chip.threads // (32 * num_warps))
    return round(blocks * num_warps * 32 / chip.threads, 4)


def too_large(target: str, shared_bytes: int) -> str | None:
    """Why this kernel would not load on the target, if it would not."""
    chip = CHIPS.get(target)
    if chip is not None and shared_bytes > chip.shared_per_block:
        return (
            f"needs {shared_bytes} bytes of shared memory, {target} gives a program {chip.shared_per_block}: "
            "loading would raise OutOfResources; use smaller tiles or fewer num_stages"
        )
    return None


def tool(name: str) -> Path:
    """cuobjdump or nvdisasm from the wheel."""
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name


def sass(cubin: Path) -> str:
    """Disassembly of a cubin; empty when the tool is not there or fails."""
    return _output([str(tool("cuobjdump")), "-sass", str(cubin)])


def sass_with_lines(cubin: Path) -> str:
    """Disassembly with comments that name the source line, and what it was inlined at where that is kept."""
    return _output([str(tool("nvdisasm")), "-gi", "-c", str(cubin)])


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def compile_row(row: dict[str, Any], folder: Path, target: str) -> dict[str, Any]:
    """One entry of the verdict's `compile`, from what the runner wrote into its scratch folder."""
    found: dict[str, Any] = {
        "target": target,
        "kernel": str(row["kernel"]),
        "registers": None,
        "spill_bytes": None,
        "shared_bytes": int(row["shared_bytes"]),
        "num_warps": int(row["num_warps"]),
        "num_stages": row.get("num_stages"),
        "vector_loads": None,
        "async_copies": None,
        "tensor_core_ops": None,
        "occupancy": None,
        "signature": str(row.get("signature", "")),
        "constexprs": row.get("constexprs", {}),
    }
    binary = row.get("binary", "")
    if binary.endswith(".cubin"):
        path = folder / Path(binary).name
        usage = _output([str(tool("cuobjdump")), "--dump-resource-usage", str(path)])
        match = re.search(r"REG:(\d+) STACK:(\d+).*?LOCAL:(\d+)", usage)
        if match:
            found["registers"] = int(match[1])
            found["spill_bytes"] = max(int(match[2]), int(match[3]))
            found["occupancy"] = occupancy(target, int(match[1]), found["shared_bytes"], found["num_warps"])
        if row.get("assembly"):
            text = (folder / Path(row["assembly"]).name).read_text()
            found["vector_loads"] = len(VECTOR_LOAD.findall(text))
            found["async_copies"] = len(ASYNC_COPY.findall(text))
            found["tensor_core_ops"] = len(TENSOR_CORE.findall(text))
    elif row.get("assembly"):
        text = (folder / Path(row["assembly"]).name).read_text()
        registers = re.search(r"\.vgpr_count:\s*(\d+)", text)
        spills = re.search(r"\.vgpr_spill_count:\s*(\d+)", text)
        found["registers"] = int(registers[1]) if registers else None
        found["spill_bytes"] = 4 * int(spills[1]) if spills else None
        found["vector_loads"] = len(re.findall(r"\b(?:global|buffer)_load_dwordx4\b", text))
        found["tensor_core_ops"] = len(re.findall(r"\bv_mfma_|\bv_wmma_", text))
    return found
