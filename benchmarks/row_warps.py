"""How many warps should a program have that owns one row? The reference kernels with each number, on a GPU. Markdown.

    python benchmarks/row_warps.py [--out DIR]

Softmax in float16, the two norms in bfloat16, 2^27 elements in rows of N. Shares of the bandwidth of a copy of the same
bytes; medians, cold L2, all numbers of warps of a row interleaved in one run, every output compared with PyTorch's.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
import triton  # noqa: E402

from grader.catalog import find  # noqa: E402
from grader.timing import differs, interleaved  # noqa: E402

ELEMENTS = 1 << 27
WARPS = (1, 2, 4, 8, 16, 32)
COLUMNS = (781, 1024, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 32768)
KERNELS = ("softmax", "layer_norm", "rms_norm")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("this measures a GPU, and PyTorch sees none here", file=sys.stderr)
        return 3
    device = torch.cuda.get_device_name()
    lines = [
        "# Warps of a program that owns one row",
        "",
        f"{device}, torch {torch.__version__}, triton {triton.__version__}, {datetime.date.today()}. Written by "
        "`python benchmarks/row_warps.py`: shares of the bandwidth of a copy; in brackets elements a thread.",
    ]
    for name in KERNELS:
        lines += ["", f"## {name}", "", f"| N | {' | '.join(f'{w} warps' for w in WARPS)} | the solution's |"]
        lines.append("|---" * (len(WARPS) + 2) + "|")
        for n_cols in COLUMNS:
            lines.append(row(name, n_cols))
            print(lines[-1], flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"row-warps-{device.lower().replace(' ', '-')}.md").write_text("\n".join(lines) + "\n")
    return 0


def row(name: str, n_cols: int) -> str:
    module = loaded(name)
    dtype = torch.float16 if name == "softmax" else torch.bfloat16
    x = torch.randn(ELEMENTS // n_cols, n_cols, device="cuda", dtype=dtype)
    weight, bias = (torch.randn(n_cols, device="cuda", dtype=dtype) for _ in range(2))
    out, copied = torch.empty_like(x), torch.empty_like(x)
    block = triton.next_power_of_2(n_cols)

    def launched(warps: int) -> Any:
        shape = {"BLOCK_N": block, "num_warps": warps}
        if name == "softmax":
            return lambda: module.softmax_kernel[(len(x),)](x, out, n_cols, n_cols, 1, n_cols, **shape)
        if name == "layer_norm":
            return lambda: module.layer_norm_kernel[(len(x),)](
                x, weight, bias, out, n_cols, 1e-5, n_cols, n_cols, **shape
            )
        return lambda: module.rms_norm_kernel[(len(x),)](x, weight, out, n_cols, 1e-5, **shape)

    entry = {
        "softmax": lambda: module.softmax(x),
        "layer_norm": lambda: module.layer_norm(x, weight, bias, 1e-5),
        "rms_norm": lambda: module.rms_norm(x, weight, 1e-5),
    }[name]
    wanted = {
        "softmax": lambda: torch.softmax(x, 1),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x, (n_cols,), weight, bias, 1e-5),
        "rms_norm": lambda: torch.nn.functional.rms_norm(x, (n_cols,), weight, 1e-5),
    }[name]()
    candidates: dict[str, Any] = {"copy": lambda: copied.copy_(x), "solution": entry}
    for warps in (w for w in WARPS if 2 <= block // (32 * w) <= 128):
        launched(warps)()
        wrong = differs(out, wanted)
        if wrong:
            raise AssertionError(f"{name}, N={n_cols}, {warps} warps: {wrong}")
        candidates[str(warps)] = launched(warps)
    times = {key: median(samples) for key, samples in interleaved(candidates).items()}
    shares = {key: f"{times['copy'] / us:.2f}" for key, us in times.items()}
    cells = [f"{shares[str(w)]} ({block // (32 * w)})" if str(w) in shares else "–" for w in WARPS]
    return f"| {n_cols} | {' | '.join(cells)} | {shares['solution']} |"


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, find(name).solution)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
