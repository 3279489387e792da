"""The GPUs of this machine, and how many graders one of them has room for; asked without CUDA."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from grader import gpu_nodes

QUERY = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
PATIENCE = 10.0  # seconds for its answer
MOST = 4  # graders: a grade waits for compilers most of its time, and has the GPU alone for some of the rest
GRADER_MB = 8192  # GPU memory: its processes' contexts, and the largest inputs that are timed with all their copies
CORES = 2  # for each grader: the judge, and a compiler or a runner beside it


def gpus() -> tuple[str, ...]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return tuple(name.strip() for name in given.split(",") if name.strip() and name.strip() != "-1")
    return tuple(str(number) for number in range(len(gpu_nodes.told())))


def graders_each(count: int, cores: int, memory_mb: Sequence[int]) -> int:
    """How many graders each of `count` GPUs is given; `memory_mb`: of the GPUs, empty where it is not known."""
    room = min(memory_mb) // GRADER_MB if memory_mb else 1
    return max(1, min(MOST, cores // (CORES * max(1, count)), room))


def memory_mb() -> tuple[int, ...]:
    """Of every GPU here, those included that CUDA_VISIBLE_DEVICES leaves out; empty where no tool tells."""
    try:
        told = subprocess.run(QUERY, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
        return tuple(int(line) for line in told.splitlines() if line.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()
