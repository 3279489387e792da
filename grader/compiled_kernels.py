"""In the runner: what was compiled, as rows for the judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from grader import loop_carries

MOST = 64  # kernels that are told of


def rows(kernels: list[Any], stage: str | None) -> list[dict[str, Any]]:
    """One row a kernel, with its binary, its assembly and the wanted stage in the working folder."""
    found = []
    for number, kernel in enumerate(kernels[:MOST]):
        data, metadata = kernel.asm, kernel.metadata
        extension = next((e for e in ("cubin", "hsaco") if e in data), None)
        row: dict[str, Any] = {
            "kernel": metadata.name,
            "num_warps": metadata.num_warps,
            "num_stages": getattr(metadata, "num_stages", None),
            "shared_bytes": metadata.shared,
            "signature": ", ".join(str(t) for t in kernel.src.signature.values() if t != "constexpr"),
            "constexprs": _constexprs(kernel),
            "loops": loop_carries.loops(data.get("ttir", "")),
        }
        if extension:
            name = f"kernel-{number}.{extension}"
            Path(name).write_bytes(data[extension])
            row["binary"] = name
        assembly = next((e for e in ("ptx", "amdgcn") if e in data), None)
        if assembly:
            row["assembly"] = f"kernel-{number}.{assembly}"
            Path(row["assembly"]).write_text(data[assembly])
        if stage in data and stage not in ("cubin",):
            Path(f"kernel-{number}.{stage}").write_text(data[stage])
            row["stage"] = f"kernel-{number}.{stage}"
        if stage == "all":
            row["stages"] = _written(data, number)
        found.append(row)
    return found


def _written(data: Any, number: int) -> dict[str, str]:
    """Every stage that is text, each in a file of its own in the working folder: stage to file name."""
    names = {}
    for stage, text in data.items():
        if isinstance(text, str):
            names[stage] = f"kernel-{number}.stage-{stage}"
            Path(names[stage]).write_text(text)
    return names


def _constexprs(kernel: Any) -> dict[str, Any]:
    names = list(kernel.src.signature)
    found = {}
    for path, value in (getattr(kernel.src, "constants", None) or {}).items():
        index = path[0] if isinstance(path, tuple) else path
        name = names[index] if isinstance(index, int) else str(index)
        found[name] = value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
    return found
