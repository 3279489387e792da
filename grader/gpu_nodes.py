"""The device files of the GPUs that this process was not given, from what the NVIDIA driver tells in /proc.

CUDA_VISIBLE_DEVICES binds only who honours it: a submission can start a process with another value. Asked without CUDA.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
NODE = re.compile(r"nvidia\d+")


def left_out() -> frozenset[str]:
    """Names in /dev of all GPUs but the one that CUDA_VISIBLE_DEVICES names.

    None where it names several, or is not understood.
    """
    told = _told()
    nodes = [f"nvidia{facts.get('Device Minor', '?')}" for facts in told]
    places = _places(os.environ.get("CUDA_VISIBLE_DEVICES", "").strip(), told)
    if len(places) != 1 or not all(map(NODE.fullmatch, nodes)):
        return frozenset()
    return frozenset(nodes) - {nodes[places[0]]}


def renumber() -> None:
    """Where the others are left out for good: CUDA counts what it can open, so the one that is left is number 0."""
    if left_out():
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"


def _told() -> list[dict[str, str]]:
    """What the driver says of each GPU, by PCI bus."""
    try:
        texts = [(folder / "information").read_text() for folder in sorted(DRIVER.iterdir())]
    except OSError:
        return []
    pairs = ([line.partition(":") for line in text.splitlines()] for text in texts)
    return [{key.strip(): value.strip() for key, _, value in lines} for lines in pairs]


def _places(name: str, told: list[dict[str, str]]) -> list[int]:
    """Which of the GPUs CUDA takes `name` for."""
    if not name.isdigit():
        if not name.startswith("GPU-"):
            return []
        return [n for n, facts in enumerate(told) if facts.get("GPU UUID", "").lower().startswith(name.lower())]
    # CUDA numbers the fastest first, unless it is told to go by the bus; GPUs of one model stand in the bus's order
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({facts.get("Model") for facts in told}) == 1
    return [int(name)] if by_bus and int(name) < len(told) else []
