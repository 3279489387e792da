"""Run a snippet of Triton in a fresh process: in the interpreter, or compiled for a GPU that is not there.

The process is forked from one that has torch and triton imported already: a snippet costs its own time only.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = "import torch\nimport triton\nimport triton.language as tl\ntorch.set_num_threads(1)\n"
STAND_IN = (
    "from grader.triton_adapter import use_stand_in_driver, watch_launches\n"
    "use_stand_in_driver({target!r})\nwatch_launches('compile')\n"
)

# Reads one JSON line a snippet, forks, runs it with its output in files, answers with the exit code.
PARENT = """
import json, os, runpy, sys, traceback
import torch, triton, triton.language
if os.environ["TRITON_INTERPRET"] == "1":
    import triton.runtime.interpreter
    from grader.triton_adapter import mend_index
    mend_index()
else:
    import triton.compiler
for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(os.path.join(job["folder"], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            os.environ["TRITON_CACHE_DIR"] = job["folder"]
            sys.argv = [job["path"]]
            runpy.run_path(job["path"], run_name="__main__")
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    print(json.dumps({"code": os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}), flush=True)
"""


@cache
def _parent(interpret: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TRITON_INTERPRET": interpret,
        "TRITON_DEFAULT_FP_FUSION": "1",
    }
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(parent.kill)
    return parent


def _run(source: str, interpret: str) -> str:
    parent: Any = _parent(interpret)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snippet.py"
        path.write_text(source)
        parent.stdin.write(json.dumps({"path": str(path), "folder": folder}) + "\n")
        parent.stdin.flush()
        answer = parent.stdout.readline()
        assert answer, "the process that runs the snippets ended"
        errors = (Path(folder) / "err").read_text()
        assert json.loads(answer)["code"] == 0, errors
        return (Path(folder) / "out").read_text()


def interpreted(source: str) -> str:
    """Run `source` (torch, triton and tl are imported) under TRITON_INTERPRET=1; return its stdout."""
    return _run(IMPORTS + source, "1")


def compiled(source: str, target: str = "sm_90") -> str:
    """Run `source` with launches that compile for `target`, run nothing, and return the CompiledKernel."""
    return _run(IMPORTS + STAND_IN.format(target=target) + source, "0")
