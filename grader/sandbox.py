"""What a runner may touch: each layer where this system has it, and an honest list of those in force.

    files         Landlock: reads Python, its packages, the system's libraries and `grader/`; writes its scratch folder;
                  opens no GPU but this grader's
    network       an empty network namespace, or seccomp's refusal of internet sockets
    system calls  seccomp, through libseccomp: no tracing, mounting, namespaces, io_uring, kernel keys
    processes     rlimits; the warm process ends whatever is left

Every layer is entered in the forked runner before the learner's file is read, and none can be left again.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grader import gpu_nodes, triton_c_launchers
from grader.catalog import course_roots

try:
    import landlockpy
except ImportError:
    landlockpy = None  # type: ignore[assignment]
try:
    import pyseccomp
except (ImportError, RuntimeError):  # RuntimeError: no libseccomp on this system
    pyseccomp = None

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PROCESSES = 256  # of a runner in a user namespace of its own, threads included
SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/etc", "/opt", "/nix", "/sys", "/run")
OWN_PROC = ("self", "cpuinfo", "meminfo", "stat", "sys", "filesystems", "loadavg", "uptime", "version")
OWN_THREADS = "/proc/self/task"
DEVICES = "/dev"
REFUSED_CALLS = (
    "ptrace process_vm_readv process_vm_writev pidfd_getfd kcmp bpf perf_event_open userfaultfd "
    "keyctl add_key request_key mount umount2 pivot_root chroot move_mount open_tree fsopen fsmount mount_setattr "
    "unshare setns io_uring_setup kexec_load init_module finit_module delete_module swapon reboot"
).split()
Layers = dict[str, str]  # what of the four layers is in force, in words; a layer that is not has no key


def enter(mode: str, writable: Sequence[str], memory_mb: int, also_readable: Sequence[str] = ()) -> Layers:
    """Confine this process for good. Returns what is in force; what the system cannot do is left out.

    `writable`: its scratch folder, and after it others that it may write in.
    """
    layers: Layers = {}
    alone = _network_namespace(mode)
    if alone is not None:
        layers["network"] = "a namespace without a network"
    processes = _limit(mode, memory_mb, own_user_namespace=alone == "user")
    if processes:
        layers["processes"] = processes
    hidden = gpu_nodes.left_out() if mode == "cuda" else frozenset()
    if landlockpy is not None and _restrict_files(mode, writable, also_readable, hidden):
        gpu_nodes.renumber(hidden)
        layers["files"] = f"Landlock {landlockpy.abi_version()}: writes its scratch folder only"
    if pyseccomp is not None and _refuse_calls(mode):
        layers["system_calls"] = "seccomp"
        layers.setdefault("network", f"seccomp: no {'internet ' if mode == 'cuda' else ''}sockets")
    return layers


def probe(mode: str) -> Layers:
    """What is in force in a runner of this mode: a child enters the sandbox and tries what each layer forbids."""
    with tempfile.TemporaryDirectory(prefix="triton-prep-") as folder:
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            with contextlib.suppress(BaseException):
                os.write(writer, json.dumps(_tried(mode, scratch)).encode())
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as stream:
            text = stream.read()
        os.waitpid(pid, 0)
    return dict(json.loads(text)) if text else {}


def _tried(mode: str, scratch: Path) -> Layers:
    layers = enter(mode, [str(scratch)], 4096)
    if "files" in layers:
        (scratch / "allowed").write_text("")
        if not _denied(lambda: (scratch.parent / "refused").write_text("")):
            del layers["files"]
    if "network" in layers and not _denied(_connect):
        del layers["network"]
    if "system_calls" in layers and ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0:  # PTRACE_TRACEME
        del layers["system_calls"]
    return layers


def _denied(action: Any) -> bool:
    try:
        action()
    except OSError as error:
        return error.errno in (errno.EACCES, errno.EPERM, errno.ENETUNREACH, errno.EROFS)
    return False


def _connect() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("192.0.2.1", 9))  # a documentation address: connecting a datagram socket sends nothing


def readable(mode: str) -> tuple[str, ...]:
    """Paths a runner may read and execute: no exercise, no solution, no home folder, nothing of other learners."""
    courses = course_roots()
    forbidden = [root / name for root in courses for name in ("exercises", "solutions", "modules")]
    packages = [p for p in sys.path if p and Path(p).is_dir() and p != os.getcwd() and Path(p).resolve() not in courses]
    roots = [*SYSTEM, sys.prefix, sys.base_prefix, sys.exec_prefix, *packages, str(Path(__file__).parent)]
    if mode == "cuda":
        roots += [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
        roots.append(str(triton_c_launchers.folder()))
    found: dict[str, None] = {}
    for name in roots:
        if os.path.exists(name):
            found.update(dict.fromkeys(str(p) for p in _without(Path(name).resolve(), forbidden)))
    return tuple(found)


def _without(tree: Path, forbidden: Iterable[Path]) -> Iterator[Path]:
    """The tree, or, where something forbidden lies in it, its parts that are free of it."""
    inside = [path.resolve() for path in forbidden if path.resolve().is_relative_to(tree)]
    if not inside:
        yield tree
    elif tree not in inside:
        for child in sorted(tree.iterdir()):
            if not child.is_symlink():
                yield from _without(child, inside)


def _restrict_files(mode: str, writable: Sequence[str], also: Sequence[str], hidden: frozenset[str]) -> bool:
    """`hidden`: names in /dev that stay out of reach."""
    rights = landlockpy.AccessFS
    read = rights.READ_FILE | rights.READ_DIR | rights.EXECUTE
    everything = landlockpy.fs_for_abi(landlockpy.abi_version())
    try:
        with landlockpy.Ruleset(scoped=landlockpy.Scope.SIGNAL, handled_net=landlockpy.AccessNet.NONE) as rules:
            for path in (*(_READABLE.get(mode) or readable(mode)), *also):
                with contextlib.suppress(OSError):
                    rules.allow_path(path, read if os.path.isdir(path) else rights.READ_FILE | rights.EXECUTE)
            for path in ("/proc",) if mode == "cuda" else (f"/proc/{name}" for name in OWN_PROC):
                with contextlib.suppress(OSError):
                    rules.allow_path(path, read if os.path.isdir(path) else rights.READ_FILE)
            if mode == "cuda":  # cuInit names the threads it starts, by writing to task/<tid>/comm, or fails with 304
                rules.allow_path(OWN_THREADS, read | everything & (rights.WRITE_FILE | rights.TRUNCATE))
            for path, wanted in _devices(everything if mode == "cuda" else read | rights.WRITE_FILE, hidden):
                with contextlib.suppress(OSError):
                    rules.allow_path(path, wanted)
            for folder in writable:
                rules.allow_path(folder, everything)
            rules.restrict()
    except (landlockpy.LandlockError, OSError):
        return False
    return True


def _devices(wanted: Any, hidden: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """What may be done where in /dev: a right on a folder holds for all that is in it."""
    if not hidden:
        yield DEVICES, wanted
        return
    rights = landlockpy.AccessFS
    yield DEVICES, rights.READ_DIR
    of_files = rights.READ_FILE | rights.WRITE_FILE | rights.EXECUTE | rights.TRUNCATE | rights.IOCTL_DEV
    for entry in os.scandir(DEVICES):
        if entry.name not in hidden and not entry.is_symlink():
            yield entry.path, wanted if entry.is_dir() else wanted & of_files


_READABLE: dict[str, tuple[str, ...]] = {}


def prepare(mode: str) -> None:
    """Look up once, in the warm process, what every runner's rules name."""
    _READABLE[mode] = readable(mode)


def _refuse_calls(mode: str) -> bool:
    rules = pyseccomp.SyscallFilter(pyseccomp.ALLOW)
    for name in REFUSED_CALLS:
        with contextlib.suppress(OSError):  # a call this machine's libseccomp does not know
            rules.add_rule(pyseccomp.ERRNO(errno.EPERM), name)
    # a socket in the file system leads to a daemon that may do anything; the CUDA driver asks one of its own
    family = [pyseccomp.Arg(0, pyseccomp.NE, int(socket.AF_UNIX))] if mode == "cuda" else []
    rules.add_rule(pyseccomp.ERRNO(errno.EACCES), "socket", *family)
    try:
        rules.load()
    except OSError:
        return False
    return True


def _network_namespace(mode: str) -> str | None:
    """root, user (a user namespace was made for it) or None."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return "root"
    # CUDA memory is shared between processes of one user namespace only as far as is known: seccomp must do there
    if mode == "cuda" or os.getuid() == 0:
        return None
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        return None
    with contextlib.suppress(OSError):
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    return "user"


def _limit(mode: str, memory_mb: int, own_user_namespace: bool) -> str | None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))
    if mode != "cuda":  # CUDA reserves address space far beyond what it uses; the judge watches resident memory there
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + memory_mb * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    if own_user_namespace:  # counted in the namespace alone: elsewhere the limit would count the user's other programs
        resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
        return f"at most {PROCESSES}; what is left ends with the grade"
    return "what is left ends with the grade"
