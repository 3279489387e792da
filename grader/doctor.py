"""What works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from typing import Any


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
    row(
        "network of a graded file",
        "ok" if _namespaces() else "limited",
        "cut off" if _namespaces() else "reachable: this system gives ordinary users no network namespace",
        "" if _namespaces() else "grade files of strangers in a container",
    )
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


def _namespaces() -> bool:
    """Whether a runner can be cut off from the network."""
    import ctypes

    pid = os.fork()
    if pid == 0:
        libc = ctypes.CDLL(None)
        ok = libc.unshare(0x40000000) == 0 or libc.unshare(0x10000000 | 0x40000000) == 0
        os._exit(0 if ok else 1)
    return os.waitpid(pid, 0)[1] == 0
