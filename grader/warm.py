"""The warm process: has torch and triton imported in one mode and forks a fresh runner for every grade.

It is forked from the judge before the judge knows any input, holds no CUDA context, and reaps what it forks.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import signal
import socket
import sys
import tempfile
import threading
from typing import Any

from grader import sandbox
from grader.process_tree import descendants, end_all
from grader.protocol import Lost, receive_with_fds, send_with_fds

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# what `from torch.library import triton_op` and opcheck pull in costs seconds; runners of these calls need all of it
SLOW_CALLS = ("operator", "compiled")
SLOW_IMPORTS = (
    "sympy",
    "torch._dynamo",
    "torch._inductor.config",
    "torch._higher_order_ops.triton_kernel_wrap",
    "torch._library.triton",
    "torch.testing._internal.common_utils",
    "torch.testing._internal.optests",
)


class Warm:
    """The judge's handle of a warm process."""

    def __init__(self, mode: str, target: str = "sm_90") -> None:
        self.mode = mode
        self._lock = threading.Lock()  # a question and its answer belong together, and several threads of a grade ask
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            try:
                _serve(mode, theirs)
            finally:
                os._exit(0)
        theirs.close()
        self.sock = ours
        self.runners: set[int] = set()  # not reaped yet
        self._layers: sandbox.Layers | None = None

    @property
    def layers(self) -> sandbox.Layers:
        """What confines this mode's runners, as tried when the warm process started. Raises Lost."""
        if self._layers is None:
            self._layers = dict(self._ask({"op": "layers"}, [])["layers"])
        return self._layers

    def spawn(self, spec: dict[str, Any], channel: socket.socket, output: int, memory: int | None) -> int:
        """Fork a runner; returns its pid. Raises Lost when the warm process is gone."""
        fds = [channel.fileno(), output] + ([memory] if memory is not None else [])
        pid = int(self._ask({"op": "spawn", "spec": spec}, fds)["pid"])
        self.runners.add(pid)
        return pid

    def reap(self, pid: int) -> int:
        """Kill the runner and all it started, and wait; returns its wait status (0 when it is long gone)."""
        self.runners.discard(pid)
        return int(self._ask({"op": "reap", "pid": pid}, [])["status"])

    def import_next(self) -> int:
        """Begin one of the slow imports; returns how many are left after it. What is asked next waits for its end."""
        return int(self._ask({"op": "import"}, [])["left"])

    def alive(self, pid: int) -> bool:
        return bool(self._ask({"op": "alive", "pid": pid}, [])["alive"])

    def _ask(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        try:
            with self._lock:
                self.sock.settimeout(60)
                send_with_fds(self.sock, message, fds)
                return receive_with_fds(self.sock)[0]
        except OSError as error:
            raise Lost(f"the warm {self.mode} process is gone ({error})") from error

    def close(self) -> None:
        self.sock.close()
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _serve(mode: str, sock: socket.socket) -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _close_inherited({sock.fileno(), 2})
    os.environ["TRITON_INTERPRET"] = "1" if mode == "interpreter" else "0"
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    if mode != "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # what asks for one here is told so by PyTorch, in words
    import triton
    import triton.language

    if mode == "interpreter":
        import triton.runtime.interpreter
    else:
        import triton.backends.nvidia.compiler
        import triton.compiler  # noqa: F401

    _preheat(mode)
    sandbox.prepare(mode)
    layers = sandbox.probe(mode)
    # what a runner's child leaves behind becomes a child of this process, and ends with the runner
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    live: set[int] = set()
    ended: dict[int, int] = {}
    slow = list(SLOW_IMPORTS)
    sock.settimeout(None)
    while True:
        try:
            message, fds = receive_with_fds(sock)
        except (Lost, OSError):
            return
        if message["op"] == "spawn":
            while message["spec"].get("call") in SLOW_CALLS and slow:  # once here, not in every such runner
                _import_next(slow)
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                sock.close()
                _become_runner(mode, message["spec"], fds)
            for fd in fds:
                os.close(fd)
            live.add(pid)
            send_with_fds(sock, {"pid": pid}, [])
        elif message["op"] == "import":
            send_with_fds(sock, {"left": max(0, len(slow) - 1)}, [])
            _import_next(slow)
        elif message["op"] == "layers":
            send_with_fds(sock, {"layers": layers}, [])
        elif message["op"] == "alive":
            pid = message["pid"]
            if pid not in ended:
                with contextlib.suppress(ChildProcessError):
                    done, status = os.waitpid(pid, os.WNOHANG)
                    if done:
                        ended[pid] = status
            send_with_fds(sock, {"alive": pid not in ended}, [])
        elif message["op"] == "reap":
            pid = message["pid"]
            live.discard(pid)
            if pid not in ended:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    ended[pid] = os.waitpid(pid, 0)[1]
            # daemons too: what an ended runner leaves is this process's child now
            end_all(lambda: descendants(os.getpid(), spared=live))
            send_with_fds(sock, {"status": ended.pop(pid, 0)}, [])


def _import_next(slow: list[str]) -> None:
    if slow:
        with contextlib.suppress(ImportError):
            importlib.import_module(slow.pop(0))


def _preheat(mode: str) -> None:
    from grader import triton_adapter, triton_c_launchers

    with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        # what fails here every runner does for itself: slower, not wrong
        with contextlib.suppress(Exception):
            if mode == "interpreter":
                triton_adapter.preheat_interpreter()
            else:
                triton_adapter.preheat("sm_90")
        if mode == "cuda":
            with contextlib.suppress(Exception):
                triton_adapter.preload_driver()
                triton_c_launchers.use_kept()


def _close_inherited(keep: set[int]) -> None:
    """Close what the judge had open: the runner must not reach its descriptors."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        if fd not in keep:
            os.dup2(null, fd)
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


def _become_runner(mode: str, spec: dict[str, Any], fds: list[int]) -> None:
    code = 1
    try:
        os.setsid()
        die_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        channel = socket.socket(fileno=fds[0])
        os.dup2(fds[1], 1)
        os.dup2(fds[1], 2)
        os.close(fds[1])
        sys.stdin = open(os.devnull)
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False, errors="replace")
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False, errors="replace")
        if mode == "cuda":  # of the time that a context takes, 8 queues are a fifth
            os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
        cache = spec.get("cache")
        _in_scratch(spec["scratch"], cache)
        folders = [spec["scratch"], *([cache] if cache else [])]
        sandbox.enter(mode, folders, int(spec["memory_mb"]), spec.get("readable", ()))
        memory = fds[2] if len(fds) > 2 else None
        if spec.get("role") == "replayer":
            import grader.verified.replayer

            grader.verified.replayer.serve(mode, spec, channel, memory)
        else:
            import grader.runner

            grader.runner.serve(mode, spec, channel, memory)
        code = 0
    except SystemExit:
        code = 0
    except Lost:  # the judge has ended the grade: nobody is left to tell, and the learner's file did not print this
        pass
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _in_scratch(scratch: str, cache: str | None) -> None:
    """Everything this process writes and caches lies in its scratch folder, and goes with it.

    What Triton compiles may lie in a folder that all processes of one grade have together.
    """
    os.chdir(scratch)
    os.environ["HOME"] = os.environ["TMPDIR"] = tempfile.tempdir = scratch
    os.environ["TRITON_CACHE_DIR"] = cache or os.path.join(scratch, "triton")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.path.join(scratch, "inductor")
