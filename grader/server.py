"""`python -m grader serve`: JSON lines in, JSON lines out. One grade at a time; the next ones wait."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import json
import os
import platform
import queue
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from grader.catalog import UnknownExercise, find
from grader.failures import BadSubmission, Cancelled, Unavailable
from grader.protocol import Lost

MOST_SOURCE = 1 << 20  # bytes of a submission
PR_SET_DUMPABLE = 4
SWEPT_AFTER = 86_400  # seconds
IDLE = 1.0  # seconds without a request after which the warm processes import ahead what only some files need


class BadRequest(ValueError):
    """The request cannot be served as it stands: exit code 2."""


def main() -> int:
    out = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)  # whatever prints in this process must not reach the protocol
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lock = threading.Lock()

    def emit(event: dict[str, Any]) -> None:
        with lock, contextlib.suppress(BrokenPipeError, ValueError):
            out.write(json.dumps(event) + "\n")
            out.flush()

    from grader.warm import die_with_parent

    if platform.system() == "Linux":
        die_with_parent()
    server = Server(emit)
    server.start()
    requests: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_read, args=(requests, server), daemon=True).start()
    idle: float | None = IDLE
    while not server.broken:
        try:
            request = requests.get(timeout=idle)
        except queue.Empty:
            idle = 0.05 if server.import_ahead() else None
            continue
        if request is None:
            break
        server.serve(request)
        idle = IDLE if idle is not None else None
    server.close()
    return 3 if server.broken else 0


def _read(requests: queue.Queue[dict[str, Any] | None], server: Server) -> None:
    for line in sys.stdin:
        try:
            request = json.loads(line)
        except ValueError:
            server.emit(
                {"event": "failed", "id": None, "kind": "usage", "message": "a request must be one JSON object a line"}
            )
            continue
        if request.get("op") == "cancel":
            server.cancelled.add(request.get("id"))
        elif request.get("op") == "shutdown":
            break
        else:
            requests.put(request)
    requests.put(None)


class Server:
    def __init__(self, emit: Any) -> None:
        self.emit = emit
        self.cancelled: set[Any] = set()
        self.warm: dict[str, Any] = {}
        self.judge: Any = None
        self.reason: str | None = None
        self.broken = False  # a warm process is lost: whoever started this one starts another

    def start(self) -> None:
        """Import, fork the warm processes, then become the judge."""
        try:
            import torch
            from torch.utils._python_dispatch import TorchDispatchMode  # noqa: F401
        except ImportError as error:
            self._nothing(f"PyTorch cannot be imported ({error}): pip install torch")
            return
        if importlib.util.find_spec("triton") is None or platform.system() != "Linux":
            self._nothing("triton is not here: it runs on Linux only; everything but grading works without it")
            return
        _sweep()
        import numpy  # noqa: F401

        import grader.judge
        import grader.runner  # noqa: F401
        from grader.gpu_turns import Turns
        from grader.warm import Warm

        turns = Turns.of_environment()
        gpu = _gpu_is_likely()
        self.warm = {"interpreter": Warm("interpreter")}
        if gpu:
            self.warm["cuda"] = Warm("cuda")
        self.warm["offline"] = Warm("offline")
        # another process of this user must not read the judge's memory or descriptors
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        torch.set_num_threads(1)
        device = "CPU interpreter"
        if gpu and torch.cuda.is_available():
            device = torch.cuda.get_device_name(0)
        elif "cuda" in self.warm:
            self.warm.pop("cuda").close()
        from grader.grade import versions
        from grader.judge import Judge

        self.judge = Judge(self.warm, device, turns)
        backend = "cuda" if "cuda" in self.warm else "interpreter"
        self.emit({"event": "ready", "versions": versions(), "backend": backend, "device": device})

    def _nothing(self, reason: str) -> None:
        self.reason = reason
        versions = {"torch": None, "triton": None, "python": platform.python_version()}
        self.emit({"event": "ready", "versions": versions, "backend": "none", "device": "none", "reason": reason})

    def import_ahead(self) -> bool:
        """One import in each warm process; whether any is left to do."""
        left = 0
        for warm in self.warm.values():
            with contextlib.suppress(Lost):  # the next grade says so
                left += warm.import_next()
        return left > 0

    def close(self) -> None:
        if self.judge is not None:
            self.judge.baselines.close()
        for warm in self.warm.values():
            warm.close()

    def serve(self, request: dict[str, Any]) -> None:
        number = request.get("id")

        def emit(event: dict[str, Any]) -> None:
            self.emit({**event, "id": number})

        operation = request.get("op")
        handler = getattr(self, f"_{operation}", None) if operation in OPERATIONS else None
        if operation in ANSWERS:
            handler = self._answer
        if handler is None:
            emit({"event": "failed", "kind": "usage", "message": f"unknown operation {operation!r}"})
            return
        if self.judge is None and operation != "doctor":
            emit({"event": "failed", "kind": "infrastructure", "message": self.reason})
            return
        try:
            handler(request, emit)
        except Cancelled:
            emit({"event": "failed", "kind": "cancelled", "message": "cancelled"})
        except Unavailable as error:
            emit({"event": "failed", "kind": "infrastructure", "message": str(error)})
        except (BadRequest, BadSubmission, UnknownExercise) as error:
            emit({"event": "failed", "kind": "usage", "message": str(error)})
        except Exception as error:  # the judge must outlive any one grade
            traceback.print_exc()
            emit(
                {
                    "event": "failed",
                    "kind": "infrastructure",
                    "message": f"the grader failed: {type(error).__name__}: {error}",
                }
            )

    def _grade(self, request: dict[str, Any], emit: Any) -> None:
        from grader.grade import Submission

        files = find(str(request.get("exercise")))
        path = str(request.get("file") or files.stub)
        number = request.get("id")
        verdict = self.judge.grade(
            Submission(files, path, read_source(path)), options_of(request), emit, lambda: number in self.cancelled
        )
        self.broken = verdict["status"] == "infrastructure_error"
        emit({"event": "verdict", "verdict": verdict})

    def _inspect(self, request: dict[str, Any], emit: Any) -> None:
        from grader.grade import Submission
        from grader.inspect_kernel import STAGES, inspect_kernel

        files = find(str(request.get("exercise")))
        path = str(request.get("file") or files.stub)
        stage = str(request.get("stage") or "ttir")
        if stage not in STAGES:
            raise BadRequest(f"unknown stage {stage!r}: one of {', '.join(STAGES)}")
        kernels = inspect_kernel(self.judge, Submission(files, path, read_source(path)), options_of(request), stage)
        emit({"event": "inspected", "kernels": kernels})

    def _answer(self, request: dict[str, Any], emit: Any) -> None:
        from grader.grade import Submission

        files = find(str(request.get("exercise")))
        path = str(request.get("file") or files.stub)
        answer = importlib.import_module(ANSWERS[request["op"]]).answer
        number = request.get("id")
        submission = Submission(files, path, read_source(path))
        data = answer(self.judge, submission, request, emit, lambda: number in self.cancelled)
        emit({"event": "answer", "data": data})

    def _audit(self, request: dict[str, Any], emit: Any) -> None:
        from grader.audit import audit

        emit({"event": "audited", "report": audit(self.judge, find(str(request.get("exercise"))), options_of(request))})

    def _doctor(self, request: dict[str, Any], emit: Any) -> None:
        from grader.doctor import doctor

        emit({"event": "doctor", "report": doctor(self.judge, self.reason)})


OPERATIONS = {"grade", "inspect", "audit", "doctor"}
# operation: the module whose `answer(judge, submission, request, emit, cancelled)` gives the data of its answer
ANSWERS: dict[str, str] = {
    "estimate": "grader.modelled",
    "sweep": "grader.sweep",
    "bench": "grader.sweep",
    "access_map": "grader.access_map.answer",
    "cases": "grader.case_names",
    "stages": "grader.stages.answer",
}


def options_of(request: dict[str, Any]) -> Any:
    from grader.grade import Options
    from grader.triton_adapter import parse_target

    target = str(request.get("target") or "sm_90")
    try:
        parse_target(target)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    backend = str(request.get("backend") or "auto")
    if backend not in ("auto", "cuda", "interpreter"):
        raise BadRequest(f"unknown backend {backend!r}: auto, cuda or interpreter")
    limit = request.get("call_limit")
    return Options(
        backend=backend,
        target=target,
        time=request.get("time"),
        sanitize=bool(request.get("sanitize")),
        seed=int(request.get("seed") or 0),
        keep_going=bool(request.get("keep_going")),
        call_limit=float(limit) if limit else None,
        verified=bool(request.get("verified")),
    )


def read_source(path: str) -> bytes:
    """The submission's bytes. Raises BadRequest for what is no readable text file."""
    file = Path(path)
    try:
        if file.is_dir():
            raise BadRequest(f"{path} is a directory: name a Python file")
        if file.stat().st_size > MOST_SOURCE:
            raise BadRequest(f"{path} is larger than {MOST_SOURCE >> 20} MiB: that is no kernel")
        source = file.read_bytes()
        source.decode("utf-8")
    except FileNotFoundError as error:
        raise BadRequest(f"{path} does not exist: `triton-prep init` writes the stubs") from error
    except UnicodeDecodeError as error:
        line = source.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{path}:{line}: not UTF-8 (byte {error.start}): save the file as UTF-8") from error
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from error
    return source


def _sweep() -> None:
    """Remove scratch folders that a killed grader left behind, once they are a day old."""
    for folder in Path(tempfile.gettempdir()).glob("triton-prep-*"):
        with contextlib.suppress(OSError):
            if folder.is_dir() and time.time() - folder.stat().st_mtime > SWEPT_AFTER:
                shutil.rmtree(folder)


def _gpu_is_likely() -> bool:
    """Whether a CUDA device may be here, asked without a CUDA context: the warm processes are forked after this."""
    return Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists() or bool(list(Path("/dev").glob("nvidia[0-9]*")))
