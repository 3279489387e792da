"""What works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import Any

STRANGERS = "grade files of strangers in a container"
LAYERS = {
    "files": (
        "files a graded file reaches",
        "all that you can read and write: Landlock (Linux 5.13 or newer, package landlockpy) is not here",
        STRANGERS,
    ),
    "network": (
        "network of a graded file",
        "reachable: neither a network namespace nor seccomp could be had",
        STRANGERS,
    ),
    "system_calls": (
        "system calls of a graded file",
        "not filtered: libseccomp (package pyseccomp) is not here",
        "install libseccomp2 with the system's packages",
    ),
    "processes": ("processes of a graded file", "not limited", STRANGERS),
}


def doctor(judge: Any, reason: str | None) -> dict[str, Any]:
    rows: list[dict[str, str]] = []

    def row(name: str, state: str, detail: str, advice: str = "") -> None:
        rows.append({"name": name, "state": state, "detail": detail, "advice": advice})

    versions = {"python": platform.python_version()}
    for package in ("torch", "triton", "numpy"):
        try:
            versions[package] = version(package)
            row(package, "ok", versions[package])
        except PackageNotFoundError:
            needed = "Linux only" if package == "triton" else "needed for grading"
            row(package, "missing", needed, f"pip install {package}")
    if judge is None:
        row("grading", "missing", reason or "the grader could not start", "install what is missing above")
        return {"versions": versions, "rows": rows}
    row("interpreter", "ok", "values with exact bounds checks; bfloat16 arithmetic and races need a GPU")
    _offline(row)
    _gpu(judge, row)
    _sandbox(judge, row)
    return {"versions": versions, "rows": rows}


def _offline(row: Any) -> None:
    from grader.offline import tool

    missing = [name for name in ("cuobjdump", "ptxas") if not tool(name).exists()]
    if missing:
        row(
            "offline compile",
            "limited",
            f"{', '.join(missing)} not in the triton package",
            "reinstall triton from its wheel",
        )
    else:
        row(
            "offline compile",
            "ok",
            "sm_80, sm_90, sm_100, gfx942: registers, shared memory, vector loads, tensor-core use",
        )


def _gpu(judge: Any, row: Any) -> None:
    import torch

    if "cuda" in judge.warm:
        major, minor = torch.cuda.get_device_capability()
        name = torch.cuda.get_device_name()
        row(
            "GPU",
            "ok" if major >= 8 else "limited",
            f"{name}, sm_{major}{minor}",
            "" if major >= 8 else "Triton wants sm_80 or newer",
        )
        found = shutil.which("compute-sanitizer") or os.path.exists("/usr/local/cuda/bin/compute-sanitizer")
        row(
            "compute-sanitizer",
            "ok" if found else "missing",
            "--sanitize" if found else "not on the PATH",
            "" if found else "install the CUDA toolkit",
        )
    elif torch.version.cuda is None and torch.version.hip is None:
        row(
            "GPU",
            "missing",
            "this PyTorch is a CPU build",
            "timing and torch.compile need a CUDA build of PyTorch and an NVIDIA GPU",
        )
    else:
        row("GPU", "missing", "PyTorch sees no CUDA device", "check nvidia-smi and the driver")


def _sandbox(judge: Any, row: Any) -> None:
    """One row a layer: what confines a graded file here, as tried when the grader started."""
    layers = judge.warm["cuda" if "cuda" in judge.warm else "interpreter"].layers
    for layer, (title, without, advice) in LAYERS.items():
        held = layer in layers
        row(title, "ok" if held else "limited", layers.get(layer, without), "" if held else advice)
