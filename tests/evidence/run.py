"""Run a snippet of Triton in a fresh process: in the interpreter, or compiled for a GPU that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\ntorch.set_num_threads(1)\n"
STAND_IN = (
    "from grader.triton_adapter import use_stand_in_driver, watch_launches\n"
    "use_stand_in_driver({target!r})\nwatch_launches('compile')\n"
)


def _run(source: str, environment: dict[str, str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snippet.py"
        path.write_text(source)
        env = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TRITON_CACHE_DIR": folder,
            "TRITON_DEFAULT_FP_FUSION": "1",
            **environment,
        }
        done = subprocess.run([sys.executable, str(path)], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def interpreted(source: str) -> str:
    """Run `source` (torch, triton and tl are imported) under TRITON_INTERPRET=1; return its stdout."""
    return _run(IMPORTS + source, {"TRITON_INTERPRET": "1"})


def compiled(source: str, target: str = "sm_90") -> str:
    """Run `source` with launches that compile for `target`, run nothing, and return the CompiledKernel."""
    return _run(IMPORTS + STAND_IN.format(target=target) + source, {"TRITON_INTERPRET": "0"})
