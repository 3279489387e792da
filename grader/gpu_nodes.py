"""The device files of the GPUs that this process was not given, from what the NVIDIA driver tells in /proc.

CUDA_VISIBLE_DEVICES binds only who honours it: a submission can start a process with another value. Asked without CUDA.
"""

from __future__ import annotations

import os
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
DEV = Path("/dev")


def left_out() -> frozenset[str]:
    """Names in /dev of all GPUs but the one that CUDA_VISIBLE_DEVICES names.

    None where it names several, or is not understood.
    """
    here = told()
    places = _places(os.environ.get("CUDA_VISIBLE_DEVICES", "").strip(), here)
    if len(places) != 1:
        return frozenset()
    return frozenset(_node(facts) for number, facts in enumerate(here) if number != places[0])


def renumber(hidden: frozenset[str]) -> None:
    """Once `hidden` are left out for good: CUDA counts what it can open, so the GPU that is left is number 0."""
    if hidden:
        os.environ["CUDA_VISIBLE_DEVICES"] = "0"


def told() -> list[dict[str, str]]:
    """What the driver says of each GPU whose device file is here, by PCI bus. A container may see others in /proc."""
    try:
        texts = [(folder / "information").read_text() for folder in sorted(DRIVER.iterdir())]
    except OSError:
        return []
    pairs = ([line.partition(":") for line in text.splitlines()] for text in texts)
    found = [{key.strip(): value.strip() for key, _, value in lines} for lines in pairs]
    return [facts for facts in found if (DEV / _node(facts)).exists()]


def _node(facts: dict[str, str]) -> str:
    return f"nvidia{facts.get('Device Minor', ' of no number')}"


def _places(name: str, here: list[dict[str, str]]) -> list[int]:
    """Which of the GPUs CUDA takes `name` for."""
    if not name.isdigit():
        if not name.startswith("GPU-"):
            return []
        return [n for n, facts in enumerate(here) if facts.get("GPU UUID", "").lower().startswith(name.lower())]
    # CUDA numbers the fastest first, unless it is told to go by the bus; GPUs of one model stand in the bus's order
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len({facts.get("Model") for facts in here}) == 1
    return [int(name)] if by_bus and int(name) < len(here) else []
