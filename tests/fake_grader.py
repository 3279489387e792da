"""A stand-in for `python -m grader serve`: speaks the protocol without torch. Behaviour follows the graded file's text.

Words in the file: `# fake: STATUS` gives that status (and `# cause: NAME` that cause, `# see: ID` with that item),
`# slow` takes a minute, `# die` ends the process, `once` behind either: only the first time; `# noise` sends stray lines
first, `# hidden: STATUS` is the status for any seed but 0, `# stray` leaves a process behind, `# while: FILE` waits as
long as that file is there, `# kill parent` ends the process that started this one, `# takes: SECONDS` waits that long.
Otherwise: passed.
Environment: FAKE_GRADER_BACKEND (interpreter), FAKE_GRADER_SILENT=1 (ends before it is ready), FAKE_GRADER_LOG (a file).
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

BACKEND = os.environ.get("FAKE_GRADER_BACKEND", "interpreter")
VERSIONS = {"torch": "2.13.0", "triton": "3.7.1", "python": "3.11.0"}
cancelled: set[str] = set()


def say(**event: Any) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def read_requests(waiting: queue.Queue[dict[str, Any] | None]) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "FAKE_GRADER_LOG" in os.environ:
            with open(os.environ["FAKE_GRADER_LOG"], "a") as log:
                log.write(f"{os.getpid()} {line}")
        if request["op"] == "cancel":
            cancelled.add(request["id"])
        elif request["op"] == "shutdown":
            break
        else:
            waiting.put(request)
    waiting.put(None)


def grade(request: dict[str, Any]) -> None:
    name = request["id"]
    path = Path(request["file"])
    if not path.is_file():
        say(event="failed", id=name, kind="usage", message=f"{path} is not there")
        return
    text = path.read_text()
    again = _seen(path)
    if "# stray" in text:
        nowhere = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
        stray = subprocess.Popen(sleep, start_new_session=True, **nowhere)  # type: ignore[call-overload]
        Path(f"{path}.stray").write_text(str(stray.pid))
    if wait := re.search(r"# takes: ([\d.]+)", text):
        time.sleep(float(wait[1]))
    if "# kill parent" in text:
        os.kill(os.getppid(), signal.SIGKILL)
    while (wanted := re.search(r"# while: (\S+)", text)) and Path(wanted[1]).exists() and name not in cancelled:
        time.sleep(0.01)
    if "# die" in text and not ("# die once" in text and again):
        print("last words", file=sys.stderr, flush=True)
        os._exit(9)
    if "# noise" in text:
        sys.stdout.write('not json\n{"event": "from_the_future", "id": "' + name + '"}\n[]\n')
        say(event="stage", id="someone-else", name="run", state="started")
    say(event="stage", id=name, name="import", state="started")
    say(event="stage", id=name, name="import", state="done", seconds=0.01)
    slow = "# slow" in text and not ("# slow once" in text and again)
    deadline = time.monotonic() + (60 if slow else 0)
    while time.monotonic() < deadline and name not in cancelled:
        time.sleep(0.01)
    if name in cancelled:
        say(event="failed", id=name, kind="cancelled", message="cancelled")
        return
    found = re.search(r"# fake: (\w+)", text)
    status = found.group(1) if found else "passed"
    hidden = re.search(r"# hidden: (\w+)", text)
    if hidden and request["seed"]:
        status = hidden.group(1)
    cause = re.search(r"# cause: (\w+)", text)
    if "TODO" in text and not found:
        status = "not_started"
    case = {"name": "n=1000", "status": "passed", "max_error": 0.0, "tolerance": 0.0}
    case |= {"first_bad_index": None, "program_id": None, "message": None}
    bad = {
        **case,
        "name": "n=1001",
        "status": status,
        "first_bad_index": [1000],
        "program_id": [0],
        "message": "a[i] is 3",
    }
    later = {**case, "name": "n=4099", "status": "passed" if request.get("keep_going") else "not_run"}
    cases = [] if status == "not_started" else [case] if status == "passed" else [case, bad, later]
    for index, one in enumerate(cases):
        say(event="case", id=name, index=index, total=3, case=one)
    say(event="verdict", id=name, verdict=verdict(request, status, cases, cause))


def _seen(path: Path) -> bool:
    """Whether this file was to be graded before; only files that say "once" leave a mark."""
    mark = Path(f"{path}.seen")
    seen = mark.exists()
    if " once" in path.read_text():
        mark.touch()
    return seen


def verdict(
    request: dict[str, Any], status: str, cases: list[dict[str, Any]], cause: re.Match[str] | None
) -> dict[str, Any]:
    diagnosis = None
    if cause:
        diagnosis = {
            "cause": cause.group(1),
            "message": "The store has no mask.",
            "line": cause.string.count("\n", 0, cause.start()) + 1,
            "concept": "masking",
            "see": see[1] if (see := re.search(r"# see: (\S+)", cause.string)) else "m01.quiz.a",
        }
    row = {"target": request["target"], "kernel": "k", "registers": 26, "spill_bytes": 0, "shared_bytes": 0}
    row |= {"num_warps": 4, "vector_loads": 2, "tensor_core_ops": 0, "occupancy": 1.0}
    return {
        "schema": 1, "exercise": request["exercise"], "title": "Fake", "file": request["file"], "sha256": "0" * 64,
        "seed": request["seed"], "backend": BACKEND, "verified": False, "device": "CPU interpreter", "versions": VERSIONS,
        "status": status, "stages": [{"name": "import", "seconds": 0.01}], "cases": cases, "diagnosis": diagnosis,
        "compile": [row] if status == "passed" else None,
        "traffic": {"loaded_bytes": 8000, "stored_bytes": 4000, "minimum_bytes": 12000, "ratio": 1.0} if status == "passed" else None,
        "timing": None, "notes": [], "output": {"stdout": "", "stderr": "", "truncated": False},
    }  # fmt: skip


def access_map(request: dict[str, Any]) -> None:
    """`# map: NAME` in the file gives tests/data/access_map_NAME.json; without it there is no map."""
    found = re.search(r"# map: (\w+)", Path(request["file"]).read_text())
    if not found:
        say(event="failed", id=request["id"], kind="usage", message="the stub has no map: write the kernel[grid](x)")
        return
    say(event="progress", id=request["id"], done=0, total=1, words="case n=1025")
    data = json.loads((Path(__file__).resolve().parent / "data" / f"access_map_{found[1]}.json").read_text())
    case = next((case for case in data["cases"] if request.get("case") in case), None) if request.get("case") else None
    say(event="answer", id=request["id"], data={**data, "file": request["file"], "case": case or data["case"]})


def answer(request: dict[str, Any]) -> None:
    name = request["id"]
    match request["op"]:
        case "grade":
            grade(request)
        case "inspect":
            text = f".visible .entry add_kernel  // {request['stage']}"
            say(
                event="inspected",
                id=name,
                kernels=[{"kernel": "add_kernel", "target": request["target"], "text": text}],
            )
        case "estimate" | "sweep" | "bench":
            import fake_timing

            fake_timing.answer(request, say, cancelled)
        case "access_map":
            access_map(request)
        case "cases":
            say(event="answer", id=name, data={"cases": ["n=1000", "n=1001", "n=4099"]})
        case "stages":
            import fake_stages  # it lies beside this script

            say(event="answer", id=name, data=fake_stages.data(request))
        case "audit":
            checks = [{"name": "stub is not_started", "status": "passed", "message": ""}]
            report = {"exercise": request["exercise"], "backend": BACKEND, "checks": checks}
            say(event="audited", id=name, report=report)
        case "doctor":
            rows = [
                {
                    "name": "GPU",
                    "state": "missing",
                    "detail": "no CUDA device",
                    "advice": "grading uses the interpreter",
                }
            ]
            say(event="doctor", id=name, report={"versions": VERSIONS, "rows": rows})


def main() -> None:
    if os.environ.get("FAKE_GRADER_SILENT"):
        print("no module named torch", file=sys.stderr)
        raise SystemExit(1)
    waiting: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=read_requests, args=(waiting,), daemon=True).start()
    say(event="ready", versions=VERSIONS, backend=BACKEND, device="CPU interpreter")
    while (request := waiting.get()) is not None:
        answer(request)


if __name__ == "__main__":
    main()
